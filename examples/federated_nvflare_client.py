"""The client of ``federated_nvflare.py``: an ordinary trainer that sends what it changed."""

import numpy as np

TRUTH = np.array([1.0, -2.0, 0.5, 0.0])
ROWS = 100


def rows(client):
    """Return the rows of one client, which nobody else has."""
    rng = np.random.default_rng(client)
    x = rng.normal(size=(ROWS, len(TRUTH)))
    return x, (x @ TRUTH + rng.normal(scale=0.5, size=ROWS) > 0).astype(float)


def fit(w, x, y, steps=10):
    """Take some steps of logistic regression."""
    for _ in range(steps):
        w = w + 0.5 * x.T @ (y - 1.0 / (1.0 + np.exp(-x @ w))) / len(x)
    return w


def main():
    """Answer every round until the server ends."""
    import nvflare.client as flare

    flare.init()
    x, y = rows(int(flare.get_site_name().split("-")[1]))
    while flare.is_running():
        received = flare.receive()
        ((name, w),) = received.params.items()
        change = fit(w, x, y) - w
        flare.send(flare.FLModel(params_type=flare.ParamsType.DIFF, params={name: change}))


if __name__ == "__main__":
    main()

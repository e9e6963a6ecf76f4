"""Short runs of DP-SGD on random records, shared by the tests of learning."""

import numpy as np

from accountant.learn import Batches, LogisticRegression, Model, Noise, Watch, train_dp_sgd

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 5))
Y = (X[:, 0] + 0.3 * X[:, 1] > 0).astype(int)
GROUPS = {
    "batches": (
        Batches, ("expected_batch_size", "steps", "epochs", "sampling_probability", "sampler")
    ),
    "noise": (Noise, ("noise_multiplier", "target_epsilon", "law")),
    "watch": (Watch, ("callbacks", "progress", "on_plan", "nonprivate_diagnostics")),
}  # fmt: skip


def arranged(settings):
    """Return a trainer's keywords for settings that a test names, and varies, one by one."""
    rest = dict(settings)
    if "noise" in rest:
        rest["law"] = rest.pop("noise")
    made = {}
    for name, (kind, parts) in GROUPS.items():
        own = {part: rest.pop(part) for part in parts if part in rest}
        if own:
            made[name] = kind(**own)
    return made | rest


def train(model=None, data=X, labels=Y, **given):
    settings = {
        "clipping_norm": 1.0,
        "noise_multiplier": 1.0,
        "delta": 1e-5,
        "expected_batch_size": 50,
        "steps": 5,
        "rng": 1,
    } | given
    return train_dp_sgd(model or LogisticRegression(5), data, labels, **arranged(settings))


class Untouchable(LogisticRegression):
    """Fails the test when a gradient is computed."""

    def add_block(self, *given):
        raise AssertionError("a gradient was computed")

    def row_results(self, *given):
        raise AssertionError("a gradient was computed")


class Still(Model):
    """Zero gradients: what is released is the noise."""

    def __init__(self, size=4000):
        self.parameters = np.zeros(size)
        self.groups = (slice(0, size),)
        self.widest = size

    def check(self, data, labels):
        return np.asarray(data), np.asarray(labels)

    def add_block(self, x, y, filled, rule, totals):
        pass

    def outputs(self, data):
        return data

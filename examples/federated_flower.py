"""Federated averaging in Flower with differential privacy for clients, simulated on one machine.

Forty clients fit one linear model to their own rows. Every client joins a round by its own coin;
the server clips, adds up and adds noise once, and stops when the budgets are spent. Killed and
started again with the same directory it continues where it was.

    python examples/federated_flower.py [DIRECTORY] [central|secure]     (needs flwr[simulation])
"""

import os
import sys
import tempfile

import numpy as np
from flwr.app import ArrayRecord, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.simulation import run_simulation

from accountant.adapters.flower import (
    CentralNoise,
    PrivateFedAvg,
    SecureSumNoise,
    answer_names,
    secure_sum_mod,
)
from accountant.learn import AdaptiveQuantile
from accountant.ledger import Budget

CLIENTS, ROWS, ROUNDS, DELTA = 40, 50, 25, 1e-4
TRUTH = np.array([1.0, -2.0, 0.5, 0.0])
NOISES = {
    "central": CentralNoise(1.5, AdaptiveQuantile(1.0, count_noise=2.0), sampling_probability=0.5),
    "secure": SecureSumNoise(4.0, 1.0, least_survivors=16, levels=2**14),
}


def rows(client):
    """Return the rows of one client, which nobody else has."""
    rng = np.random.default_rng(client)
    x = rng.normal(size=(ROWS, 4))
    return x, (x @ TRUTH + rng.normal(scale=0.5, size=ROWS) > 0).astype(float)


def fit(w, x, y, steps=10):
    """Take some steps of logistic regression."""
    for _ in range(steps):
        w = w + 0.5 * x.T @ (y - 1.0 / (1.0 + np.exp(-x @ w))) / len(x)
    return w


def client_app(kind):
    """Return the client's side: three lines more than without privacy."""
    secure = kind == "secure"
    app = ClientApp(mods=[secure_sum_mod(NOISES["secure"])] if secure else None)
    answer_names(app)

    @app.train()
    def train(message, context):
        client = int(context.node_config["partition-id"])
        (w,) = message.content["arrays"].to_numpy_ndarrays()
        content = RecordDict({"arrays": ArrayRecord([fit(w, *rows(client))])})
        return Message(content, reply_to=message)

    return app


def server_app(kind, directory, told, rounds=ROUNDS):
    """Return the server's side, and put what it found into ``told``."""
    app = ServerApp()
    # Half of the clients allow less, and leave before the others.
    budgets = {str(i): Budget(4.5 if i % 2 else 6.5, DELTA) for i in range(CLIENTS)}

    @app.main()
    def main(grid, context):
        strategy = PrivateFedAvg(
            directory,
            NOISES[kind],
            budgets,
            planned_rounds=ROUNDS,
            delta=DELTA,
            least_connected=CLIENTS,
        )
        result = strategy.start(grid, ArrayRecord([np.zeros(4)]), num_rounds=rounds)
        (w,) = result.arrays.to_numpy_ndarrays()
        x, y = rows(10**6)
        told.update(
            rounds=strategy.rounds.rounds,
            epsilon=strategy.rounds.epsilon(DELTA),
            accuracy=float(np.mean((x @ w > 0) == y)),
            model=w,
        )

    return app


def main(directory=None, kind="central", rounds=ROUNDS):
    """Simulate; return the rounds, ε, accuracy and model."""
    told = {}
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    run_simulation(
        server_app(kind, directory or tempfile.mkdtemp(), told, rounds),
        client_app(kind),
        num_supernodes=CLIENTS,
        backend_config={"client_resources": {"num_cpus": 1, "num_gpus": 0.0}},
    )
    print(
        f"{told['rounds']} rounds, ε = {told['epsilon']:.4f} at δ = {DELTA:g}, accuracy"
        f" {told['accuracy']:.2f}, model {told['model'].round(2)}"
    )
    return told


if __name__ == "__main__":
    main(*sys.argv[1:3])

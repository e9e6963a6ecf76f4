"""Make the pictures of docs/plots.md."""

from pathlib import Path

import accountant as ac
from accountant import plots

FIGURES = Path(__file__).parent / "figures"
STEP = ac.PoissonSampled(ac.Gaussian(1.1), 256 / 60_000)


def figures():
    yield "profile", plots.profile(1000 * STEP, ac.Gaussian(4.0), labels=["DP-SGD", "one mean"])
    ledger = ac.Accountant()
    for sigma in (3.0, 2.5, 2.0):
        ledger.step(noise_multiplier=sigma, sampling_probability=0.05, count=1000)
    yield "steps", plots.epsilon_over_steps(ledger, 1e-5)
    yield "tradeoff", plots.tradeoff(14_063 * STEP, 1000 * STEP, labels=["60 epochs", "4 epochs"])
    yield "calibration", plots.calibration_map([0.5, 1.0, 3.0, 8.0], 1e-5, 1000)
    names = ["poisson", "with replacement", "full batch", "cyclic", "shuffled", "fixed size"]
    table = ac.compare_samplers(
        dataset_size=1000,
        batch_size=100,
        epochs=2,
        noise_multiplier=1.0,
        delta=1e-5,
        samplers=names,
    )
    yield "samplers", plots.samplers(table)


if __name__ == "__main__":
    for name, figure in figures():
        figure.savefig(FIGURES / f"plots_{name}.png", dpi=300)

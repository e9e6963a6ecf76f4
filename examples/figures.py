"""The field's classic pictures: ε against steps, and accuracy against ε.

    python examples/figures.py [directory]

needs matplotlib. The first picture compares three analyses of the same run (Abadi et al. 2016,
Figure 2, with the exact account added); the second shows test accuracy and the train-test gap of
the examples (their Figure 3 shows accuracy over ε).
"""

import math
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from common import adult, digits, mnist_5k, train

import accountant as ac

mpl.use("Agg")
import matplotlib.pyplot as plt

Q, SIGMA, DELTA = 0.01, 4.0, 1e-5  # the setting of Abadi et al., Figure 2


def strong_composition(steps: int) -> float:
    """Return ε by the strong composition theorem (Dwork, Rothblum, Vadhan 2010, Theorem III.3).

    Half of δ goes to the theorem's slack, the rest in equal parts to the steps, each of which is
    taken at its own exact ε.
    """
    one = ac.get_epsilon(Q, SIGMA, 1, DELTA / (2 * steps))
    strong = math.sqrt(2 * steps * math.log(2 / DELTA)) * one + steps * one * math.expm1(one)
    return min(strong, steps * one)


def epsilon_over_steps(path: Path) -> None:
    steps = np.unique(np.geomspace(10, 40_000, 60).astype(int))
    figure, axes = plt.subplots(figsize=(6, 4))
    axes.plot(
        steps * Q, [strong_composition(int(n)) for n in steps], "--", label="strong composition"
    )
    rdp = [ac.get_epsilon(Q, SIGMA, int(n), DELTA, method="rdp") for n in steps]
    axes.plot(steps * Q, rdp, "-.", label="moments (Rényi)")
    axes.plot(steps * Q, [ac.get_epsilon(Q, SIGMA, int(n), DELTA) for n in steps], label="exact")
    axes.set(
        xlabel="epochs", ylabel="ε", ylim=(0, 12),
        title=f"q = {Q}, σ = {SIGMA:g}, δ = {DELTA:g}",
    )  # fmt: skip
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=300)


def accuracy_over_epsilon(path: Path) -> None:
    split = adult()
    problems = {
        "Adult": (lambda seed: split, 2, 1e-5),
        "digits": (digits, 10, 1e-4),
        "MNIST-5k": (mnist_5k, 10, 1e-5),
    }
    epsilons = [0.1, 0.25, 0.5, 1, 2, 4, 8]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4))
    for name, (load, classes, delta) in problems.items():
        data = [load(seed) for seed in range(3)]
        tests, gaps = [], []
        for epsilon in epsilons:
            steps, rate = (100, 8) if epsilon >= 8 else (60, 4) if epsilon >= 2 else (30, 4)
            scores = []
            for X, y, X_test, y_test in data:
                model = train(
                    X, y, classes, epsilon=epsilon, delta=delta, steps=steps, learning_rate=rate
                ).model
                scores.append((100 * model.score(X_test, y_test), 100 * model.score(X, y)))
            test, whole = np.mean(scores, axis=0)
            tests.append(test)
            gaps.append(whole - test)
        left.plot(epsilons, tests, "o-", label=name)
        right.plot(epsilons, gaps, "o-", label=name)
    for axes, label in ((left, "test accuracy, %"), (right, "train - test, points")):
        axes.set(xscale="log", xlabel="ε", ylabel=label)
        axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=300)


if __name__ == "__main__":
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    epsilon_over_steps(directory / "epsilon_over_steps.png")
    accuracy_over_epsilon(directory / "accuracy_over_epsilon.png")

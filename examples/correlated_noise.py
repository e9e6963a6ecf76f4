"""DP-FTRL and DP-SGD at equal ε: correlated and independent noise on real data.

Everything but the noise is the same: model, batches of the same expected size, steps, learning
rate, clipping norm, and the guarantee (add-or-remove). `cyclic` classes take part in turn, one
class a step; the others are Poisson samples. Run `python examples/correlated_noise.py adult`, or
`mnist`.
"""

import sys

import numpy as np
from common import adult, mnist_5k

from accountant import matrix
from accountant.learn import (
    SGD,
    Batches,
    LogisticRegression,
    Noise,
    SoftmaxRegression,
    Watch,
    train_dp_sgd,
)

DELTA = 1e-5
# Records of a batch, epochs, learning rate, and seeds of the split.
SETTINGS = {"adult": (1000, 8, 4.0, 2), "mnist": (200, 20, 4.0, 3)}
EPSILONS = (0.5, 2.0, 8.0)


def strategies(steps, classes):
    """Return what is compared: a name, the noise and the sampler."""
    return (
        ("DP-SGD, Poisson", "gaussian", "poisson"),
        ("4 bands, cyclic Poisson", matrix.banded_square_root(steps, bands=4), "poisson"),
        ("independent, cyclic", matrix.input_perturbation(steps), "cyclic"),
        ("square root, cyclic", matrix.banded_square_root(steps, bands=classes), "cyclic"),
        ("λ-CGD 0.7, cyclic", matrix.lambda_cgd(steps, cancelled=0.7), "cyclic"),
        ("BLT, cyclic", matrix.BufferedToeplitz(
            weights=(0.1, 0.3), decays=(0.98, 0.6), steps=steps), "cyclic"),
        ("tree, cyclic", matrix.BinaryTree(steps), "cyclic"),
    )  # fmt: skip


def accuracy(split, classes, noise, sampler, *, epsilon, batch, steps, rate):
    """Train once, and return the accuracy on the test records."""
    X, y, X_test, y_test = split
    columns = X.shape[1]
    model = (
        LogisticRegression(columns, bias=False)
        if classes == 2
        else SoftmaxRegression(columns, classes)
    )
    result = train_dp_sgd(
        model, X, y, batches=Batches(batch, sampler=sampler, steps=steps),
        noise=Noise(target_epsilon=epsilon, law=noise), clipping_norm=1.0, delta=DELTA,
        optimizer=SGD(rate, 0.9), watch=Watch(progress=False),
    )  # fmt: skip
    assert result.private
    assert result.epsilon <= epsilon
    return 100 * result.model.score(X_test, y_test)


def main(name, epsilons=EPSILONS, seeds=None):
    """Print a table of accuracies."""
    batch, epochs, rate, repeats = SETTINGS[name]
    census = adult() if name == "adult" else None
    splits = [census or mnist_5k(seed) for seed in range(seeds or repeats)]
    records = len(splits[0][0])
    classes = -(-records // batch)
    steps = epochs * classes
    print(f"{name}: {records} records, batches of {batch}, {steps} steps, delta = {DELTA:g}")
    print(f"{'':<26}" + "".join(f"{f'ε = {e:g}':>16}" for e in epsilons))
    for title, noise, sampler in strategies(steps, classes):
        cells = []
        for epsilon in epsilons:
            found = [
                accuracy(
                    split, 2 if census else 10, noise, sampler,
                    epsilon=epsilon, batch=batch, steps=steps, rate=rate,
                )
                for split in splits
            ]  # fmt: skip
            cells.append(f"{np.mean(found):>9.2f} ± {np.std(found):4.2f}")
        print(f"{title:<26}" + "".join(cells))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "mnist")

"""What the examples share: the recipe, the data, and a table of results.

The recipe is noisy gradient descent on all records: momentum 0.9, clipping norm 1, the mean of the
last half of the iterates, records of norm 1. Two numbers are left, the steps and the learning rate.
Each example takes them from *another* data set, treated as public (``choose.py`` repeats the
choice), so choosing them cost no privacy.
"""

from __future__ import annotations

import csv
import gzip
import lzma
from pathlib import Path

import numpy as np

from accountant.learn import (
    SGD,
    Batches,
    Chain,
    LogisticRegression,
    Noise,
    OrientedGradients,
    SoftmaxRegression,
    TrainingResult,
    UnitNorm,
    train_dp_sgd,
)

DATA = Path(__file__).parent / "data"
SEEDS = range(5)


def train(X, y, classes, *, epsilon, delta, steps, learning_rate, rng=None) -> TrainingResult:
    """Train a linear head by the recipe; two classes use the logistic model."""
    columns = X.shape[1]
    model = (
        LogisticRegression(columns, bias=False)
        if classes == 2
        else SoftmaxRegression(columns, classes)
    )
    return train_dp_sgd(
        model,
        X,
        y,
        batches=Batches(len(X), sampler="full", steps=steps),
        noise=Noise(target_epsilon=epsilon),
        clipping_norm=1.0,
        delta=delta,
        optimizer=SGD(learning_rate, 0.9),
        averaging="mean",
        rng=rng,
    )


def digits(seed):
    """Return 1,437 training and 360 test images of scikit-learn's digits, split by ``seed``."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    features = Chain(OrientedGradients(8, 8, cell=2), UnitNorm(0.5))(X / 16)
    return _split(features, y, 1437, seed)


def mnist_5k(seed):
    """Return 4,000 training and 1,000 test images of the 5,000, split by ``seed``."""
    with gzip.open(DATA / "mnist_5k.csv.gz") as file:
        table = np.loadtxt(file, delimiter=",")
    features = Chain(OrientedGradients(28, 28, cell=4), UnitNorm(0.5))(table[:, :-1] / 255)
    return _split(features, table[:, -1].astype(int), 4000, seed)


def _split(X, y, count, seed):
    order = np.random.default_rng(seed).permutation(len(X))
    train, test = order[:count], order[count:]
    return X[train], y[train], X[test], y[test]


# Adult: bins and categories are those of the census form, not of these records.
BINS = {
    0: (22, 26, 30, 35, 40, 45, 50, 55, 60, 65),  # age
    12: (20, 30, 38, 41, 46, 51, 60),  # hours per week
    10: (1, 3000, 5100, 7000, 10000),  # capital gain
    11: (1, 1600, 1800, 1950, 2200),  # capital loss
}
CATEGORIES = {
    1: "Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov Without-pay"
    " Never-worked",
    3: "Bachelors Some-college 11th HS-grad Prof-school Assoc-acdm Assoc-voc 9th 7th-8th 12th"
    " Masters 1st-4th 10th Doctorate 5th-6th Preschool",
    5: "Married-civ-spouse Divorced Never-married Separated Widowed Married-spouse-absent"
    " Married-AF-spouse",
    6: "Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty"
    " Handlers-cleaners Machine-op-inspct Adm-clerical Farming-fishing Transport-moving"
    " Priv-house-serv Protective-serv Armed-Forces",
    7: "Wife Own-child Husband Not-in-family Other-relative Unmarried",
    8: "White Asian-Pac-Islander Amer-Indian-Eskimo Other Black",
    9: "Female Male",
}


def adult():
    """Return the census records: the original 32,561 to train on and 16,281 to test on."""
    return *_adult("adult.data.xz"), *_adult("adult.test.xz")


def _adult(name):
    with lzma.open(DATA / name, "rt") as file:
        rows = [[cell.strip() for cell in row] for row in csv.reader(file) if len(row) == 15]
    columns = [np.ones(len(rows))]
    number = {c: np.array([float(row[c]) for row in rows]) for c in (0, 4, 10, 11, 12)}
    for c, edges in BINS.items():
        columns += list(np.eye(len(edges) + 1)[np.digitize(number[c], edges)].T)
    columns += [number[0] / 100, number[4] / 16, number[12] / 100]
    columns += [np.log1p(number[10]) / 12, np.log1p(number[11]) / 9]
    for c, names in CATEGORIES.items():
        columns += [np.array([row[c] == value for row in rows], float) for value in names.split()]
    columns.append(np.array([row[13] == "United-States" for row in rows], float))
    y = np.array([row[14].startswith(">50K") for row in rows]).astype(int)
    return UnitNorm()(np.column_stack(columns)), y


def report(title, settings, load, classes, delta, seeds=SEEDS):
    """Train with every setting and seed, and print accuracies and the guarantee."""
    print(f"{title} (delta = {delta:g}, {len(seeds)} seeds)")
    print(f"{'ε':>6} {'steps':>6} {'rate':>6} {'σ':>8} {'test accuracy':>16} {'train - test':>13}")
    data = {seed: load(seed) for seed in seeds}
    for epsilon, (steps, rate) in settings.items():
        tests, gaps = [], []
        for seed in seeds:
            X, y, X_test, y_test = data[seed]
            result = train(
                X, y, classes, epsilon=epsilon, delta=delta, steps=steps, learning_rate=rate
            )
            tests.append(100 * result.model.score(X_test, y_test))
            # The training accuracy is private; these data are not.
            gaps.append(100 * result.model.score(X, y) - tests[-1])
        sigma = result.plan.noise_multiplier
        spread = np.std(tests, ddof=1)
        print(
            f"{epsilon:>6} {steps:>6} {rate:>6} {sigma:>8.3f} {np.mean(tests):>9.2f} ± {spread:.2f}"
            f" {np.mean(gaps):>12.2f}"
        )
    print(result.statement)

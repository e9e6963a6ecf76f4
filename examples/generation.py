"""Synthetic tables, three ways: train on synthetic records, test on real ones (TSTR).

    python examples/generation.py adult|digits [seeds]

For each ε, the accuracy of a logistic regression trained on as many synthetic records as there are
real ones, beside the same model trained on the real records. Settings were fixed before: those for
Adult on half of its test file, whose other half is what accuracies are of; those for digits on
images of MNIST-5k, pooled to 8×8 pixels (``--choose``).
"""

import csv
import gzip
import lzma
import sys
import time
from typing import ClassVar

import numpy as np
from common import BINS, CATEGORIES, DATA
from sklearn.linear_model import LogisticRegression

from accountant.learn import Adam, Batches, Noise
from accountant.learn.generation import (
    Category,
    Domain,
    Numeric,
    PateGanSettings,
    synthesize_marginals,
    train_dp_gan,
    train_pate_gan,
)

EPSILONS = (1.0, 8.0)
# From the census form and the documentation, not from these records.
COLUMNS = {
    0: "age",
    1: "workclass",
    3: "education",
    5: "marital-status",
    6: "occupation",
    7: "relationship",
    8: "race",
    9: "sex",
    10: "capital-gain",
    11: "capital-loss",
    12: "hours-per-week",
    13: "native-country",
    14: "income",
}
ENDS = {0: (16, 100), 10: (0, 100_000), 11: (0, 5000), 12: (0, 100)}
PIXELS = [f"pixel {i}" for i in range(64)]
DIGITS = Domain(
    {name: Numeric((0, 5, 11, 16)) for name in PIXELS} | {"digit": Category(tuple(range(10)))}
)


def adult_domain():
    columns = {}
    for i, name in COLUMNS.items():
        if i in BINS:
            columns[name] = Numeric((ENDS[i][0], *BINS[i], ENDS[i][1]))
        elif i in CATEGORIES:
            columns[name] = Category((*CATEGORIES[i].split(), "?"))
    columns["native-country"] = Category(("United-States", "other"))
    columns["income"] = Category((">50K", "<=50K"))
    return Domain(columns)


def adult_file(name):
    with lzma.open(DATA / name, "rt") as file:
        rows = [[cell.strip().rstrip(".") for cell in row] for row in csv.reader(file)]
    rows = [row for row in rows if len(row) == 15]
    return {name: [row[i] for row in rows] for i, name in COLUMNS.items()}


def rows_of(table, rows):
    return {name: [column[i] for i in rows] for name, column in table.items()}


class Adult:
    """Train on the training file, test on one half of the test file; the other chose settings."""

    domain, target, delta = adult_domain(), "income", 1e-5
    pairs: ClassVar = [(name, "income") for name in domain.names[:-1]]
    pate = PateGanSettings(teachers=200, iterations=100, labels=32)

    def __init__(self, choose=False):
        test = adult_file("adult.test.xz")
        order = np.random.default_rng(0).permutation(len(test["age"]))
        half = len(order) // 2
        if choose:
            self.parts = rows_of(test, order[:6000]), rows_of(test, order[6000:half])
        else:
            self.parts = adult_file("adult.data.xz"), rows_of(test, order[half:])

    def split(self, seed):
        """Return the private table and the one to test on."""
        return self.parts

    def features(self, table):
        """Return what a classifier sees, and the labels."""
        codes = self.domain.encode(table)
        columns = [np.eye(k)[codes[:, i]] for i, k in enumerate(self.domain.sizes) if i < 12]
        return np.hstack(columns), codes[:, -1]


class Digits:
    """1,437 images to train on, 360 to test, split by the seed."""

    domain, target, delta = DIGITS, "digit", 1e-4
    pairs: ClassVar = [(name, "digit") for name in PIXELS]
    pate = PateGanSettings(teachers=50, iterations=100, labels=16)

    def __init__(self, choose=False):
        self.choose = choose

    def split(self, seed):
        """Return the private table and the one to test on."""
        if self.choose:
            with gzip.open(DATA / "mnist_5k.csv.gz") as file:
                table = np.loadtxt(file, delimiter=",")
            images = np.pad(table[:, :-1].reshape(-1, 28, 28), ((0, 0), (2, 2), (2, 2)))
            X = images.reshape(-1, 8, 4, 8, 4).mean(axis=(2, 4)).reshape(-1, 64) * 16 / 255
            y = table[:, -1].astype(int)
        else:
            from sklearn.datasets import load_digits

            X, y = load_digits(return_X_y=True)
        order = np.random.default_rng(seed).permutation(len(X))
        tables = []
        for rows in (order[:1437], order[1437:1797]):
            columns = {name: X[rows, i] for i, name in enumerate(PIXELS)}
            tables.append(columns | {"digit": y[rows]})
        return tables

    def features(self, table):
        """Return what a classifier sees, and the labels."""
        pixels = np.column_stack([np.asarray(table[name], float) for name in PIXELS])
        return pixels / 16.0, np.asarray(table["digit"]).astype(int)


def accuracy(problem, table, test):
    """Return the share of real records that a model of ``table`` gets right."""
    (x, y), (x_test, y_test) = problem.features(table), problem.features(test)
    if len(set(y.tolist())) == 1:
        return float(np.mean(y_test == y[0]))
    return LogisticRegression(max_iter=300).fit(x, y).score(x_test, y_test)


def methods(problem):
    """Return a name and a trainer for each method; a trainer takes records and ε."""
    domain, delta = problem.domain, problem.delta

    def marginals(pairs):
        return lambda table, epsilon: synthesize_marginals(
            table, domain, target_epsilon=epsilon, delta=delta, pairs=pairs
        )

    return {
        "marginals, pairs with the label": marginals(problem.pairs),
        "marginals, chosen tree": marginals("tree"),
        "DP-GAN": lambda table, epsilon: train_dp_gan(
            table,
            domain,
            batches=Batches(256, steps=2000),
            noise=Noise(target_epsilon=epsilon),
            delta=delta,
            optimizer=Adam(5e-3, 0.5),
            generator_rate=1e-3,
        ),
        "PATE-GAN": lambda table, epsilon: train_pate_gan(
            table, domain, target_epsilon=epsilon, delta=delta, settings=problem.pate
        ),
    }


def main(name, seeds, choose=False):
    problem = {"adult": Adult, "digits": Digits}[name](choose)
    splits = [problem.split(seed) for seed in range(seeds)]
    real = [100 * accuracy(problem, train, test) for train, test in splits]
    labels = [problem.features(test)[1] for _, test in splits]
    most = [100 * np.bincount(y).max() / len(y) for y in labels]
    print(f"{name}: real records {np.mean(real):.1f}, commonest class {np.mean(most):.1f}")
    for epsilon in EPSILONS:
        for method, fit in methods(problem).items():
            start, scores = time.perf_counter(), []
            for seed, (train, test) in enumerate(splits):
                found = fit(train, epsilon)
                assert found.private
                assert found.epsilon <= epsilon
                size = len(train[problem.target])
                scores.append(100 * accuracy(problem, found.sample(size, seed=seed), test))
            spread = np.std(scores, ddof=1) if seeds > 1 else 0.0
            print(
                f"ε = {epsilon:g}  {method:32s} {np.mean(scores):5.1f} ± {spread:.1f}"
                f"  ({(time.perf_counter() - start) / seeds:.0f} s each)",
                flush=True,
            )


if __name__ == "__main__":
    chosen = [word for word in sys.argv[1:] if word != "--choose"]
    main(
        chosen[0] if chosen else "adult",
        int(chosen[1]) if len(chosen) > 1 else 5,
        "--choose" in sys.argv,
    )

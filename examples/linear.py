"""Private linear models on four data sets: accuracy (R² for diabetes) against ε.

    python examples/linear.py [seeds] [figure.png]

Prints a table of means over the seeds beside the non-private model; with a second argument, and
matplotlib, also draws it. Adult and breast cancer: logistic regression by objective perturbation
with the default regularisation. Digits: softmax. Diabetes: AdaSSP.
"""

import sys

import numpy as np
from linear_data import adult, breast_cancer, diabetes, digits
from sklearn.linear_model import LogisticRegression

from accountant.learn.convex.losses import Softmax
from accountant.learn.convex.perturbation import perturb_objective
from accountant.learn.convex.statistics import ada_ssp

EPSILONS = (0.1, 0.5, 1.0, 2.0, 8.0)


def binary(data, epsilon, delta, seed):
    x, y, x_test, y_test = data
    if epsilon is None:
        model = LogisticRegression(C=100, max_iter=1000, fit_intercept=False).fit(x, y)
        return model.score(x_test, y_test)
    fit = perturb_objective(x, y, epsilon=epsilon, delta=delta, data_norm=1.0, rng=seed)
    return np.mean((x_test @ fit.value > 0) == (y_test > 0))


def softmax(data, epsilon, delta, seed):
    x, y, x_test, y_test = data
    if epsilon is None:
        model = LogisticRegression(C=100, max_iter=1000, fit_intercept=False).fit(x, y)
        return model.score(x_test, y_test)
    fit = perturb_objective(
        x, y, loss=Softmax(10), epsilon=epsilon, delta=delta, data_norm=1.0, rng=seed
    )
    return np.mean((x_test @ fit.value).argmax(axis=1) == y_test)


def regression(data, epsilon, delta, seed):
    x, y, x_test, y_test = data
    if epsilon is None:
        theta = np.linalg.lstsq(x, y, rcond=None)[0]
    else:
        theta = ada_ssp(
            x, y, epsilon=epsilon, delta=delta, data_norm=1.0, target_bound=1.0, rng=seed
        ).value
    residual = ((y_test - x_test @ theta) ** 2).sum()
    return 1 - residual / ((y_test - y_test.mean()) ** 2).sum()


def main(seeds=10, figure=None):
    whole = adult()
    problems = {
        "Adult": (lambda seed: whole, binary, 1e-5),
        "breast cancer": (breast_cancer, binary, 1e-4),
        "digits": (digits, softmax, 1e-4),
        "diabetes (R²)": (diabetes, regression, 1e-4),
    }
    curves = {}
    print(f"{'':16s}" + "".join(f"ε = {e:<8g}" for e in EPSILONS) + "not private")
    for name, (load, score, delta) in problems.items():
        row = []
        for epsilon in (*EPSILONS, None):
            runs = [score(load(seed), epsilon, delta, seed) for seed in range(seeds)]
            row.append((np.mean(runs), np.std(runs)))
        curves[name] = row
        print(f"{name:16s}" + "".join(f"{m:.3f}±{s:.3f} " for m, s in row), flush=True)
    if figure is not None:
        draw(curves, figure)


def draw(curves, path):
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    panes = plt.subplots(1, len(curves), figsize=(13, 3.2))
    for axes, (name, row) in zip(panes[1], curves.items(), strict=True):
        mean, spread = np.array(row[:-1]).T
        axes.errorbar(EPSILONS, mean, yerr=spread, marker="o", capsize=2, label="private")
        axes.axhline(row[-1][0], linestyle="--", color="gray", label="not private")
        axes.set(xscale="log", xlabel="ε", title=name)
    panes[1][0].set_ylabel("test accuracy")
    panes[1][0].legend()
    panes[0].tight_layout()
    panes[0].savefig(path, dpi=300)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:])

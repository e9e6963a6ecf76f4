"""Private linear models beside diffprivlib's and scikit-learn's, in one run.

    python benchmarks/convex.py [seeds]

Prints mean test accuracies on Adult over the seeds, and the times of one fit. Needs scikit-learn;
diffprivlib is optional. Every setting below is fixed beforehand.
"""

import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from linear_data import adult

from accountant.learn.convex.bolt_on import bolt_on_sgd
from accountant.learn.convex.gradient import noisy_gradient_descent
from accountant.learn.convex.perturbation import perturb_objective, perturb_output

try:
    from diffprivlib.models import LogisticRegression as PeerRegression
except ImportError:
    PeerRegression = None

EPSILONS = (0.1, 0.5, 1.0, 2.0, 8.0)
DELTA = 1e-5


def methods(x, y):
    n = len(x)
    common = {"delta": DELTA, "data_norm": 1.0}

    def objective(epsilon, seed):
        return perturb_objective(x, y, epsilon=epsilon, rng=seed, **common).value

    def pure(epsilon, seed):
        return perturb_objective(x, y, epsilon=epsilon, delta=0, data_norm=1.0, rng=seed).value

    def output(epsilon, seed):
        lam = 100.0 / epsilon
        return perturb_output(x, y, epsilon=epsilon, regularization=lam, rng=seed, **common).value

    def descent(epsilon, seed):
        return noisy_gradient_descent(
            x, y, epsilon=epsilon, steps=100, step_size=4 / n, momentum=0.9, rng=seed, **common
        ).value

    def bolt_on(epsilon, seed):
        return bolt_on_sgd(
            x, y, epsilon=epsilon, regularization=100.0 / epsilon / n, passes=3, rng=seed, **common
        ).value

    table = {
        "objective": objective,
        "objective, pure": pure,
        "output": output,
        "noisy GD": descent,
        "bolt-on": bolt_on,
    }
    if PeerRegression is not None:

        def peer(epsilon, seed):
            model = PeerRegression(
                epsilon=epsilon,
                data_norm=1.0,
                fit_intercept=False,
                max_iter=1000,
                random_state=seed,
            )
            model.fit(x, y)
            return model.coef_[0]

        table["diffprivlib"] = peer
    return table


def main(seeds=10):
    warnings.simplefilter("ignore")
    x, y, x_test, y_test = adult()
    print(f"{'method':18s}" + "".join(f"{e:>14g}" for e in EPSILONS) + "   seconds a fit")
    for name, fit in methods(x, y).items():
        row, seconds = [], []
        for epsilon in EPSILONS:
            scores = []
            for seed in range(seeds):
                start = time.perf_counter()
                theta = fit(epsilon, seed)
                seconds.append(time.perf_counter() - start)
                scores.append(np.mean((x_test @ theta > 0) == (y_test > 0)))
            row.append(f"{100 * np.mean(scores):8.2f} ±{100 * np.std(scores):4.2f}")
        print(f"{name:18s}" + "".join(f"{r:>14s}" for r in row), end="")
        print(f"   {np.median(seconds):.2f}", flush=True)
    for c in (1.0, 100.0):
        start = time.perf_counter()
        model = LogisticRegression(C=c, max_iter=1000, fit_intercept=False).fit(x, y)
        seconds = time.perf_counter() - start
        score = 100 * model.score(x_test, y_test)
        print(f"scikit-learn, C = {c:g}: {score:.2f}, {seconds:.2f} s (not private)")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

"""Do two installations give the same answers? A thousand random questions over the public entries.

    python benchmarks/same_answers.py ask before.json      # with the one installation
    python benchmarks/same_answers.py ask after.json       # with the other
    python benchmarks/same_answers.py compare before.json after.json

Prints every answer that is not the same to the last bit: *narrower* brackets and smaller upper ends
are improvements, *wider* ones are not, and brackets that do not *overlap* are a fault of one of
the two. Exits with 1 when something is wider or apart.
"""

import json
import math
import random
import sys
import warnings

import accountant as ac
from accountant import attack, conversions
from accountant import mechanisms as m

QUESTIONS = 1000


def log_uniform(rng, low, high):
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def dp_sgd(rng):
    q = rng.choice([1.0, log_uniform(rng, 1e-5, 0.9), log_uniform(rng, 1e-3, 0.5)])
    return q, log_uniform(rng, 0.4, 20.0), int(log_uniform(rng, 1, 1e7))


def quick(rng):
    q, sigma, steps = dp_sgd(rng)
    delta, target = log_uniform(rng, 1e-12, 0.1), log_uniform(rng, 0.1, 10.0)
    return rng.choice(
        [
            f"ac.epsilon_bounds({q!r}, {sigma!r}, {steps}, {delta!r})",
            f"ac.delta_bounds({q!r}, {sigma!r}, {steps}, {target!r})",
            f"ac.get_epsilon({q!r}, {sigma!r}, {steps}, {delta!r}, method='rdp')",
            f"ac.get_rdp({q!r}, {sigma!r}, {steps}, {1 + target!r})",
            f"ac.calibrate_sigma({target!r}, delta={delta!r}, q={q!r}, steps={min(steps, 10**5)})",
            f"ac.calibrate_steps({target!r}, delta={delta!r}, q={q!r}, sigma={sigma!r})",
            f"attack.tradeoff({rng.uniform(0.001, 0.9)!r}, {q!r}, {sigma!r}, {min(steps, 10**4)})"
            if hasattr(attack, "tradeoff")
            else f"ac.get_delta({q!r}, {sigma!r}, {steps}, {target!r})",
        ]
    )


def mechanism(rng):
    scale = log_uniform(rng, 0.5, 20.0)
    return rng.choice(
        [
            f"ac.Gaussian({scale!r})",
            f"ac.Laplace({scale!r})",
            f"ac.DiscreteGaussian({scale!r})",
            f"ac.DiscreteLaplace({scale!r})",
            f"ac.RandomizedResponse({1 / scale!r})",
            f"ac.RandomizedResponse({1 / scale!r}, k=5)",
            f"ac.PureDP({1 / scale!r})",
            f"ac.ApproximateDP({1 / scale!r}, delta={log_uniform(rng, 1e-12, 1e-7)!r})",
            f"ac.ZCDP({0.5 / scale**2!r})",
            f"ac.GDP({1 / scale!r})",
            f"ac.ExponentialMechanism({1 / scale!r})",
            f"ac.ReportNoisyMax({1 / scale!r})",
            f"ac.BestOfRuns.with_mean(ac.Gaussian({2 * scale!r}), {rng.uniform(2, 20)!r})",
            (
                f"ac.MixtureOfGaussians({scale!r}, sensitivities=(0.0, 1.0, 2.0),"
                " probabilities=(0.9, 0.08, 0.02))"
            ),
        ]
    )


def release(rng):
    one = mechanism(rng)
    if rng.random() < 0.4 and "BestOf" not in one:
        one = f"ac.PoissonSampled({one}, {log_uniform(rng, 1e-3, 0.5)!r})"
    if rng.random() < 0.5:
        one = f"{int(log_uniform(rng, 1, 300))} * {one}"
    return one


def composed(rng):
    whole = " + ".join(release(rng) for _ in range(rng.choice([1, 1, 2, 3])))
    question = rng.choice(
        [
            f"epsilon_bounds({log_uniform(rng, 1e-10, 1e-2)!r})",
            f"epsilon_bounds({log_uniform(rng, 1e-10, 1e-2)!r})",
            f"delta_bounds({log_uniform(rng, 0.05, 5.0)!r})",
            f"rdp({1 + log_uniform(rng, 0.1, 100.0)!r})",
            "mu",
            "rho",
            f"tradeoff({rng.uniform(0.01, 0.9)!r})",
            "epsilon_bounds(0.0)",
        ]
    )
    return f"({whole}).{question}"


def converted(rng):
    rho, delta, mu = (log_uniform(rng, *ends) for ends in ((1e-4, 2), (1e-12, 1e-2), (0.01, 4)))
    return rng.choice(
        [
            f"conversions.zcdp_to_epsilon({rho!r}, {delta!r})",
            f"conversions.gdp_to_epsilon({mu!r}, {delta!r})",
            f"conversions.gdp_to_delta({mu!r}, {rho!r})",
            f"conversions.rdp_to_epsilon(lambda a: {rho!r} * a, {delta!r})",
            f"conversions.pure_to_zcdp({mu!r})",
        ]
    )


def answer(text):
    scope = {"ac": ac, "m": m, "conversions": conversions, "attack": attack}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = eval(text, scope)
            # A property in one installation may be a method in the other.
            found = found() if callable(found) else found
    except (ac.AccountantError, AttributeError, TypeError) as error:
        return {"error": type(error).__name__}
    ends = (found.lower, found.upper) if isinstance(found, ac.Bounds) else (None, found)
    return {"lower": ends[0], "upper": float(ends[1])}


def ask(path):
    rng = random.Random(20260101)
    kinds = (quick, composed, composed, converted)
    texts = [rng.choice(kinds)(rng) for _ in range(QUESTIONS)]
    with open(path, "w") as file:
        json.dump({text: answer(text) for text in texts}, file, indent=0)


def verdict(text, one, other):
    if one == other or "error" in one:
        return None
    if "error" in other:
        return "refused"
    if one["lower"] is None:
        # One number: an upper bound, but for the trade-off function, which is a lower one.
        better = other["upper"] < one["upper"]
        return (
            "narrower" if better != (".tradeoff(" in text or "calibrate_steps" in text) else "wider"
        )
    if other["lower"] > one["upper"] or other["upper"] < one["lower"]:
        return "apart"
    if other["lower"] >= one["lower"] and other["upper"] <= one["upper"]:
        return "narrower"
    return "wider" if other["upper"] > one["upper"] else "lower end lower"


def compare(before, after):
    with open(before) as one, open(after) as other:
        first, second = json.load(one), json.load(other)
    counts = {}
    for text, old in first.items():
        found = verdict(text, old, second[text])
        if found is not None:
            counts[found] = counts.get(found, 0) + 1
            print(f"{found}: {text}\n  before {old}\n  after  {second[text]}")
    same = len(first) - sum(counts.values())
    print(f"{len(first)} questions, {same} the same to the last bit; {counts or 'no difference'}")
    return 1 if {"wider", "apart", "refused", "lower end lower"} & set(counts) else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["ask"]:
        ask(sys.argv[2])
    else:
        sys.exit(compare(*sys.argv[2:4]))

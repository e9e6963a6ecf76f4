"""Broken releases outside DP-SGD: convex fits, votes, local reports."""

import math

import numpy as np

from accountant.audit import shipped
from accountant.learn import local as bounded
from accountant.learn.convex import fit
from accountant.learn.convex import perturbation as output
from accountant.learn.convex.losses import HuberHinge
from accountant.learn.local import KaryResponse
from accountant.learn.pate import GNMax
from accountant.learn.selection import tuning
from accountant.mechanisms import Gaussian
from accountant.noise import SecureGenerator
from support.planted.checks import finding
from support.planted.registry import Bug, wrap

DELTA = 1e-5


def sampling(seed):
    return shipped.Sampling(50_000, seed, DELTA, 0.95)


def output_perturbation_audit():
    """output perturbation under replace-one, from the two exact minima (`audit_mechanism`)"""
    return finding(shipped.output_perturbation(sampling(4)))


def twin_fits():
    """twin fits with one seed differ by at most the stated sensitivity"""
    x = np.array([[1.0], [0.5], [10.0]])
    y = np.array([1.0, -1.0, 1.0])
    given = {"epsilon": 1.0, "delta": DELTA, "data_norm": 1.0, "regularization": 1000.0}
    pair = [
        output.perturb_output(x[:n], y[:n], **given, loss=HuberHinge(0.5), rng=3) for n in (2, 3)
    ]
    distance = np.linalg.norm(pair[0].value - pair[1].value)
    stated = pair[0].details["sensitivity"]
    return None if distance <= stated * (1 + 1e-6) else f"moved by {distance}, not {stated}"


def stated_mechanisms():
    """the mechanisms a fit returns stay within the ε asked for"""
    x, y = np.array([[1.0]]), np.array([1.0])
    for epsilon in (0.5, 8.0, 50.0):
        made = output.perturb_output(
            x, y, epsilon=epsilon, delta=DELTA, data_norm=1.0, regularization=10.0, rng=1
        )
        spent = sum(mechanism.epsilon(DELTA) for mechanism in made.mechanisms)
        if not spent <= epsilon:
            return f"{spent} at a target of {epsilon}"
    return None


def responses_audit():
    """k-ary randomised response (`audit_observations`)"""
    return finding(shipped.k_ary_response(sampling(7)))


def local_values_audit():
    """local Laplace reports (`audit_observations`)"""
    return finding(shipped.local_laplace(sampling(9)))


def votes_audit():
    """GNMax with two classes, exactly (`audit_masses`)"""
    return finding(shipped.two_class_vote(1e-3))


def runs_of_a_search():
    """the number of runs of a search varies as its cost assumes"""
    search = tuning.search_cost(Gaussian(1.0), 5.0, "geometric")
    drawn = [tuning.draw_runs(search, SecureGenerator(seed)) for seed in range(300)]
    alone = drawn.count(1) / 300
    # Geometric with mean five: one run with probability a fifth.
    return None if 0.1 < alone < 0.32 else f"a single run in {alone:.0%} of all searches"


def trust_the_rows(original):
    return lambda rows, norm: rows


def one_long_step(original):
    def minimize(problem, tolerance):
        return 3.0 * original(problem, tolerance)

    return minimize


def classical_noise(original):
    return lambda epsilon, delta: math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon


def half_the_scale(original):
    return lambda generator, n, scale: original(generator, n, 0.5 * scale)


def binary_truth(patch):
    truth = property(lambda self: math.exp(self.epsilon) / (1.0 + math.exp(self.epsilon)))
    patch.setattr(KaryResponse, "truth", truth)


def one_count_moves(patch):
    patch.setattr(GNMax, "answer_mechanism", property(lambda self: Gaussian(self.sigma)))


def the_mean_number(original):
    return lambda search, generator: 5


BUGS = (
    Bug(
        "wrong-relation",
        "add-or-remove's sensitivity under replace-one",
        wrap(output, "relation_factor", lambda original: lambda relation: 1.0),
        output_perturbation_audit,
        True,
    ),
    Bug(
        "rows-trusted",
        "rows longer than the stated data norm are not scaled down",
        wrap(fit, "clip_rows", trust_the_rows),
        twin_fits,
    ),
    Bug(
        "minimum-unverified",
        "an unconverged point is taken for the minimum",
        wrap(output, "minimize", one_long_step),
        twin_fits,
    ),
    Bug(
        "classical-noise",
        "√(2 log(1.25/δ))/ε is used for ε > 1",
        wrap(output, "calibrate_sigma", classical_noise),
        stated_mechanisms,
    ),
    Bug(
        "binary-truth",
        "k-ary responses are true as often as binary ones",
        binary_truth,
        responses_audit,
        True,
    ),
    Bug(
        "half-the-scale",
        "Laplace noise of half the scale",
        wrap(bounded, "rounded_laplace", half_the_scale),
        local_values_audit,
        True,
    ),
    Bug(
        "one-count-moves",
        "a moved vote is said to change one count",
        one_count_moves,
        votes_audit,
        True,
    ),
    Bug(
        "fixed-number-of-runs",
        "a search makes its mean number of runs, not a random one",
        wrap(tuning, "draw_runs", the_mean_number),
        runs_of_a_search,
    ),
)

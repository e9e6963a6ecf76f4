"""Broken releases outside DP-SGD: convex fits, votes, local reports."""

import math

import numpy as np

from accountant.audit import shipped
from accountant.learn.convex import perturbation as output
from accountant.learn.convex.losses import HuberHinge
from accountant.learn.selection import tuning
from accountant.mechanisms import Gaussian
from accountant.noise import SecureGenerator
from support.planted.checks import finding
from support.planted.registry import collected

DELTA = 1e-5


def output_perturbation_audit():
    """output perturbation under replace-one, from the two exact minima (`audit_mechanism`)"""
    return finding(shipped.output_perturbation(shipped.Sampling(50_000, 4, DELTA, 0.95)))


def twin_fits():
    """twin fits with one seed differ by at most the stated sensitivity"""
    x = np.array([[1.0], [0.5], [10.0]])
    y = np.array([1.0, -1.0, 1.0])
    given = {"epsilon": 1.0, "delta": DELTA, "data_norm": 1.0, "regularization": 1000.0}
    fits = [
        output.perturb_output(x[:n], y[:n], **given, loss=HuberHinge(0.5), rng=3) for n in (2, 3)
    ]
    distance = np.linalg.norm(fits[0].value - fits[1].value)
    stated = fits[0].details["sensitivity"]
    return None if distance <= stated * (1 + 1e-6) else f"moved by {distance}, not {stated}"


def stated_mechanisms():
    """the mechanisms a fit returns stay within the ε asked for"""
    x, y = np.array([[1.0]]), np.array([1.0])
    for epsilon in (0.5, 8.0, 50.0):
        fit = output.perturb_output(
            x, y, epsilon=epsilon, delta=DELTA, data_norm=1.0, regularization=10.0, rng=1
        )
        spent = sum(mechanism.epsilon(DELTA) for mechanism in fit.mechanisms)
        if not spent <= epsilon:
            return f"{spent} at a target of {epsilon}"
    return None


def responses_audit():
    """k-ary randomised response (`audit_observations`)"""
    return finding(shipped.k_ary_response(shipped.Sampling(50_000, 7, DELTA, 0.95)))


def local_values_audit():
    """local Laplace reports (`audit_observations`)"""
    return finding(shipped.local_laplace(shipped.Sampling(50_000, 9, DELTA, 0.95)))


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


BUGS, bug = collected()


@bug("learn.convex.perturbation:relation_factor", output_perturbation_audit)
def wrong_relation(original, relation):
    """add-or-remove's sensitivity under replace-one"""
    return 1.0


@bug("learn.convex.fit:clip_rows", twin_fits)
def rows_trusted(original, rows, norm):
    """rows longer than the stated data norm are not scaled down"""
    return rows


@bug("learn.convex.perturbation:minimize", twin_fits)
def minimum_unverified(original, problem, tolerance):
    """an unconverged point is taken for the minimum"""
    return 3.0 * original(problem, tolerance)


@bug("learn.convex.perturbation:calibrate_sigma", stated_mechanisms)
def classical_noise(original, epsilon, delta):
    """√(2 log(1.25/δ))/ε is used for ε > 1"""
    return math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon


@bug("learn.local:KaryResponse.truth", responses_audit)
def binary_truth(original, self):
    """k-ary responses are true as often as binary ones"""
    return math.exp(self.epsilon) / (1.0 + math.exp(self.epsilon))


@bug("learn.local:rounded_laplace", local_values_audit)
def half_the_scale(original, generator, n, scale):
    """Laplace noise of half the scale"""
    return original(generator, n, 0.5 * scale)


@bug("learn.pate:GNMax.answer_mechanism", votes_audit)
def one_count_moves(original, self):
    """a moved vote is said to change one count"""
    return Gaussian(self.sigma)


@bug("learn.selection.tuning:draw_runs", runs_of_a_search)
def fixed_number_of_runs(original, search, generator):
    """a search makes its mean number of runs, not a random one"""
    return 5

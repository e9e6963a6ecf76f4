"""Profiles that are nearly one, against closed forms in many digits (Theorem G15)."""

import math
import types

import numpy as np
import pytest
from mpmath import mp, mpf

import accountant as ac
from accountant.analyses.pld import Composed, composed
from accountant.analyses.pld.nearly_one import MOST, log_overlap
from accountant.analyses.pld.saddle_point import coarse_law
from accountant.pairs.base import Masses
from support import every_mechanism


def rest_of_responses(epsilon, loss, count):
    """Return 1 - δ(ε) of ``count`` binary responses, a finite sum."""
    yes = 1 / (1 + mp.exp(-mpf(loss)))
    total = mpf(0)
    for k in range(count + 1):
        share = mp.binomial(count, k) * yes**k * (1 - yes) ** (count - k)
        total += share * min(mpf(1), mp.exp(mpf(epsilon) - (2 * k - count) * mpf(loss)))
    return total


def rest_of_gaussian(epsilon, mu):
    """Return 1 - δ(ε) of N(μ, 1) against N(0, 1)."""
    shift = mpf(epsilon) / mu
    return mp.ncdf(shift - mu / 2) + mp.exp(mpf(epsilon)) * mp.ncdf(-shift - mu / 2)


def farthest(ask):
    """Return the largest ε whose δ is answered as nearly one, to a thousandth."""
    low, high = 0.0, 1.0
    while nearly_one(ask(high)):
        low, high = high, 2.0 * high
    while high - low > 1e-3 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if nearly_one(ask(middle)) else (low, middle)
    return low


def nearly_one(found):
    return found is not None and found.lower > 0.5


def overlaps(composed):
    return composed._nearly_one.bracket


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(("loss", "count"), [(1.0, 300), (0.5, 1100), (4.0, 60)])
def test_responses_up_to_the_last_epsilon_that_is_answered(loss, count):
    ask = overlaps(Composed([(ac.RandomizedResponse(loss).pairs()[0], count)]))
    last = farthest(ask)
    assert last > 0.0
    with mp.workdps(60):
        for share in (0.0, 0.7, 1.0):
            rest = rest_of_responses(share * last, loss, count)
            assert mpf(1) - mpf(ask(share * last).lower) >= rest
        # The Chernoff bound loses no more than a factor of the size of the losses' deviation.
        assert mp.log(rest) > 1.3 * MOST


@pytest.mark.parametrize(("sigma", "count"), [(1.0, 400), (20.0, 10**6)])
def test_gaussian_noise(sigma, count):
    ask = overlaps(Composed([(ac.Gaussian(sigma).pairs()[0], count)]))
    last = farthest(ask)
    with mp.workdps(60):
        mu = mp.sqrt(count) / mpf(sigma)
        for share in (0.01, 0.5, 1.0):
            rest = rest_of_gaussian(share * last, mu)
            assert mpf(1) - mpf(ask(share * last).lower) >= rest
        assert mp.log(rest) > 1.3 * MOST


def test_kinds_multiply():
    response, noise = ac.RandomizedResponse(1.0).pairs()[0], ac.Gaussian(2.0).pairs()[0]
    ask = overlaps(Composed([(response, 80), (noise, 800)]))
    last = farthest(ask)
    with mp.workdps(50):
        yes, mu = 1 / (1 + mp.exp(-1)), mp.sqrt(800) / 2
        for share in (0.2, 0.6, 1.0):
            rest = mpf(0)
            for k in range(81):
                mass = mp.binomial(80, k) * yes**k * (1 - yes) ** (80 - k)
                rest += mass * rest_of_gaussian(mpf(share * last) - (2 * k - 80), mu)
            assert mpf(1) - mpf(ask(share * last).lower) >= rest


def test_the_overlap_is_at_least_the_integral():
    """Of Gaussian noise it is exp(-t(1 - t)/2σ²), from which cells are hardly off."""
    for sigma in (0.3, 1.0, 8.0):
        composed = Composed([(ac.Gaussian(sigma).pairs()[0], 1)])
        ((pair, _),), (law,) = composed._used, composed._laws
        for order in (0.01, 0.3, 0.5, 0.85):
            truth = -order * (1.0 - order) / (2.0 * sigma**2)
            assert truth < log_overlap(pair, law, order) < 0.99 * truth


def test_masses_are_raised_by_their_errors():
    """At an error of a tenth and masses of zero, known to 1e-300."""
    masses = Masses(np.array([0.5, 0.25, 0.25]), np.array([0.25, 0.75, 0.0]), 0.1)
    pair = types.SimpleNamespace(masses=lambda edges: masses)
    law = types.SimpleNamespace(low=np.array([0.0]), high=np.array([1.0]))
    with mp.workdps(40):
        p = [mpf(1.1) * mpf(float(x)) + mpf(1e-300) for x in masses.p]
        q = [mpf(1.1) * mpf(float(x)) + mpf(1e-300) for x in masses.q]
        for order in (0.5, 0.01, 0.002):
            at = mpf(order)
            truth = mp.log(sum(a ** (1 - at) * b**at for a, b in zip(p, q, strict=True)))
            assert 5e-13 < log_overlap(pair, law, order) - truth < 2e-12


def test_infinite_losses_overlap_with_nothing():
    pair = ac.DominatingPMFs((0.25, 0.25, 0.5), (0.125, 0.875, 0.0), infinite_loss=True).pairs()[0]
    found = Composed([(pair, 200)]).delta_bounds(0.0)
    assert found == ac.Bounds(found.lower, 1.0)
    assert 1.0 - 1e-12 < found.lower < 1.0


def test_a_million_releases_need_no_grid(monkeypatch):
    """Such an answer took seconds, and its lower end was 0.9996."""
    monkeypatch.setattr(Composed, "_refine", None)
    whole = 10**6 * ac.DiscreteGaussian(0.7, sensitivity=3) + 10**6 * ac.Laplace(2.0)
    found = whole.delta_bounds(1.0)
    assert 1.0 - 1e-12 < found.lower < found.upper == 1.0


def test_what_only_bounds_from_above_has_no_lower_end():
    pair = ac.RandomizedResponse(1.0).pairs()[0]
    assert Composed([(pair, 10**4)], upper_alone=True).delta_bounds(1.0) == ac.Bounds(0.0, 1.0)
    assert Composed([(pair, 10**4)]).delta_bounds(1.0).lower > 1.0 - 1e-12


def test_the_bracket_joins_that_of_the_grid(monkeypatch):
    """Across the last ε that is answered so, δ falls and the brackets are consistent."""
    composed = Composed([(ac.RandomizedResponse(0.5).pairs()[0], 1000)])
    last = farthest(overlaps(composed))
    near, far = composed.delta_bounds(last), composed.delta_bounds(1.01 * last)
    assert near.lower > 1.0 - 1e-12
    assert far.lower <= near.upper
    assert math.isclose(far.upper, 1.0, rel_tol=1e-5)


def test_cells_without_digits_do_not_hide_that_the_laws_differ():
    """Masses that are differences of a user's functions, beside mass at infinity."""
    pair = every_mechanism.by_density(1e-10).pairs()[0]
    found = overlaps(Composed([(pair, 10**4)]))(1.0)
    assert found is not None
    # Of the finite losses alone that is the overlap of Gaussian noise of scale 1/100.
    with mp.workdps(60):
        assert mpf(1) - mpf(found.lower) >= (1 - mpf(1e-10)) ** 10**4 * rest_of_gaussian(1.0, 100)
    with mp.workdps(30):
        exact = mp.log1p(-mpf(1e-10)) / 2 - mpf(1) / 8
    assert exact <= log_overlap(pair, coarse_law(pair, 1), 0.5) <= exact + 1e-4


def test_no_overlap_is_above_one():
    class Blurred:
        """No cell has digits."""

        def masses(self, edges):
            return Masses(np.ones(edges.size + 1), np.ones(edges.size + 1), 1e3)

    law = coarse_law(ac.Gaussian(1.0).pairs()[0], 1)
    assert log_overlap(Blurred(), law, 0.5) == 0.0


def test_a_grid_for_an_upper_end_alone_is_not_refined_where_delta_is_nearly_one(monkeypatch):
    """1 - δ is 1e-9: more than is known without a grid, and less than this grid resolves."""
    asked = []
    made = composed.law_within
    monkeypatch.setattr(
        composed, "law_within", lambda *given: asked.append(given[1]) or made(*given)
    )
    pairs = [(ac.Gaussian(1.0).pairs()[0], 10**4), (ac.Laplace(1.0).pairs()[0], 1)]
    found = Composed(pairs, upper_alone=True).delta_bounds(4400.0)
    assert len(asked) == 1
    with mp.workdps(40):
        rest = rest_of_gaussian(4400.0, mpf(100))  # of fewer releases
        assert math.exp(MOST) < rest < 1e-8
        assert mpf(found.upper) >= 1 - rest

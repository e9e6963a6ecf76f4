"""Random problems against enclosures computed on the spot, in ball arithmetic (support/oracle).

``HARDEN_PROBLEMS=100000 pytest -m slow tests/hardening/test_sweep.py`` is the nightly run. Problem
number k is drawn from k alone: what a failure names can be run again on its own.
"""

import math
import os
import random
import sys
import warnings

import pytest

pytest.importorskip("flint")
from flint import arb, fmpz

import accountant as ac
from accountant._core import answers as core
from support.oracle import composed, psg

PROBLEMS = int(os.environ.get("HARDEN_PROBLEMS", "2000"))


def between(rng, low, high):
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def overlaps(bracket, truth):
    """Whether a bracket may hold a number that a ball holds: no tolerance on either side."""
    lower, upper = bracket
    return not (arb(lower) > truth or arb(upper) < truth)


def exact_for(bracket, delta, profile):
    """Whether ε(δ) may lie in a bracket: the profile falls, so it is asked at both ends."""
    lower, upper = bracket
    return not (upper < math.inf and profile(upper) > arb(delta)) and not (
        lower > 0.0 and profile(lower) < arb(delta)
    )


def one_step(rng):
    """Poisson subsampling, once."""
    q, sigma, epsilon = between(rng, 1e-7, 0.999), between(rng, 0.2, 50.0), between(rng, 1e-4, 30)
    way = rng.choice(["remove", "add"])
    direction = core.REMOVE if way == "remove" else core.ADD
    with composed.precision(600):
        found = core.delta_bounds(q, sigma, 1.0, epsilon, direction)
        fits = overlaps(found, psg.closed_form(q, sigma, 1, epsilon, way))
        delta = between(rng, 1e-18, 0.5)
        found = core.epsilon_bounds(q, sigma, 1.0, delta, direction)
        return fits and exact_for(found, delta, lambda e: psg.closed_form(q, sigma, 1, e, way)), (
            q,
            sigma,
            epsilon,
            delta,
            way,
        )


def gaussians(rng):
    """Plain Gaussian noise, composed."""
    sigma, count = between(rng, 0.1, 1e4), round(between(rng, 1, 1e6))
    epsilon, delta = between(rng, 1e-5, 1e3), between(rng, 1e-30, 0.9)
    truth = lambda e: composed.gaussian(1 / arb(sigma), e, count, bits=900)  # noqa: E731
    with composed.precision(900):
        fits = overlaps(core.delta_bounds(1.0, sigma, count, epsilon, core.EITHER), truth(epsilon))
        found = core.epsilon_bounds(1.0, sigma, count, delta, core.EITHER)
        return fits and exact_for(found, delta, truth), (sigma, count, epsilon, delta)


def different_gaussians(rng):
    """Gaussian noise of several sizes, composed on one contour."""
    import numpy as np

    size = rng.randint(2, 6)
    sigma = np.array([between(rng, 0.5, 100.0) for _ in range(size)])
    count = np.array([float(round(between(rng, 1, 1000))) for _ in range(size)])
    epsilon, delta = between(rng, 1e-3, 50.0), between(rng, 1e-20, 0.5)
    ones = np.ones(size)
    with composed.precision(700):
        square = sum(arb(n) / arb(s) ** 2 for n, s in zip(count, sigma, strict=True))
        truth = lambda e: composed.gaussian(square.sqrt(), e, 1, bits=700)  # noqa: E731
        found = core.heterogeneous_delta_bounds(ones, sigma, count, epsilon, core.EITHER)
        fits = overlaps(found, truth(epsilon))
        found = core.heterogeneous_epsilon_bounds(ones, sigma, count, delta, core.EITHER)
        return fits and exact_for(found, delta, truth), (sigma, count, epsilon, delta)


def renyi(rng):
    """The Rényi curve of one subsampled step, at an integer order."""
    q, sigma, order = between(rng, 1e-6, 0.999), between(rng, 0.3, 30.0), rng.randint(2, 64)
    with composed.precision(600):
        odds = [
            arb(fmpz(math.comb(order, k))) * (1 - arb(q)) ** (order - k) * arb(q) ** k
            * (arb(k * (k - 1)) / (2 * arb(sigma) ** 2)).exp()
            for k in range(order + 1)
        ]  # fmt: skip
        truth = sum(odds, arb(0)).log() / (order - 1)
        found = core.renyi_bounds(q, sigma, float(order), core.REMOVE)
        return overlaps(found, truth), (q, sigma, order)


def responses(rng):
    """Randomised response, composed on the grid."""
    epsilon0, count = between(rng, 0.01, 3.0), rng.randint(1, 60)
    epsilon = between(rng, 0.01, 1.0) * epsilon0 * count
    found = (count * ac.RandomizedResponse(epsilon0)).delta_bounds(epsilon)
    truth = composed.randomized_response(epsilon0, count, epsilon)
    return overlaps((found.lower, found.upper), truth), (epsilon0, count, epsilon)


def laplace(rng):
    """Laplace noise, composed on the grid."""
    scale, count = between(rng, 0.5, 10.0), rng.randint(1, 4)
    epsilon = between(rng, 0.05, 0.95) * count / scale
    found = (count * ac.Laplace(scale)).delta_bounds(epsilon)
    return overlaps((found.lower, found.upper), composed.laplace(scale, count, epsilon)), (
        scale,
        count,
        epsilon,
    )


def steps(rng):
    """Many subsampled steps, by the oracle's own contour sums."""
    # Where the oracle takes some hundredths of a second: about the mean of the loss, and above.
    q, sigma, count = between(rng, 0.05, 0.5), between(rng, 1.0, 4.0), rng.randint(20, 300)
    mean = count * q * q * math.expm1(1.0 / sigma**2) / 2.0
    epsilon = max(mean + rng.uniform(-1.0, 4.0) * math.sqrt(2.0 * mean), 0.01)
    way = rng.choice(["remove", "add"])
    direction = core.REMOVE if way == "remove" else core.ADD
    try:
        with warnings.catch_warnings():
            # The oracle's search for its contour may look far away.
            warnings.simplefilter("ignore", RuntimeWarning)
            truth, _ = psg.profile(q, sigma, count, epsilon, way, methods=("line",))
    except (psg.NotConverged, ArithmeticError, ValueError):
        return True, None  # the oracle has no enclosure
    found = core.delta_bounds(q, sigma, float(count), epsilon, direction)
    with composed.precision(300):
        return overlaps(found, truth), (q, sigma, count, epsilon, way)


# How many of every hundred; the last two cost the most.
SHARES = {one_step: 30, gaussians: 25, different_gaussians: 12, renyi: 25, responses: 5, laplace: 2}
SHARES[steps] = 1
KINDS = [kind for kind, share in SHARES.items() for _ in range(share)]


def wrong(numbers):
    for k in numbers:
        kind = KINDS[k % 100]
        fine, what = kind(random.Random(k))
        if not fine:
            yield k, kind.__name__, what


def test_a_few_problems():
    cheap = [k for k in range(150) if KINDS[k % 100] not in (laplace, steps)]
    assert not list(wrong(cheap))


@pytest.mark.slow
def test_many_problems():
    assert not list(wrong(range(1000, 1000 + PROBLEMS)))


def test_a_wrong_answer_would_be_seen(monkeypatch):
    real = core.delta_bounds

    class Broken:
        REMOVE, ADD, EITHER = core.REMOVE, core.ADD, core.EITHER
        epsilon_bounds = staticmethod(core.epsilon_bounds)

        @staticmethod
        def delta_bounds(*arguments):
            return tuple(end * (1.0 - 1e-6) for end in real(*arguments))

    monkeypatch.setattr(sys.modules[__name__], "core", Broken)
    assert len(list(wrong(range(12)))) >= 6

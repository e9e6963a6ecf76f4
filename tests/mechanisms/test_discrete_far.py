"""Discrete Gaussian noise where δ is next to nothing, against ball arithmetic."""

import math

import pytest
from flint import arb, arb_poly, ctx

import accountant as ac
from accountant.sampling.sampled_pairs import sampled

DELTAS = [1e-285, 1e-298, 1e-300, 1e-303, 1e-305]


@pytest.fixture(autouse=True)
def precision():
    old, ctx.prec = ctx.prec, 1400
    yield
    ctx.prec = old


def masses(sigma, reach):
    """P(x) for |x| <= reach in balls, and a bound on what is left out."""
    weights = [(-((arb(x) / arb(sigma)) ** 2) / 2).exp() for x in range(-reach, reach + 1)]
    rest = 4 * (-((arb(reach) / arb(sigma)) ** 2) / 2).exp() * (1 + arb(sigma))
    total = sum(weights) + arb(0, rest.upper())
    return [w / total for w in weights]


def profile(sigma, times, epsilon, reach):
    """H(ε) of ``times`` releases of integers one apart, by the law of their sum."""
    law = arb_poly(masses(sigma, reach)) ** times
    first = -reach * times  # of the noise; the sum of the releases is larger by `times`
    limit = arb(epsilon)
    found = arb(0)
    for i in range(law.length()):
        loss = (2 * arb(first + i + times) - times) / (2 * arb(sigma) ** 2)
        if loss > limit:
            found += law[i] * (1 - (limit - loss).exp())
    return found


@pytest.mark.long(keep=2)
@pytest.mark.parametrize(
    ("sigma", "times", "reach"),
    [(1.0, 1, 60), (1.0, 3, 50), (1.0, 12, 42), (10.0, 1, 450), (10.0, 3, 420)],
)
def test_brackets_hold_the_truth(sigma, times, reach):
    release = ac.DiscreteGaussian(sigma) * times
    for delta in DELTAS:
        found = release.epsilon_bounds(delta)
        assert profile(sigma, times, found.upper, reach) <= delta
        assert profile(sigma, times, found.lower, reach) >= delta


@pytest.mark.parametrize("q", [1e-3, 0.5])
def test_sampled_brackets_hold_the_truth(q):
    release = ac.PoissonSampled(ac.DiscreteGaussian(1.0), q)
    for delta in DELTAS:
        found = release.epsilon_bounds(delta)
        # H(ε) = q·H(log(1 + (e^ε - 1)/q)) for removal, never less than for addition here.
        inner = [(1 + (arb(e).exp() - 1) / arb(q)).log() for e in (found.upper, found.lower)]
        assert arb(q) * profile(1.0, 1, inner[0], 60) <= delta
        assert arb(q) * profile(1.0, 1, inner[1], 60) >= delta


@pytest.mark.long(keep=24)
@pytest.mark.parametrize("sigma", [0.05, 0.3, 1.0, 7.3, 60.0])
@pytest.mark.parametrize("q", [None, 1e-200, 0.3])
@pytest.mark.parametrize("add", [False, True])
def test_masses_are_within_their_errors(sigma, q, add):
    noise = ac.DiscreteGaussian(sigma)
    inner = noise.pairs()[0]
    pair = inner if q is None else sampled(inner, q, inner if add else None)
    table = pair.loss_atoms
    reach = math.ceil(40.0 * sigma) + 2
    law = masses(sigma, reach)
    p, base = [arb(0), *law], [*law, arb(0)]  # around 1, and around 0: x from -reach on
    mixed = [(1 - arb(q or 0)) * a + arb(q or 0) * b for a, b in zip(p, base, strict=True)]
    if q is not None and not add:
        mixed = [(1 - arb(q)) * b + arb(q) * a for a, b in zip(p, base, strict=True)]
    one, other = (p, base) if q is None else (p, mixed) if add else (mixed, base)
    start = round(float(inner.loss_atoms.loss[0]) * sigma**2 + 0.5) + reach
    listed = range(start, start + table.loss.size)
    relative, absolute = arb(table.relative_error), arb(table.absolute_error)
    for column, truth in ((table.p, one), (table.q, other)):
        for i, found in zip(listed, column.tolist(), strict=True):
            assert abs(arb(found) - truth[i]) <= relative * truth[i] + absolute
        assert sum((m for i, m in enumerate(truth) if i not in listed), arb(0)) <= absolute

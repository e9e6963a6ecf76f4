"""Random users: every bracket is narrow, and no end is on the wrong side of an oracle.

Settings are drawn log-uniformly from q in [1e-6, 0.5], σ in [0.3, 20], up to 10⁶ steps, 100 records
and δ in [1e-12, 0.1]. The width of a bracket is relative to its upper end, or to 1e-9 where that
is smaller: an ε of nothing has no relative width. The oracles share no code with the package: one
release by its two tails, many by contours in balls, few by brute force.
"""

import math
import random

import pytest
from flint import arb, ctx
from mpmath import mpf

import accountant as ac
from support.draws import between
from support.oracle import few_steps, shift_mixture
from support.oracle.monotone_ratio import shifted

FLOOR = 1e-9


def users(seed, count):
    draw = random.Random(seed)
    for _ in range(count):
        q, sigma = between(draw, 1e-6, 0.5), between(draw, 0.3, 20.0)
        steps, records = round(between(draw, 1, 1e6)), round(between(draw, 1, 100))
        yield q, sigma, steps, records, between(draw, 1e-12, 0.1)


def binomial(q, records):
    """The weights of 1, 2, … records in use, as doubles; tiny ones are left out."""
    weights = [
        math.comb(records, k) * q**k * (1.0 - q) ** (records - k) for k in range(records + 1)
    ]
    return zip(*[(float(k), w) for k, w in enumerate(weights) if k and w > 1e-250], strict=True)


def two_tails(q, sigma, records, epsilon):
    """The profile of one release where the records are removed."""
    with ctx.workprec(400):
        p, k = arb(q), range(records + 1)
        weights = [math.comb(records, j) * p**j * (1 - p) ** (records - j) for j in k]
        found = shifted(arb(sigma), map(arb, k), weights)[0](epsilon)
        return mpf(found.mid().str(40, radius=False))


def removal(q, sigma, steps, records, epsilon, most):
    """Lower and upper bounds on the profile, of the removal; None where no oracle answers."""
    if steps == 1:
        value = two_tails(q, sigma, records, epsilon)
        return value * (1 - mpf(10) ** -25), value * (1 + mpf(10) ** -25)
    shifts, weights = binomial(q, records)
    if steps <= 30:
        return few_steps.profile(sigma, shifts, weights, steps, epsilon)
    try:
        ball = shift_mixture.line(sigma, shifts, weights, steps, epsilon, True, most, digits=11)
    except shift_mixture.NotConverged:
        return None
    # The weights here are doubles, within some units of the binomial's.
    slack = 2.0**-45 * steps * records
    low, high = float(ball.lower()) * (1.0 - 1e-15), float(ball.upper()) * (1.0 + 1e-15)
    return mpf(low) * (1 - slack), mpf(high) * (1 + slack)


def is_cheap(steps, records):
    """Tell whether an oracle answers within a fraction of a second."""
    return records <= 40 if steps <= 30 else steps >= 3000 and records <= 10


def sweep(seed, count, cheaply):
    wide, wrong, judged = [], [], 0
    for user in users(seed, count):
        q, sigma, steps, records, delta = user
        found = ac.epsilon_bounds(q, sigma, steps, delta, user_records=records)
        lower, upper = float(found.lower), float(found.upper)
        if not upper - lower <= 1e-4 * max(upper, FLOOR):
            wide.append((user, found))
        if not 1e-6 < upper < 1e5 or (cheaply and not is_cheap(steps, records)):
            continue
        above = removal(q, sigma, steps, records, upper, 300 if cheaply else 3000)
        if above is None:
            continue
        judged += 1
        # The addition may be the worse direction, which the removal's profile does not refute.
        if not above[0] <= delta:
            wrong.append((user, found, above))
    return wide, wrong, judged


@pytest.mark.long
def test_forty_users():
    wide, wrong, judged = sweep(31, 40, cheaply=True)
    assert not wide
    assert not wrong
    assert judged >= 4


# Losses of thousands in every step, whose law has dozens of humps.
HUMPS = (0.4877, 0.374, 319_999, 96, 0.0031)


def test_a_user_of_many_records_under_little_noise():
    q, sigma, steps, records, delta = HUMPS
    found = ac.epsilon_bounds(q, sigma, steps, delta, user_records=records)
    # Where the slow test's balls cross δ.
    assert found.lower <= 2536565725.0
    assert found.upper >= 2536565715.0
    assert found.upper - found.lower <= 1e-7 * found.upper


@pytest.mark.slow
def test_that_user_against_balls():
    q, sigma, steps, records, delta = HUMPS
    for epsilon, is_above in ((2536565715.0, True), (2536565725.0, False)):
        ball = removal(q, sigma, steps, records, epsilon, 3000)
        assert (ball[0] > delta) if is_above else (ball[1] < delta)


@pytest.mark.slow
def test_a_thousand_users():
    wide, wrong, judged = sweep(1, 1000, cheaply=False)
    assert not wide
    assert not wrong
    assert judged >= 450


def test_the_oracle_would_notice():
    """An upper end that is too small by a little is refuted."""
    for q, sigma, steps, records, delta, off in (
        (0.01, 1.0, 1, 4, 1e-6, 1e-7),
        (0.02, 0.6, 9, 12, 1e-5, 3e-3),
        (0.01, 2.0, 5000, 8, 1e-7, 1e-7),
    ):
        upper = ac.get_epsilon(q, sigma, steps, delta, user_records=records)
        assert removal(q, sigma, steps, records, upper, 900)[0] <= delta
        assert removal(q, sigma, steps, records, upper * (1.0 - off), 900)[0] > delta

"""Users with several records: the group of the sampled mechanism, and random users.

Random settings are log-uniform in q in [1e-6, 0.5], σ in [0.3, 20], up to 10⁶ steps, 100 records
and δ in [1e-12, 0.1]. The width of a bracket is relative to its upper end, or to 1e-9 where that
is smaller: an ε of nothing has no relative width. The oracles share no code with the package: one
release by its two tails, many by contours in balls, few by brute force.
"""

import math
import random

import numpy as np
import pytest
from flint import arb, ctx
from mpmath import mpf
from scipy.special import erfc

import accountant as ac
from support.draws import between
from support.oracle import shift_mixture
from support.oracle.monotone_ratio import shifted

SLACK = 1e-11
CELLS = 400
MOST_POINTS = 1 << 21


def profile_of_few(sigma, shifts, weights, steps, epsilon, width=1e-3):
    """(lower, upper) of H(epsilon) where the record is removed; width is relative to epsilon.

    None where that takes too large a lattice.
    """
    shifts, weights = np.asarray(shifts), np.asarray(weights)
    rest = 1.0 - math.fsum(weights)
    if not rest > 1e-9:
        return None
    most = epsilon - steps * math.log(rest) + 40.0
    if steps * (most - math.log(rest)) > MOST_POINTS * width * epsilon / steps:
        return None
    x = np.linspace(
        -8.0 * sigma, shifts[-1] + 8.0 * sigma, int((shifts[-1] / sigma + 16.0) * CELLS)
    )
    below = np.zeros_like(x)
    loss = np.full_like(x, math.log(rest))
    for d, w in [(0.0, rest), *zip(shifts.tolist(), weights.tolist(), strict=True)]:
        below += w * erfc((x - d) / (sigma * math.sqrt(2.0))) / 2.0
        if d > 0.0:
            loss = np.logaddexp(loss, math.log(w) + d * (2.0 * x - d) / (2.0 * sigma**2))
    mass = np.maximum(below[:-1] - below[1:], 0.0)
    step = width * epsilon / steps
    base = math.floor(loss[0] / step) - 1
    ends = []
    for up in (False, True):
        at = np.ceil(loss[1:] / step + 1e-6) if up else np.floor(loss[:-1] / step - 1e-6)
        index = np.minimum(at, math.ceil(most / step)).astype(np.int64) - base
        law = np.bincount(index, weights=mass)
        size = 1 << math.ceil(math.log2(steps * len(law)))
        total = np.fft.irfft(np.fft.rfft(law, size) ** steps, size)[: steps * (len(law) - 1) + 1]
        losses = (np.arange(len(total)) + steps * base) * step
        gain = np.where(losses > epsilon, -np.expm1(np.minimum(epsilon - losses, 0.0)), 0.0)
        # Above the last lattice point no loss is known but that it is large; below the first it
        # is counted as nothing, or as everything.
        ends.append(float(np.dot(total, gain)))
    outside = steps * float(below[-1] + max(1.0 - below[0], 0.0))
    return ends[0] - SLACK, ends[1] + outside + math.exp(-40.0) + SLACK


# q, sigma, steps, records, delta and the digits of ε on which plain contours and chord grids agree.
KNOWN = [
    (0.01, 1.0, 2000, 4, 1e-6, "14.534976"),
    (0.01, 1.0, 10**4, 4, 1e-6, "38.877898"),
    (0.001, 0.8, 3000, 8, 1e-6, "5.125806"),
    (0.004, 2.0, 14000, 10, 1e-6, "14.793398"),
    (0.001, 0.6, 2000, 16, 1e-7, "24.2543"),
]


def group(q, sigma, steps, records):
    return steps * ac.PoissonSampled(ac.Gaussian(sigma), q).group(records)


@pytest.mark.parametrize(("q", "sigma", "steps", "records", "delta", "digits"), KNOWN)
def test_known_answers(q, sigma, steps, records, delta, digits):
    half = 0.5 * 10.0 ** -len(digits.partition(".")[2])
    bounds = ac.epsilon_bounds(q, sigma, steps, delta, user_records=records)
    assert bounds.upper - bounds.lower <= 1e-9
    assert abs(bounds.upper - float(digits)) <= 2 * half
    assert bounds.upper == ac.get_epsilon(q, sigma, steps, delta, user_records=records)


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("records", [2, 5, 100])
@pytest.mark.parametrize(("q", "sigma", "steps"), [(0.01, 1.0, 100), (1.0, 3.0, 2), (0.2, 5.0, 30)])
def test_it_is_the_mechanism_of_the_group(q, sigma, steps, records):
    mechanism = group(q, sigma, steps, records)
    for delta in (1e-9, 1e-3):
        found = ac.epsilon_bounds(q, sigma, steps, delta, user_records=records)
        assert tuple(found) == tuple(mechanism.epsilon_bounds(delta))
    for epsilon in (0.0, 2.0):
        found = ac.delta_bounds(q, sigma, steps, epsilon, user_records=records)
        assert tuple(found) == tuple(mechanism.delta_bounds(epsilon))
        assert found.upper == ac.get_delta(q, sigma, steps, epsilon, user_records=records)
    rdp = ac.get_rdp(q, sigma, steps, [1.5, 8.0], user_records=records)
    assert rdp.tolist() == mechanism.rdp([1.5, 8.0]).tolist()
    by_rdp = ac.get_epsilon(q, sigma, steps, 1e-5, user_records=records, method="rdp")
    exact = ac.epsilon_bounds(q, sigma, steps, 1e-5, user_records=records)
    assert exact.lower <= by_rdp


def test_one_record_is_what_it_was():
    setting = (0.01, 1.0, 1000)
    for name, last in (("get_epsilon", 1e-5), ("get_delta", 1.0), ("get_rdp", 4.5)):
        call = getattr(ac, name)
        for one in (1, np.int64(1), [1]):
            assert call(*setting, last, user_records=one) == call(*setting, last)
    assert ac.epsilon_bounds(*setting, 1e-5, user_records=1) == ac.epsilon_bounds(*setting, 1e-5)


def test_records_broadcast():
    found = ac.get_epsilon(0.01, [[1.0], [2.0]], 100, 1e-5, user_records=[1, 3], workers=2)
    assert found.shape == (2, 2)
    for i, sigma in enumerate((1.0, 2.0)):
        for j, records in enumerate((1, 3)):
            alone = ac.get_epsilon(0.01, sigma, 100, 1e-5, user_records=records)
            assert found[i, j] == alone
    bounds = ac.delta_bounds(0.01, 1.0, 100, [0.5, math.inf], user_records=2)
    assert bounds.upper.tolist() == [ac.get_delta(0.01, 1.0, 100, 0.5, user_records=2), 0.0]
    with pytest.raises(ac.DomainError, match="user_records"):
        ac.get_epsilon([0.01, 0.02], 1.0, 100, 1e-5, user_records=[1, 2, 3])


@pytest.mark.parametrize("records", [0, -1, 10**6 + 1])
def test_counts_of_records_outside_their_domain(records):
    with pytest.raises(ac.DomainError, match=r"user_records must be an integer in \[1, 1000000\]"):
        ac.get_epsilon(0.01, 1.0, 100, 1e-5, user_records=records)


@pytest.mark.parametrize("records", [2.0, True, "2", None])
def test_counts_of_records_of_another_type(records):
    with pytest.raises(ac.ArgumentTypeError, match="user_records"):
        ac.calibrate_q(1.0, 1e-5, sigma=1.0, steps=10, user_records=records)


@pytest.mark.parametrize(
    ("q", "sigma", "steps"), [(0.0, 1.0, 1000), (0.01, 1.0, 0), (0.01, math.inf, 1000)]
)
def test_nothing_released_costs_nothing(q, sigma, steps):
    for delta in (0.0, 1e-5):
        for method in ("exact", "rdp"):
            assert ac.get_epsilon(q, sigma, steps, delta, user_records=9, method=method) == 0.0
    assert ac.get_delta(q, sigma, steps, 0.0, user_records=9) == 0.0
    assert ac.get_rdp(q, sigma, steps, 2.0, user_records=9) == 0.0


def test_no_finite_epsilon_at_delta_zero():
    for method in ("exact", "rdp"):
        assert ac.get_epsilon(0.01, 1.0, 5, 0, user_records=3, method=method) == math.inf


@pytest.mark.long(keep=5)
@pytest.mark.parametrize("sigma", [5e-324, 1e-160, 1e-8])
@pytest.mark.parametrize("q", [5e-324, 1e-3, 1.0])
def test_tiny_noise_has_an_answer(q, sigma):
    assert ac.get_epsilon(q, sigma, 1000, 1e-5, user_records=5) >= 0.0
    assert 0.0 <= ac.get_delta(q, sigma, 1000, 1.0, user_records=5) <= 1.0


def test_many_records_take_no_time():
    lower, upper = ac.epsilon_bounds(1e-4, 1.0, 1000, 1e-5, user_records=10**4)
    assert 0.0 < lower <= upper <= lower * (1.0 + 1e-6)


@pytest.mark.parametrize(
    ("q", "sigma", "records"), [(0.01, 1.0, 4), (0.3, 0.5, 9), (1e-6, 3.0, 50)]
)
def test_no_delta_is_above_the_variation(q, sigma, records):
    """By the privacy profile at 0, which is the distance itself."""
    for pair in ac.PoissonSampled(ac.Gaussian(sigma), q).group(records).pairs():
        whole = ac.delta_bounds(q, sigma, 1, 0.0, user_records=records)
        assert whole.lower <= pair.variation <= 1.0 - (1.0 - q) ** records + 1e-12
        delta = -math.expm1(7 * math.log1p(-pair.variation)) * (1.0 + 1e-14)
        assert ac.get_epsilon(q, sigma, 7, delta, user_records=records) == 0.0


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
        return profile_of_few(sigma, shifts, weights, steps, epsilon)
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


@pytest.mark.parametrize(
    ("seed", "count", "cheaply", "least"),
    [
        pytest.param(31, 40, True, 4, marks=pytest.mark.long),
        pytest.param(1, 1000, False, 450, marks=pytest.mark.slow),
    ],
)
def test_random_users(seed, count, cheaply, least):
    wide, wrong, judged = sweep(seed, count, cheaply)
    assert not wide
    assert not wrong
    assert judged >= least


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

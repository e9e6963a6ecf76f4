"""Different subsampled Gaussians composed, against real-space integrals and against repeats."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import exp, linspace, log, mp, mpf, pi, quad, sqrt

import accountant as ac
from accountant._core import answers as core
from accountant.analyses import mixed
from accountant.analyses.mixed import ADD, EITHER, REMOVE, Part
from accountant.analyses.over_steps import curve
from accountant.analyses.over_steps.history import gaussian_settings
from support.oracle.losses import sampled_step

DIRECTIONS = [REMOVE, ADD]


def two_parts(first, second, epsilon, direction):
    """H of one step of each: the mean of the second H over the first loss, one real integral."""
    (q, sigma), (r, tau) = [(mpf(q), mpf(s)) for q, s in (first, second)]
    epsilon = mpf(epsilon)

    def integrand(t):
        x = t * sigma
        loss = log(1 - q + q * exp((2 * x - 1) / (2 * sigma * sigma)))
        density = exp(-t * t / 2) / sqrt(2 * pi)
        if direction == REMOVE:
            return density * exp(loss) * sampled_step(r, tau, epsilon - loss, True)
        return density * sampled_step(r, tau, epsilon + loss, False)

    reach = 14 + 1 / sigma
    return quad(integrand, linspace(-reach, reach, 120))


PAIRS = [
    ((0.5, 1.0), (1.0, 2.0), 0.7),
    ((0.3, 1.5), (1.0, 0.8), 1.5),
    ((0.8, 2.0), (1.0, 5.0), 0.1),
    ((0.9, 0.9), (1.0, 1.0), 3.0),
]


@pytest.mark.long
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(("first", "second", "epsilon"), PAIRS)
def test_a_step_and_a_release(first, second, epsilon, direction):
    with mp.workdps(30):
        truth = two_parts(first, second, epsilon, direction)
    parts = [Part(*first, 1), Part(*second, 1)]
    lower, upper = mixed.delta_bounds(parts, epsilon, direction)
    assert lower <= truth <= upper
    # ε falls with δ: the doubles on either side of the truth bracket it without a tolerance.
    near = float(truth)
    assert mixed.epsilon_bounds(parts, math.nextafter(near, 1.0), direction)[0] <= epsilon
    assert mixed.epsilon_bounds(parts, math.nextafter(near, 0.0), direction)[1] >= epsilon
    assert upper - lower <= 1e-6 * upper


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(
    st.floats(-6.0, -0.2).map(lambda x: 10.0**x),
    st.floats(-0.5, 1.5).map(lambda x: 10.0**x),
    st.integers(2, 10**9),
    st.floats(0.01, 0.99),
    st.floats(-15.0, -1.0).map(lambda x: 10.0**x),
    st.sampled_from(DIRECTIONS),
)
def test_splitting_repeats_changes_nothing(q, sigma, steps, share, delta, direction):
    """Two parts that differ in nothing but a rounding of sigma bracket the same truth."""
    first = min(max(int(share * steps), 1), steps - 1)
    near = math.nextafter(sigma, math.inf)
    parts = [Part(q, sigma, first), Part(q, near, steps - first)]
    low, high = mixed.epsilon_bounds(parts, delta, direction)
    # Between the two homogeneous runs, by monotonicity in the noise.
    assert low <= core.epsilon_bounds(q, sigma, float(steps), delta, direction)[1]
    assert high >= core.epsilon_bounds(q, near, float(steps), delta, direction)[0]


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_schedule_is_tight(direction):
    parts = [Part(0.01, 1.0 + i / 500, 1) for i in range(500)]
    low, high = mixed.epsilon_bounds(parts, 1e-5, direction)
    assert high - low <= 1e-9 * high
    # More noise everywhere, and less.
    noisier = core.epsilon_bounds(0.01, 2.0, 500.0, 1e-5, direction)
    louder = core.epsilon_bounds(0.01, 1.0, 500.0, 1e-5, direction)
    assert noisier[0] < high
    assert low < louder[1]


def test_either_is_the_larger_direction():
    parts = [Part(0.02, 0.9, 300), Part(0.1, 2.0, 40), Part(1.0, 6.0, 1)]
    both = [mixed.epsilon_bounds(parts, 1e-6, direction) for direction in DIRECTIONS]
    low, high = mixed.epsilon_bounds(parts, 1e-6, EITHER)
    assert low <= max(b[1] for b in both)
    assert high >= max(b[0] for b in both)
    assert high - low <= 1e-9 * high


def test_plain_gaussians_add_in_quadrature():
    parts = [Part(1.0, 3.0, 4), Part(1.0, 5.0, 2)]
    low, high = mixed.epsilon_bounds(parts, 1e-7)
    merged = core.epsilon_bounds(1.0, 1 / math.sqrt(4 / 9 + 2 / 25), 1.0, 1e-7, EITHER)
    assert low <= merged[1]
    assert merged[0] <= high
    assert high - low <= 1e-9 * high


@pytest.mark.long
def test_odometer_agrees_with_each_prefix():
    rng = np.random.default_rng(7)
    parts = [Part(0.05, float(s), 1) for s in 1.0 + rng.random(300)]
    for direction in DIRECTIONS:
        lower, upper = mixed.odometer(parts, 1e-5, direction)
        assert (np.diff(lower) >= 0).all()
        assert (np.diff(upper) >= 0).all()
        for i in (0, 1, 17, 120, 299):
            low, high = mixed.epsilon_bounds(parts[: i + 1], 1e-5, direction)
            assert lower[i] <= high
            assert low <= upper[i]
        assert upper[-1] - lower[-1] <= 1e-9 * upper[-1]


def read(parts, delta, direction, *how):
    columns = [np.array(column, dtype=float) for column in zip(*parts, strict=True)]
    lower, upper = np.empty(len(parts)), np.empty(len(parts))
    core.fill_heterogeneous_odometer(*columns, delta, direction, lower, upper, *how)
    return lower, upper


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_piece_of_an_odometer_and_one_of_few_digits_hold(direction):
    rng = np.random.default_rng(3)
    parts = [Part(0.05, float(s), 1) for s in 1.0 + rng.random(400)]
    lower, upper = read(parts, 1e-5, direction)
    for wide, first, last in ((1e-3, 0, 400), (0.0, 200, 300), (1e-3, 120, 400), (0.0, 0, 90)):
        low, high = read(parts, 1e-5, direction, wide, first, last)
        assert (low <= upper).all()
        assert (lower <= high).all()
        asked = slice(max(first, 80), last)
        relative = (high[asked] - low[asked]) / high[asked]
        assert (relative <= (1e-3 if wide else 1e-9)).all()
        assert not wide or (relative >= 1e-9).any()
    for first, last in ((-1, 400), (0, 401), (400, 400), (7, 7)):
        with pytest.raises(ac.DomainError):
            read(parts, 1e-5, direction, 0.0, first, last)


@pytest.mark.long
@pytest.mark.parametrize(("q", "count"), [(0.02, 1600), (1.0, 1600), (1.0, 60), (0.9999, 60)])
def test_both_directions_of_an_odometer_are_covered(q, count):
    """Few digits tell that adding costs less; of plain noise they do not, nor next to it."""
    rng = np.random.default_rng(5)
    parts = [Part(q, float(s), 1) for s in 3.0 + rng.random(count)]
    lower, upper = mixed.odometer(parts, 1e-5)
    each = [mixed.odometer(parts, 1e-5, direction) for direction in DIRECTIONS]
    assert (upper >= np.maximum(each[0][0], each[1][0])).all()
    assert (lower <= np.maximum(each[0][1], each[1][1])).all()
    assert (upper[40:] <= np.maximum(each[0][1], each[1][1])[40:] * (1.0 + 1e-9)).all()
    settled = slice(count // 2, None)
    assert (upper[settled] - lower[settled] <= 1e-9 * upper[settled]).all()
    for i in (0, 3, count // 3, count - 1):
        low, high = mixed.epsilon_bounds(parts[: i + 1], 1e-5)
        assert lower[i] <= high
        assert low <= upper[i]


@pytest.mark.parametrize(("count", "unknown"), [(100, 0), (4000, 0), (100, 30), (4000, 30)])
def test_an_odometer_whose_additions_cost_more_says_so(count, unknown, monkeypatch):
    """No such steps are known: the core's answers are replaced by others."""
    costs = {REMOVE: np.arange(1.0, count + 1.0), ADD: 20.0 + 0.6 * np.arange(1.0, count + 1.0)}

    def answer(q, _, steps, delta, direction, lower, upper, wide, first, last):
        lower[:], upper[:] = 0.0, math.inf
        lower[first:last] = costs[direction][first:last] * (1.0 - wide)
        upper[first:last] = costs[direction][first:last] * (1.0 + wide)
        upper[:] = np.minimum.accumulate(upper[::-1])[::-1]
        if direction == REMOVE:
            lower[:unknown] = 0.0

    monkeypatch.setattr(mixed.core, "fill_heterogeneous_odometer", answer)
    lower, upper = mixed.odometer([Part(0.02, 1.0, 1)] * count, 1e-5)
    expected = np.maximum(costs[REMOVE], costs[ADD])
    few_digits = np.where(np.arange(count) < unknown, 1e-3, 0.0)
    np.testing.assert_array_equal(lower[unknown:], expected[unknown:])
    assert (lower <= expected).all()
    assert (upper >= expected).all()
    assert (upper <= expected * (1.0 + few_digits)).all()


def test_an_odometer_is_narrow_where_a_tables_decay_is_slow():
    """Of the line's points too few are left by what a table bounds: parts are added one by one."""
    rng = np.random.default_rng(1)
    parts = [
        Part(0.05, float(s), int(n))
        for s, n in zip(rng.uniform(2.0, 2.002, 150), rng.choice([1, 1, 1, 5], 150), strict=True)
    ]
    lower, upper = mixed.odometer(parts, 1e-12, REMOVE)
    assert (upper[35:] - lower[35:] <= 1e-9 * upper[35:]).all()


def test_silent_and_extreme_parts():
    assert mixed.epsilon_bounds([Part(0.0, 1.0, 5), Part(0.5, math.inf, 5)], 1e-5) == (0.0, 0.0)
    assert mixed.epsilon_bounds([], 1e-5) == (0.0, 0.0)
    assert mixed.delta_bounds([Part(0.1, 1.0, 3), Part(0.2, 1.0, 1)], math.inf) == (0.0, 0.0)
    low, high = mixed.epsilon_bounds([Part(0.1, 1e-200, 3), Part(0.2, 1.0, 1)], 1e-5)
    assert (low, high) == (0.0, math.inf)
    low, high = mixed.epsilon_bounds([Part(1e-300, 1.0, 3), Part(0.2, 1.0, 10)], 1e-5)
    assert low == 0.0
    assert high >= core.epsilon_bounds(0.2, 1.0, 10.0, 1e-5, EITHER)[0]
    lower, upper = mixed.odometer(
        [Part(0.0, 1.0, 3), Part(0.01, 1.0, 5), Part(0.5, math.inf, 3)], 1e-5
    )
    assert lower[0] == upper[0] == 0.0
    assert lower[1] == lower[2] <= upper[1] == upper[2]


@pytest.mark.long
@pytest.mark.parametrize("steps", [20, 100])
def test_a_short_schedule_is_narrowed(steps):
    """Its transform decays slowly; steps next to equal are between equal ones of either end."""
    q, delta, sigmas = 0.01, 1e-5, [1.2 + 1e-9 * k for k in range(steps)]
    steps_apart = ac.Composition(
        tuple((ac.PoissonSampled(ac.Gaussian(sigma), q), 1) for sigma in sigmas)
    )
    least, _ = ac.epsilon_bounds(q, max(sigmas), steps, delta)
    _, most = ac.epsilon_bounds(q, min(sigmas), steps, delta)
    found = steps_apart.epsilon_bounds(delta)
    assert found.upper >= least
    assert found.lower <= most
    assert found.upper - found.lower <= (1e-3 if steps > 64 else 1e-4) * most
    found = steps_apart.delta_bounds(0.2)
    assert found.upper >= ac.delta_bounds(q, max(sigmas), steps, 0.2).lower
    assert found.lower <= ac.delta_bounds(q, min(sigmas), steps, 0.2).upper


def test_the_ledger_reads_both_ends_of_single_steps():
    ledger = ac.Accountant()
    for k in range(600):
        ledger.step(noise_multiplier=1.2 + 1e-3 * (k % 97), sampling_probability=0.02)
    lower, upper = curve._exactly(ledger.history, gaussian_settings(ledger.history), 1e-5)
    np.testing.assert_array_equal(upper[-100:] - lower[-100:] <= 1e-8 * upper[-100:], True)


def test_the_first_readings_of_a_ledger_are_close():
    """Steps that become quieter slowly: no reading is below the truth, nor far above it."""
    ledger, q, delta = ac.Accountant(), 0.01, 1e-5
    sigmas = [1.0 + 1e-3 * k for k in range(600)]
    for sigma in sigmas:
        ledger.step(noise_multiplier=sigma, sampling_probability=q)
    curve = ledger.epsilon_over_steps(delta)
    for length in (1, 7, 40, 150, 280):
        # As many of the quietest so far cost less, of the loudest more.
        least = ac.epsilon_bounds(q, sigmas[length - 1], length, delta).lower
        most = ac.epsilon_bounds(q, sigmas[0], length, delta).upper
        assert least <= curve[length - 1] <= 1.25 * most

"""The one-call functions: answers, limits, shapes and threads."""

import math

import numpy as np
import pytest

import accountant as ac

# q, sigma, steps, delta and the six or so digits of ε known from independent computations.
KNOWN = [
    (0.01, 1.0, 1000, 1e-12, "3.91430"),
    (0.01, 1.0, 1000, 1e-13, "4.2298"),
    (0.01, 1.0, 1000, 1e-14, "4.5437"),
    (0.01, 1.0, 1000, 1e-15, "4.8545"),
    (0.001, 0.8, 20000, 1e-11, "2.81965"),
    (0.01, 0.3, 100, 1e-5, "26.83"),
    (0.001, 50.0, 1000, 1e-6, ".0016309"),
    (0.001, 100.0, 10**4, 1e-9, ".0044265"),
]


@pytest.mark.parametrize(("q", "sigma", "steps", "delta", "digits"), KNOWN)
def test_known_answers(q, sigma, steps, delta, digits):
    half = 0.5 * 10.0 ** -len(digits.partition(".")[2])
    bounds = ac.epsilon_bounds(q, sigma, steps, delta)
    # Two units: the reference is rounded or truncated in its last digit.
    assert abs(bounds.upper - float(digits)) <= 2 * half
    assert abs(bounds.lower - float(digits)) <= 2 * half
    assert bounds.upper == ac.get_epsilon(q, sigma, steps, delta)


@pytest.mark.parametrize(
    ("q", "sigma", "steps", "delta"),
    [
        (1e-8, 1.0, 10**9, 1e-9),
        (0.5, 0.3, 1000, 1e-5),
        (1.0, 1e-3, 1, 1e-5),
        (1.0, 1e-3, 1000, 1e-5),
    ],
)
def test_hard_problems_have_finite_tight_answers(q, sigma, steps, delta):
    lower, upper = ac.epsilon_bounds(q, sigma, steps, delta)
    assert 0.0 < lower <= upper < math.inf
    assert upper - lower <= 1e-6 * upper


@pytest.mark.parametrize("sigma", [5e-324, 1e-300, 1e-160, 1e-100, 1e-20, 1e-8])
@pytest.mark.parametrize("q", [1e-3, 0.5, 1.0])
def test_tiny_noise_is_finite_or_infinite_but_never_a_warning(q, sigma):
    for method in ("exact", "rdp"):
        assert ac.get_epsilon(q, sigma, 1000, 1e-5, method=method) > 0.0
    assert ac.get_rdp(q, sigma, 1000, 2.0) > 0.0
    assert 0.0 <= ac.get_delta(q, sigma, 1000, 1.0) <= 1.0
    array = ac.get_rdp(q, sigma, [0, 1000], [2.0, 2.0])
    assert array[0] == 0.0 < array[1]


@pytest.mark.parametrize(
    ("q", "sigma", "steps"),
    [(0.0, 1.0, 1000), (0.01, 1.0, 0), (0.01, math.inf, 1000), (1.0, 1e-3, 0)],
)
def test_nothing_released_costs_nothing(q, sigma, steps):
    for delta in (0.0, 1e-300, 1e-5, 0.9):
        for method in ("exact", "rdp"):
            assert ac.get_epsilon(q, sigma, steps, delta, method=method) == 0.0
            assert ac.get_epsilon([q], sigma, steps, delta, method=method).tolist() == [0.0]
        assert tuple(ac.epsilon_bounds(q, sigma, steps, delta)) == (0.0, 0.0)
    for epsilon in (0.0, 1.0, 1e300, math.inf):
        assert ac.get_delta(q, sigma, steps, epsilon) == 0.0
    assert ac.get_rdp(q, sigma, steps, 2.0) == 0.0


@pytest.mark.parametrize("method", ["exact", "rdp"])
def test_no_finite_epsilon_at_delta_zero(method):
    assert ac.get_epsilon(0.01, 1.0, 1, 0, method=method) == math.inf
    assert ac.get_epsilon(0.01, 1.0, 1, 0.0, method=method) == math.inf
    mixed = ac.get_epsilon([0.01, 0.0, 0.01], 1.0, 1, [0.0, 0.0, 1e-5], method=method)
    assert mixed[0] == math.inf
    assert mixed[1] == 0.0
    assert mixed[2] == ac.get_epsilon(0.01, 1.0, 1, 1e-5, method=method)


def test_no_delta_at_infinite_epsilon():
    assert ac.get_delta(0.01, 1.0, 1000, math.inf) == 0.0
    mixed = ac.get_delta(0.01, 1.0, 1000, [math.inf, 1.0])
    assert mixed.tolist() == [0.0, ac.get_delta(0.01, 1.0, 1000, 1.0)]


CALLS = {
    "get_epsilon": ((0.01, 0.1), (1.0, 3.0), (10, 1000), (1e-5, 1e-9)),
    "get_delta": ((0.01, 0.1), (1.0, 3.0), (10, 1000), (0.0, 1.5)),
    "get_rdp": ((0.01, 0.1), (1.0, 3.0), (0, 1000), (1.5, 32.0)),
}


@pytest.mark.parametrize("name", CALLS)
def test_broadcasting_equals_the_scalar_calls(name):
    function = getattr(ac, name)
    q, sigma, steps, last = CALLS[name]
    grid = np.ix_(q, sigma, steps, last)
    answer = function(*grid)
    assert answer.shape == (2, 2, 2, 2)
    assert answer.dtype == np.float64
    for index in np.ndindex(answer.shape):
        scalar = function(
            *(axis[i] for axis, i in zip((q, sigma, steps, last), index, strict=True))
        )
        assert type(scalar) is float
        assert answer[index] == scalar


@pytest.mark.parametrize("name", [*CALLS, "epsilon_bounds", "delta_bounds"])
def test_threads_change_nothing(name):
    function = getattr(ac, name)
    q = np.linspace(0.001, 0.2, 301)
    serial = function(q, 1.5, 300, 2.0 if name == "get_rdp" else 0.01)
    for workers in (1, 2, 7):
        threaded = function(q, 1.5, 300, 2.0 if name == "get_rdp" else 0.01, workers=workers)
        for one, other in zip(np.array([*serial]), np.array([*threaded]), strict=True):
            assert np.array_equal(one, other)


def test_layout_of_the_input_does_not_matter():
    sigma = np.linspace(0.5, 3.0, 12)
    expected = ac.get_epsilon(0.01, sigma, 100, 1e-5)
    wide = np.empty((12, 5))
    wide[:, 2] = sigma
    backwards = sigma[::-1].copy()
    fortran = np.asfortranarray(sigma.reshape(3, 4))
    readonly = sigma.copy()
    readonly.flags.writeable = False
    swapped = sigma.astype(sigma.dtype.newbyteorder())
    for view in (wide[:, 2], backwards[::-1], readonly, swapped, list(sigma), tuple(sigma)):
        assert np.array_equal(ac.get_epsilon(0.01, view, 100, 1e-5), expected)
    assert np.array_equal(ac.get_epsilon(0.01, fortran, 100, 1e-5), expected.reshape(3, 4))


def test_the_input_is_not_changed_and_the_output_is_fresh():
    q = np.array([0.01, 0.0, 0.02])
    delta = np.array([0.0, 0.0, 1e-5])
    answer = ac.get_epsilon(q, 1.0, 10, delta)
    answer[:] = -1.0
    assert q.tolist() == [0.01, 0.0, 0.02]
    assert delta.tolist() == [0.0, 0.0, 1e-5]


@pytest.mark.parametrize("empty", [[], np.array([]), np.empty((0, 3)), np.empty(0, dtype=np.int64)])
def test_empty_arrays_give_empty_arrays(empty):
    shape = np.shape(empty)
    for answer in (
        ac.get_epsilon(empty, 1.0, 10, 1e-5),
        ac.get_epsilon(0.1, 1.0, empty, 1e-5),
        ac.get_epsilon(0.1, 1.0, empty, 1e-5, method="rdp"),
        ac.get_delta(0.1, empty, 10, 1.0, workers=2),
        ac.get_rdp(0.1, 1.0, 10, empty),
        ac.get_rdp(0.1, 1.0, empty, 2.0),
        ac.epsilon_bounds(empty, 1.0, 10, 1e-5).upper,
        ac.calibrate_sigma(empty),
        ac.calibrate_q(1.0, empty, sigma=1.0, steps=1),
    ):
        assert answer.shape == shape
        assert answer.dtype == np.float64
    assert ac.calibrate_steps(empty, q=0.1, sigma=1.0).dtype == np.int64


def test_brackets_hold_their_upper_ends():
    assert ac.epsilon_bounds(0.01, 1.0, 1000, 1e-5).upper == ac.get_epsilon(0.01, 1.0, 1000, 1e-5)
    assert ac.delta_bounds(0.01, 1.0, 1000, 1.0).upper == ac.get_delta(0.01, 1.0, 1000, 1.0)
    array = ac.epsilon_bounds([0.01, 0.1], 1.0, 1000, 1e-5)
    assert np.array_equal(array.upper, ac.get_epsilon([0.01, 0.1], 1.0, 1000, 1e-5))


def test_rdp_is_proportional_to_steps_and_rounded_up():
    from fractions import Fraction

    one = Fraction(ac.get_rdp(0.01, 1.0, 1, 4.5))
    many = Fraction(ac.get_rdp(0.01, 1.0, 10**6, 4.5))
    # `one` is itself one ulp above the divergence of a step.
    assert abs(many / (one * 10**6) - 1) < Fraction(1, 2**51)
    # At q = 1 the divergence is steps·order/2σ² exactly.
    for order in (1.25, 2.0, 77.7):
        exact = Fraction(order) * 1000 / (2 * Fraction(0.7) ** 2)
        upper = Fraction(ac.get_rdp(1.0, 0.7, 1000, order))
        assert exact <= upper <= exact * (1 + Fraction(1, 10**12))

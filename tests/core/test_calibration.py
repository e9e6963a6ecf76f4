"""Where a calibration begins, and how few evaluations a search then needs."""

import ctypes
import math
import random
import struct

import pytest

from accountant._core import answers as core
from support.native import build, core_files


def as_double(rank):
    return struct.unpack("<d", struct.pack("<q", rank))[0]


def as_rank(value):
    return struct.unpack("<q", struct.pack("<d", value))[0]


# epsilon, delta, and q, sigma and steps, of which each is sought in turn; how near a guess and its
# slope are, from 0.7, 1.05 and 1.3 times the answer
EXPANSION, THIRD_ORDER, CONTOUR, WIDE = (1e-3, 0.05), (1.5e-6, 1e-4), (1.5e-7, 0.03), (2e-5, 0.03)
GUESSES = [
    ((1.0, 1e-6, 0.01, 1.0, 1000), (0.7, 1.3), EXPANSION),
    ((3.3, 1e-7, 0.1, 1.9, 100), (0.7, 1.3), EXPANSION),
    ((0.2, 1e-11, 0.3, 5.0, 10**5), (0.7, 1.3), EXPANSION),
    ((3.3, 1e-7, 0.1, 1.9, 100), (1.05,), THIRD_ORDER),
    ((0.2, 1e-11, 0.3, 5.0, 10**5), (1.05,), THIRD_ORDER),
    ((5.0, 1e-9, 1e-3, 0.6, 1000), (0.7, 1.3), CONTOUR),  # between one large loss and many
    ((0.8, 1e-9, 0.07, 2.2, 6), (0.7, 1.3), CONTOUR),  # one step that spends everything
    # the answer itself is certified to 1e-6
    ((0.6, 1e-6, 1.5e-5, 0.55, 2_000_000), (1.3,), WIDE),
]


class Unknown(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_double) for name in ("q", "sigma", "steps")),
        ("unknown", ctypes.POINTER(ctypes.c_double)),
    )


@pytest.fixture(scope="module")
def guess(tmp_path_factory):
    """Where a search begins and the logarithmic slope of ε there, or None."""
    library = build(tmp_path_factory.mktemp("guess"), core_files())
    double = ctypes.c_double

    def ask(epsilon, delta, q, sigma, steps, unknown, value, power):
        asked, found = Unknown(q, sigma, steps), (double(value), double(power))
        offset = getattr(Unknown, unknown).offset
        asked.unknown = ctypes.cast(ctypes.addressof(asked) + offset, ctypes.POINTER(double))
        status = library.acct_calibration_guess(
            ctypes.byref(asked), double(epsilon), double(delta), *map(ctypes.byref, found)
        )
        assert status >= 0
        return (found[0].value, found[1].value) if status else None

    return ask


def guessed(guess, question, unknown, away):
    """Return the relative error of a guess, and that of its slope of log ε."""
    epsilon, delta, q, sigma, steps = question
    calibrate = core.calibrate_q if unknown == "q" else core.calibrate_sigma
    first = sigma if unknown == "q" else q
    answer = calibrate(epsilon, delta, first, float(steps))
    power = 1.0 if unknown == "q" else -1.0
    value, slope = guess(epsilon, delta, q, sigma, float(steps), unknown, away * answer, power)

    def spent(value):
        asked = (value, sigma) if unknown == "q" else (q, value)
        return core.epsilon_bounds(*asked, float(steps), delta, core.REMOVE)[1]

    true = math.log(spent(answer * 1.0001) / spent(answer / 1.0001)) / (2.0 * math.log(1.0001))
    return abs(value / answer - 1.0), abs(slope / true - 1.0)


@pytest.mark.parametrize(("question", "aways", "near"), GUESSES)
@pytest.mark.parametrize("unknown", ["q", "sigma"])
def test_a_guess_is_near(guess, question, aways, near, unknown):
    for away in aways:
        value, slope = guessed(guess, question, unknown, away)
        assert value < near[0]
        assert slope < near[1]


@pytest.mark.parametrize(
    ("epsilon", "delta", "q", "sigma"), [(1.0, 1e-6, 0.01, 1.0), (0.1, 1e-7, 1e-4, 0.7)]
)
@pytest.mark.parametrize("away", [0.5, 10.0])
def test_a_guess_of_a_count(guess, epsilon, delta, q, sigma, away):
    answer = core.calibrate_steps(epsilon, delta, q, sigma)
    value, slope = guess(epsilon, delta, q, sigma, math.nan, "steps", away * answer, 0.5)
    assert abs(value - answer) <= 1.0
    assert 0.0 < slope < 1.0


def test_a_guess_of_a_count_where_approximations_lead_nowhere(guess):
    asked = 0.2738, 5.11e-14, 2.164e-5, 0.864
    answer = core.calibrate_steps(*asked)
    value, slope = guess(*asked, math.nan, "steps", 924_000.0, 0.5)
    assert value == pytest.approx(answer, rel=1e-4)
    assert 0.0 < slope < 1.0


def test_nothing_is_guessed_outside_the_range_of_the_expansions(guess):
    assert guess(1.0, 1e-5, 1.0, 1.0, 10.0, "sigma", 1.0, -1.0) is None
    assert guess(1.0, 1e-5, 0.1, 1e-3, 10.0, "q", 0.1, 1.0) is None
    assert guess(1.0, 1e-5, 0.1, 1.0, 1.0, "q", 0.1, 1.0) is None
    assert guess(1.0, 1e-5, 0.1, 1.0, 9.0, "q", 0.0, 1.0) is None


def evaluations(cost, target, guess, power, rising):
    """Return how many evaluations a search along the doubles needs; it ends on neighbours."""
    asked = []

    def counted(value):
        asked.append(value)
        return cost(value)

    ends = (1, as_rank(1e300)) if rising else (as_rank(1e300), 1)
    rank = core.boundary(counted, target, False, guess, *ends, power)
    value, neighbour = as_double(rank), as_double(rank + (1 if rising else -1))
    assert cost(value) <= target < cost(neighbour)
    assert value in asked
    assert neighbour in asked
    return len(asked)


@pytest.mark.parametrize("power", [1.4, -1.4, 6.0, -20.0, 0.05])
@pytest.mark.parametrize("error", [1e-2, 1e-3, 1e-6, -1e-3, -1e-9])
def test_a_smooth_cost_takes_few_evaluations(power, error):
    def cost(value):
        bent = math.log(value / 0.7)
        return 3.0 * math.exp(power * (bent + 0.3 * bent * bent))

    slope = abs(power) * 1.01
    most = 15 if abs(power) < 0.1 else 7  # a flat cost is the same at many doubles
    assert evaluations(cost, 3.0, 0.7 * (1.0 + error), slope, power > 0.0) <= most


@pytest.mark.parametrize(
    ("power", "jitter", "mean"),
    [
        (1.4, 2e-15, 7.4),
        (1.4, 2e-14, 8.2),
        (-4.0, 2e-15, 6.3),
        (20.0, 2e-15, 5.6),
        (0.3, 3e-16, 7.4),
        (-6.0, 1e-15, 5.6),
    ],
)
def test_jitter_takes_few_evaluations_more(power, jitter, mean):
    taken = []
    for seed in range(40):
        root = random.Random(seed).uniform(0.5, 2.0)

        def cost(value, root=root, seed=seed):
            noise = random.Random(as_rank(value) * 1000 + seed).uniform(-jitter, jitter)
            return (value / root) ** power * (1.0 + noise)

        taken.append(evaluations(cost, 1.0, root * 1.00001, abs(power) * 1.01, power > 0.0))
    assert sum(taken) / len(taken) <= mean


def test_a_wrong_slope_is_left_behind():
    for slope in (1e-3, 0.05, 30.0, 1e3):
        for guess in (0.5, 0.999, 1.001, 3.0):
            assert evaluations(lambda value: value**2, 1.0, guess, slope, True) <= 20

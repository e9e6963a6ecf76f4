"""Calibration by the algebra: safe side, few evaluations, any unknown and any target."""

import math
import random

import pytest

import accountant as ac
from accountant import PoissonSampled, calibrate

STEP = PoissonSampled
PROBLEMS = [
    (
        "sigma",
        lambda s: 1000 * PoissonSampled(ac.Gaussian(s), 0.01),
        {"epsilon": 2.0, "delta": 1e-5},
    ),
    (
        "sigma in a mix",
        lambda s: 100 * ac.Gaussian(s) + ac.Laplace(4.0),
        {"epsilon": 1, "delta": 1e-6},
    ),
    ("scale", lambda b: 20 * ac.Laplace(b), {"epsilon": 0.5, "delta": 1e-9}),
    ("q", lambda q: 500 * PoissonSampled(ac.Gaussian(1.0), q), {"epsilon": 3.0, "delta": 1e-5}),
    ("rho", lambda r: ac.ZCDP(r) + ac.PureDP(0.1), {"epsilon": 1.0, "delta": 1e-8}),
    ("advantage", lambda s: 10 * ac.Gaussian(s), {"advantage": 0.1}),
    ("rate", lambda s: 10 * ac.Gaussian(s), {"tpr": 0.2, "fpr": 0.01}),
]


def cost(mechanism, target):
    if "epsilon" in target:
        return mechanism.epsilon(target["delta"]), target["epsilon"]
    if "advantage" in target:
        return mechanism.delta(0.0), target["advantage"]
    return 1.0 - mechanism.tradeoff(target["fpr"]), target["tpr"]


@pytest.mark.long(keep=7)
@pytest.mark.parametrize(("name", "build", "target"), PROBLEMS, ids=[p[0] for p in PROBLEMS])
@pytest.mark.parametrize("start", [1.0, 0.1])
def test_the_answer_is_beside_a_double_that_misses_the_target(name, build, target, start):
    calls = []

    def counted(x):
        calls.append(x)
        return build(x)

    found = calibrate(counted, start=start, **target)
    # Twelve are usual; more where the answer is at a jump of the certified cost.
    assert len(calls) <= 40
    spent, bound = cost(build(found), target)
    assert spent <= bound
    beside = [math.nextafter(found, end) for end in (0.0, math.inf)]
    assert set(beside) & set(calls), "the neighbour was evaluated"
    assert max(cost(build(x), target)[0] for x in beside) > bound


@pytest.mark.long
@pytest.mark.parametrize("precision", [1e-9, 0.1])
def test_a_precision_stops_the_search_early(precision):
    calls = []

    def build(s):
        calls.append(s)
        return 100 * ac.Gaussian(s) + ac.Laplace(4.0)

    found = calibrate(build, epsilon=1.0, delta=1e-6, precision=precision)
    assert build(found).epsilon(1e-6) <= 1.0
    assert build(found * (1.0 - 1.001 * precision)).epsilon(1e-6) > 1.0
    assert len(calls) <= 15
    for bad in (-1e-9, 0.2, math.nan):
        with pytest.raises(ac.DomainError, match="precision must be"):
            calibrate(build, epsilon=1.0, delta=1e-6, precision=bad)


class Costing:
    """What calibrate asks of a mechanism."""

    def __init__(self, cost):
        self.cost = cost

    def epsilon(self, delta):
        return self.cost


def refuse_above_one(x):
    if x > 1.0:
        raise ac.DomainError("x is at most 1")
    return x * x


def refuse_small(x):
    if x < 1e-3:
        raise ac.PrecisionError("nothing was certified")
    return x


COSTS = {
    "falls": lambda x: 7.0 / x,
    "rises": lambda x: x / 1e5,
    "rises, refused above": refuse_above_one,
    "refused below, where it costs least": refuse_small,
    "flat, then falls": lambda x: 3.0 + 1e-7 * math.sin(x) if x < 1e6 else 3e6 / x,
    "infinite, then a step": lambda x: math.inf if x < 3.7 else 0.0,
    "not a number, then a step": lambda x: math.nan if x < 3.7 else 0.1,
    "jumps": lambda x: 0.5 / x * (1.0 + 1e-9 * (math.floor(1e13 * x) % 2)),
    "wiggles": lambda x: 0.5 / x * (1.0 + 1e-9 * random.Random(repr(x)).random()),
}


@pytest.mark.parametrize("name", COSTS)
@pytest.mark.parametrize("start", [1.0, 1e-4, 50.0, 1e9])
def test_costs_of_all_shapes(name, start):
    calls = []

    def build(x):
        calls.append(x)
        return Costing(COSTS[name](x))

    def meets(x):
        try:
            return COSTS[name](x) <= 0.5
        except ac.AccountantError:
            return False

    if name == "refused below, where it costs least" and start == 1e-4:
        start = 0.01
    found = calibrate(build, epsilon=0.5, delta=1e-5, start=start)
    assert found in calls
    assert meets(found)
    beside = [math.nextafter(found, end) for end in (0.0, math.inf)]
    assert any(x in calls and not meets(x) for x in beside)
    assert len(calls) <= 100


@pytest.mark.parametrize(("spent", "word"), [(0.0, "meets"), (2.0, "misses"), (math.inf, "misses")])
@pytest.mark.parametrize("integer", [False, True])
def test_what_every_unknown_meets_or_misses(spent, word, integer):
    calls = []

    def build(x):
        calls.append(x)
        return Costing(spent)

    with pytest.raises(ac.DomainError, match=f"every value tried {word} the target 1.0"):
        calibrate(build, epsilon=1.0, delta=1e-5, integer=integer)
    assert len(calls) <= 30


def test_counts():
    for start in (1, 1000, 2.0**60):
        for most in (0, 1, 2, 17, 123_456_789, 2**50):
            calls = []

            def build(n, most=most, calls=calls):
                calls.append(n)
                assert type(n) is int
                return Costing(0.0 if n == 0 else math.sqrt(n / (most + 0.5)))

            found = calibrate(build, epsilon=1.0, delta=1e-5, integer=True, start=start)
            assert type(found) is int
            assert found == most
            assert most + 1 in calls
            assert len(calls) <= 60


def test_steps():
    calls = []

    def build(n):
        calls.append(n)
        return n * PoissonSampled(ac.Gaussian(1.0), 0.01)

    found = calibrate(build, epsilon=1.0, delta=1e-5, integer=True)
    assert isinstance(found, int)
    assert len(calls) <= 20
    assert found == ac.calibrate_steps(1.0, 1e-5, q=0.01, sigma=1.0)


def test_it_agrees_with_the_quick_function():
    found = calibrate(
        lambda s: 1000 * PoissonSampled(ac.Gaussian(s), 0.01), epsilon=2.0, delta=1e-5
    )
    # Both are where ε crosses the target, which its last digits do more than once.
    quick = ac.calibrate_sigma(2.0, 1e-5, q=0.01, steps=1000)
    assert abs(found - quick) <= 4.0 * math.ulp(quick)
    for sigma in (found, quick):
        assert ac.get_epsilon(0.01, sigma, 1000, 1e-5) <= 2.0
        assert ac.get_epsilon(0.01, math.nextafter(sigma, 0.0), 1000, 1e-5) > 2.0


def test_bad_targets():
    build = ac.Gaussian
    for target in (
        {},
        {"epsilon": 1.0},
        {"epsilon": 1.0, "delta": 1e-5, "advantage": 0.1},
        {"tpr": 0.1},
        {"tpr": 0.1, "fpr": 0.2},
        {"epsilon": -1.0, "delta": 1e-5},
        {"epsilon": math.nan, "delta": 1e-5},
    ):
        with pytest.raises(ac.DomainError):
            calibrate(build, **target)
    with pytest.raises(ac.ArgumentTypeError):
        calibrate(3.0, epsilon=1.0, delta=1e-5)
    with pytest.raises(ac.DomainError, match="no crossing"):
        calibrate(lambda x: ac.Gaussian(1.0), epsilon=100.0, delta=1e-5)


def test_a_build_that_returns_a_number_is_named():
    with pytest.raises(ac.ArgumentTypeError, match=r"build\(x\) must be a mechanism, .* float"):
        ac.calibrate(lambda s: ac.Gaussian(s).epsilon(1e-5), epsilon=1.0, delta=1e-5)

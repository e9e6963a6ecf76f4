"""Calibration by the algebra: safe side, few evaluations, any unknown and any target."""

import math

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


@pytest.mark.parametrize(("name", "build", "target"), PROBLEMS, ids=[p[0] for p in PROBLEMS])
@pytest.mark.parametrize("start", [1.0, 0.01])
def test_the_safe_side_in_twenty_evaluations(name, build, target, start):
    calls = []

    def counted(x):
        calls.append(x)
        return build(x)

    found = calibrate(counted, start=start, **target)
    assert len(calls) <= 20
    spent, bound = cost(build(found), target)
    assert spent <= bound
    # A little less privacy would be too much: on one side or the other, by a factor 1e-5.
    worse = max(cost(build(found * f), target)[0] for f in (1 - 1e-5, 1 + 1e-5))
    assert worse > bound


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
    assert found == pytest.approx(ac.calibrate_sigma(2.0, 1e-5, q=0.01, steps=1000), rel=1e-8)
    assert found >= ac.calibrate_sigma(2.0, 1e-5, q=0.01, steps=1000)


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

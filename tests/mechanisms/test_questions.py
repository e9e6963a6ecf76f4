"""Questions to mechanisms: numbers give numbers, arrays give arrays; what can fail is a method."""

import inspect
import math

import numpy as np
import pytest

import accountant as ac
from accountant import sampling
from support.every_mechanism import EXAMPLES

REPLACE = ac.NeighbouringRelation.REPLACE_ONE

DELTAS = np.array([[1e-9, 1e-5, 1e-5], [0.01, 0.5, 1e-300]])
EPSILONS = np.array([0.0, 0.3, 5.0, math.inf])
ORDERS = [1.5, 2, 8.0]

ALL = [
    *EXAMPLES,
    3 * ac.Gaussian(4.0) + ac.Laplace(3.0),
    ac.PoissonSampled(ac.Gaussian(1.0), 0.01),
    ac.parallel(ac.Gaussian(2.0), ac.Laplace(1.0)),
    ac.BestOfRuns(ac.Gaussian(4.0), 0.1, eta=0.0),
    sampling.Allocated(5.0, steps=4),
]


@pytest.mark.long(keep=30)
@pytest.mark.parametrize("mechanism", ALL, ids=repr)
def test_arrays_give_the_answers_of_their_elements(mechanism):
    asked = [(mechanism.epsilon, DELTAS), (mechanism.delta, EPSILONS)]
    if not isinstance(mechanism, ac.DominatingPMFs):
        asked.append((mechanism.rdp, np.array(ORDERS)))
    for question, values in asked:
        found = question(values)
        assert type(found) is np.ndarray
        assert found.dtype == np.float64
        assert found.shape == values.shape
        assert found.flags.writeable
        for place in np.ndindex(values.shape):
            one = question(float(values[place]))
            assert type(one) is float
            assert found[place] == one


@pytest.mark.parametrize("mechanism", ALL[-5:], ids=repr)
def test_brackets_of_arrays(mechanism):
    for question, values in (
        (mechanism.epsilon_bounds, DELTAS),
        (mechanism.delta_bounds, EPSILONS),
        (mechanism.profile().epsilon_bounds, DELTAS),
    ):
        found = question(values)
        for place in np.ndindex(values.shape):
            assert ac.Bounds(found.lower[place], found.upper[place]) == question(values[place])


def test_the_profile_and_the_ledger_take_arrays_too():
    mechanism = 10 * ac.PoissonSampled(ac.Gaussian(1.0), 0.1)
    ledger = ac.Accountant()
    assert ledger.epsilon([1e-5, 1e-6]).tolist() == [0.0, 0.0]
    assert ledger.epsilon_bounds([[1e-5]]) == ac.Bounds(np.zeros((1, 1)), np.zeros((1, 1)))
    ledger.compose(mechanism)
    for whole in (mechanism, mechanism.profile(), ledger):
        assert whole.epsilon([1e-5, 1e-6]).tolist() == [mechanism.epsilon(d) for d in (1e-5, 1e-6)]
        assert whole.delta(np.array([1, 2])).tolist() == [mechanism.delta(e) for e in (1, 2)]
        assert whole.epsilon_bounds((1e-5,)).upper.tolist() == [mechanism.epsilon(1e-5)]
    fpr = np.linspace(0.0, 1.0, 5)
    assert mechanism.tradeoff(fpr).tolist() == [mechanism.tradeoff(float(x)) for x in fpr]


def test_scalars_of_numpy_and_arrays_without_axes_are_numbers():
    mechanism = ac.Gaussian(2.0)
    for delta in (np.float64(1e-5), np.array(1e-5)):
        assert type(mechanism.epsilon(delta)) is float
        assert mechanism.epsilon(delta) == mechanism.epsilon(1e-5)
    assert mechanism.epsilon(np.empty((0, 3))).shape == (0, 3)
    assert mechanism.epsilon_bounds([]).upper.shape == (0,)


def test_bad_elements_are_named_with_their_place():
    mechanism = ac.Gaussian(2.0)
    with pytest.raises(ac.DomainError, match=r"delta must be .* got 1.5 at index \(1,\)"):
        mechanism.epsilon([0.1, 1.5])
    with pytest.raises(ac.DomainError, match=r"epsilon must be .* got nan at index \(0, 0\)"):
        mechanism.delta([[math.nan]])
    with pytest.raises(ac.DomainError, match=r"order must be .* got 1.0 at index"):
        mechanism.rdp([2.0, 1.0])
    with pytest.raises(ac.ArgumentTypeError, match=r"delta must be .* bool"):
        mechanism.epsilon([0.1, True])


def test_what_can_fail_is_a_method():
    curve = ac.TruncatedCDP(0.1, omega=3.0)
    for question in (curve.mu, curve.rho, curve.profile().mu, curve.profile().rho):
        with pytest.raises(ac.UnsupportedError):
            question()
    with pytest.raises(ac.UnsupportedError):
        ac.ZCDP(0.1).mu()
    assert ac.ZCDP(0.1).rho() == 0.1
    assert (2 * ac.PureDP(0.5)).rho() >= 0.25
    assert 0.7 <= ac.GDP(0.7).mu() <= 0.7 * (1.0 + 1e-15)


@pytest.mark.parametrize("mechanism", ALL, ids=repr)
def test_no_property_of_a_mechanism_raises(mechanism):
    for value in (mechanism, mechanism.profile()):
        for name, _ in inspect.getmembers_static(type(value), lambda x: isinstance(x, property)):
            assert hasattr(value, name)
            getattr(value, name)

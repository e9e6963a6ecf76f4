"""Mechanisms as values: what they print, their relations, groups and refusals."""

import math

import pytest

import accountant as ac
from accountant import NeighbouringRelation as Relation
from support.every_mechanism import EXAMPLES

ADD, REPLACE, ZERO = Relation.ADD_OR_REMOVE, Relation.REPLACE_ONE, Relation.ZERO_OUT


@pytest.mark.parametrize("mechanism", EXAMPLES, ids=repr)
def test_values(mechanism):
    names = {name: getattr(home, name) for home in (ac, ac.mechanisms) for name in home.__all__}
    again = eval(repr(mechanism), names)
    assert again == mechanism
    assert hash(again) == hash(mechanism)
    with pytest.raises(AttributeError):
        mechanism.relation = REPLACE
    assert type(mechanism)(**mechanism.parameters()) == mechanism


def test_replace_one_doubles_the_sensitivity():
    for one in (
        ac.Gaussian(2.0),
        ac.Laplace(2.0),
        ac.DiscreteGaussian(2.0),
        ac.DiscreteLaplace(2.0),
        ac.ReportNoisyMax(2.0),
        ac.AboveThreshold(2.0, query_scale=3.0),
    ):
        double = {"sensitivity": 2}
        twice = type(one)(**{**one.parameters(), **double})
        replaced = one.under(REPLACE)
        assert replaced.relation is REPLACE
        assert replaced.pairs() == twice.pairs()
        assert one.under(ZERO).pairs() == one.pairs()
        assert replaced.under(ADD) == one


def test_black_boxes_carry_over_by_steps():
    assert ac.PureDP(0.5).under(REPLACE) == ac.PureDP(1.0, relation=REPLACE)
    assert ac.ZCDP(0.5).under(REPLACE) == ac.ZCDP(2.0, relation=REPLACE)
    assert ac.GDP(0.5).under(REPLACE) == ac.GDP(1.0, relation=REPLACE)
    assert ac.PureDP(0.5).under(ZERO) == ac.PureDP(0.5, relation=ZERO)
    with pytest.raises(ac.UnsupportedError, match="does not imply"):
        ac.PureDP(0.5, relation=REPLACE).under(ADD)
    two = ac.ApproximateDP(0.5, delta=1e-6).under(REPLACE)
    assert two.epsilon0 >= 1.0
    assert (1 + math.exp(0.5)) * 1e-6 <= two.delta0 <= (1 + math.exp(0.5)) * 1e-6 * (1 + 1e-12)


def test_groups():
    assert ac.Gaussian(2.0).group(3) == ac.Gaussian(2.0, sensitivity=3.0)
    assert ac.DiscreteLaplace(2.0).group(3) == ac.DiscreteLaplace(2.0, sensitivity=3)
    assert ac.ZCDP(0.1).group(2).rho0 >= 0.4
    assert ac.GDP(0.1).group(2).mu0 >= 0.2
    assert ac.RandomizedResponse(0.5).group(2).epsilon(0.0) >= 1.0
    delta = ac.ApproximateDP(0.5, delta=1e-6).group(3).delta0
    truth = 1e-6 * (1 + math.exp(0.5) + math.exp(1.0))
    assert truth <= delta <= truth * (1 + 1e-12)
    with pytest.raises(ac.UnsupportedError, match="group"):
        ac.TruncatedCDP(0.1, omega=5.0).group(2)
    with pytest.raises(TypeError):
        ac.Gaussian(1.0).group(2.0)


def mixed(shifts, chances, **named):
    return ac.MixtureOfGaussians(1.0, sensitivities=shifts, probabilities=chances, **named)


BAD = [
    (lambda: ac.Gaussian(0.0), ac.DomainError),
    (lambda: ac.Gaussian(-1.0), ac.DomainError),
    (lambda: ac.Gaussian(math.nan), ac.DomainError),
    (lambda: ac.Gaussian("1"), ac.ArgumentTypeError),
    (lambda: ac.Gaussian(True), ac.ArgumentTypeError),
    (lambda: ac.Gaussian([1.0, 2.0]), ac.ArgumentTypeError),
    (lambda: ac.Gaussian(1.0, sensitivity=-1.0), ac.DomainError),
    (lambda: ac.Gaussian(1.0, sensitivity=math.inf), ac.DomainError),
    (lambda: ac.Gaussian(1.0, relation="add"), ac.ArgumentTypeError),
    (lambda: ac.Laplace(0.0), ac.DomainError),
    (lambda: ac.Laplace(1.0, sensitivity=-2.0), ac.DomainError),
    (lambda: ac.DiscreteGaussian(1.0, sensitivity=1.5), ac.ArgumentTypeError),
    (lambda: ac.DiscreteLaplace(1.0, sensitivity=True), ac.ArgumentTypeError),
    (lambda: ac.DiscreteLaplace(1.0, sensitivity=-1), ac.DomainError),
    (lambda: ac.PureDP(-0.1), ac.DomainError),
    (lambda: ac.PureDP(math.inf), ac.DomainError),
    (lambda: ac.ApproximateDP(0.1, delta=1.5), ac.DomainError),
    (lambda: ac.RandomizedResponse(1.0, k=1), ac.DomainError),
    (lambda: ac.RandomizedResponse(1.0, k=2.0), ac.ArgumentTypeError),
    (lambda: ac.ReportNoisyMax(1.0, "cauchy"), ac.DomainError),
    (lambda: ac.ReportNoisyMax(1.0, monotonic=1), ac.ArgumentTypeError),
    (lambda: ac.AboveThreshold(1.0, query_scale=1.0, positives=0), ac.DomainError),
    (lambda: mixed([0, 1], [0.5, 0.4]), ac.DomainError),
    (lambda: mixed([0, -1], [0.5, 0.5]), ac.DomainError),
    (lambda: mixed([0], [0.5, 0.5]), ac.DomainError),
    (lambda: mixed([0, 1], [0.5, 0.5], relation=REPLACE), TypeError),
    (lambda: ac.DominatingPMFs([0.5, 0.4], [0.5, 0.5]), ac.DomainError),
    (lambda: ac.DominatingPMFs([0.5, 0.5], [1.0]), ac.DomainError),
    (lambda: ac.DominatingPMFs([0.5, 0.5], [1.0, 0.0]), ac.DomainError),
    (lambda: ac.DominatingPMFs([1.5, -0.5], [0.5, 0.5]), ac.DomainError),
    (lambda: ac.ZCDP(-1.0), ac.DomainError),
    (lambda: ac.TruncatedCDP(1.0, omega=1.0), ac.DomainError),
    (lambda: ac.RenyiCurve(3.0), ac.ArgumentTypeError),
    (lambda: ac.RenyiCurve.from_table([2.0], []), ac.DomainError),
    (lambda: ac.RenyiCurve.from_table([1.0], [0.1]), ac.DomainError),
    (lambda: ac.LossDistribution(1, 2, 3, 4), ac.ArgumentTypeError),
]


@pytest.mark.parametrize(("call", "error"), BAD)
def test_bad_input(call, error):
    with pytest.raises(error) as caught:
        call()
    assert isinstance(caught.value, ac.AccountantError)
    assert len(str(caught.value)) > 20


def test_infinite_losses_must_be_asked_for():
    leaky = ac.DominatingPMFs([0.5, 0.4, 0.1], [0.6, 0.4, 0.0], infinite_loss=True)
    remove, add = leaky.pairs()
    assert 0.1 <= remove.infinite_mass <= 0.1 * (1 + 1e-12)
    assert add.infinite_mass == 0.0
    assert remove.rdp(2.0) == math.inf
    assert remove.finite_rdp(2.0) < math.inf


def test_nothing_is_released_without_sensitivity():
    for silent in (
        ac.Gaussian(1.0, sensitivity=0.0),
        ac.Laplace(1.0, sensitivity=0.0),
        ac.PureDP(0.0),
        ac.GDP(0.0),
    ):
        assert silent.epsilon(1e-9) == 0.0
        assert silent.delta(0.0) == 0.0

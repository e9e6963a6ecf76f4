"""dp-accounting's events as mechanisms; skipped where dp-accounting is not installed."""

import inspect
import math

import pytest

import accountant as ac
from support import dp_event_names as e
from support.dp_event_names import DL, AddRemove, Composed, G, L, Poisson, Times, exact, refusal
from support.dp_event_names import adapter as dp_events

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


# Every event type of the module, converted or refused by name.

EXAMPLES = {
    "NoOpDpEvent": e.events.NoOpDpEvent(),
    "NonPrivateDpEvent": e.events.NonPrivateDpEvent(),
    "GaussianDpEvent": G(2.0),
    "LaplaceDpEvent": L(2.0),
    "DiscreteLaplaceDpEvent": DL(0.5, 2),
    "RandomizedResponseDpEvent": e.RR(0.5, 4),
    "SelfComposedDpEvent": Times(G(2.0), 3),
    "ComposedDpEvent": Composed([G(2.0), L(3.0)]),
    "PoissonSampledDpEvent": Poisson(0.1, G(2.0)),
    "SampledWithReplacementDpEvent": e.With(100, 5, G(2.0)),
    "SampledWithoutReplacementDpEvent": e.Without(100, 5, G(2.0)),
    "SingleEpochTreeAggregationDpEvent": e.Tree(3.0, [4, 9]),
    "RepeatAndSelectDpEvent": e.Best(G(3.0), 5.0, 1.0),
    "MixtureOfGaussiansDpEvent": e.Mixture(1.0, [0.0, 1.0], [0.9, 0.1]),
    "ZCDpEvent": e.ZCDP(0.1),
    "TruncatedSubsampledGaussianDpEvent": e.Truncated(1000, 0.01, 30, 2.0),
    "RandomAllocationDpEvent": e.Allocated(G(2.0), 2, 20),
    "DiscreteGaussianDpEvent": e.DiscreteG(3.0, 2.5, 1),
    "EpsilonDeltaDpEvent": e.Stated(0.5, 1e-7),
    "ExponentialMechanismDpEvent": e.Exponential(0.5),
    "PermuteAndFlipDpEvent": e.Flip(0.5),
}
NOT_UNDER = {
    "RandomizedResponseDpEvent": {AddRemove},
    "SampledWithReplacementDpEvent": {e.Special},
    "SampledWithoutReplacementDpEvent": {AddRemove},
    "SingleEpochTreeAggregationDpEvent": {AddRemove},
    "MixtureOfGaussiansDpEvent": {e.Replace},
    "RandomAllocationDpEvent": {e.Replace},
}
EVENT_TYPES = {kind.__name__: kind for kind in e.NEWEST} | {
    name: kind
    for name, kind in inspect.getmembers(e.events, inspect.isclass)
    if issubclass(kind, e.events.DpEvent)
}


def test_every_event_type_of_the_module_is_known_by_name():
    assert set(EVENT_TYPES) == set(dp_events.CONVERTED) | set(dp_events.events.REFUSED)
    assert not set(dp_events.CONVERTED) & set(dp_events.events.REFUSED)
    assert set(EXAMPLES) == set(dp_events.CONVERTED)


@pytest.mark.parametrize("relation", e.ALL, ids=lambda relation: relation.name)
@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_each_converted_type_is_converted_under_the_relations_it_has(name, relation):
    event = EXAMPLES[name]
    assert type(event) is EVENT_TYPES[name]
    accountant = e.adapter.ExactAccountant(relation)
    if relation in NOT_UNDER.get(name, ()):
        assert not accountant.supports(event)
        with pytest.raises(e.dp.UnsupportedEventError):
            accountant.compose(event)
        assert accountant.get_epsilon(e.DELTA) == 0.0
        return
    assert accountant.supports(event)
    found = accountant.compose(event).get_epsilon(e.DELTA)
    assert (found == math.inf) == (name == "NonPrivateDpEvent")
    assert (found == 0.0) == (name == "NoOpDpEvent")
    assert all(part.relation is e.OURS[relation] for part, _ in accountant.releases.counts)
    assert e.adapter.composition(event, relation).epsilon(e.DELTA) == found


@pytest.mark.parametrize("name", sorted(dp_events.events.REFUSED))
def test_each_refused_type_is_refused_with_a_reason(name):
    for relation in e.ALL:
        assert dp_events.events.REFUSED[name] in refusal(EVENT_TYPES[name](), relation)


def test_unknown_events_are_never_guessed():
    import attr

    @attr.s(frozen=True, slots=True, auto_attribs=True)
    class GaussianDpEvent(e.events.DpEvent):
        noise_multiplier: float

    class Louder(G):
        pass

    @attr.s(frozen=True, slots=True, auto_attribs=True)
    class Extended(e.events.DpEvent):
        noise_multiplier: float
        sensitivity: float = 2.0

    Extended.__name__, Extended.__module__ = "GaussianDpEvent", "dp_accounting.dp_event"
    for event in (GaussianDpEvent(1.0), Louder(1.0), None, 3.0):
        assert refusal(event) == "the event is unknown"
        assert "unknown" in refusal(Composed([G(1.0), Times(event, 2)]))
        assert "unknown" in refusal(Poisson(0.1, event))
    assert "other fields" in refusal(Extended(1.0))
    with pytest.raises(ac.UnsupportedError, match="is not covered: the event is unknown"):
        e.adapter.composition(Louder(1.0))


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_what_is_recorded_can_be_saved(name, tmp_path):
    for relation in set(e.ALL) - NOT_UNDER.get(name, set()):
        made = exact(Composed([EXAMPLES[name], Poisson(0.1, Composed([G(2.0), L(2.0)]))]), relation)
        made.releases.save(tmp_path / f"{relation.name}.json")
        read = ac.Accountant.load(tmp_path / f"{relation.name}.json")
        assert read.counts == made.releases.counts


# What an event means.


@pytest.mark.parametrize(
    ("event", "relation", "wanted"),
    [
        (G(2.0), AddRemove, "Gaussian(2.0)"),
        (Times(Composed([G(2.0), Times(L(3.0), 2)]), 5), AddRemove,
         "5 * Gaussian(2.0) + 10 * Laplace(3.0)"),
        (Times(Poisson(0.01, G(1.0)), 9), AddRemove, "9 * PoissonSampled(Gaussian(1.0), 0.01)"),
        (Poisson(1.0, G(1.0)), AddRemove, "Gaussian(1.0)"),
        (Poisson(0.1, G(2.0)), e.Replace,
         "PoissonSampled(Gaussian(2.0, relation=NeighbouringRelation.REPLACE_ONE), 0.1)"),
        (Poisson(0.1, Poisson(0.5, G(2.0))), AddRemove,
         "PoissonSampled(PoissonSampled(Gaussian(2.0), 0.5), 0.1)"),
        (Poisson(0.1, Composed([G(4.0), L(4.0)])), AddRemove,
         "PoissonSampled(JointRelease(Gaussian(4.0) + Laplace(4.0)), 0.1)"),
        (e.Without(1000, 10, G(1.5)), e.Replace,
         "FixedSizeSampled(1.5, batch_size=10, dataset_size=1000)"),
        (e.With(1000, 10, G(1.5)), AddRemove,
         "WithReplacementSampled(1.5, batch_size=10, dataset_size=1000)"),
        # The neighbour may have a record more.
        (e.Truncated(1000, 0.01, 30, 2.0), AddRemove,
         "TruncatedPoissonSampled(2.0, sampling_probability=0.01, cap=30, dataset_size=1001)"),
        (DL(0.5, 2), AddRemove, "DiscreteLaplace(2.0, sensitivity=2)"),
        (e.Best(G(3.0), 5.0, math.inf), AddRemove, "BestOfPoissonRuns(Gaussian(3.0), 5.0)"),
        (e.Best(G(3.0), 1.0, 1.0), AddRemove, "Gaussian(3.0)"),
        (e.ZCDP(0.1), AddRemove, "ZCDP(0.1)"),
        (e.Allocated(G(2.0), 1, 20), AddRemove, "Allocated(2.0, steps=20)"),
        (e.Allocated(G(2.0), 3, 20), AddRemove, "3 * Allocated(2.0, steps=6)"),
        (e.Allocated(L(1.5), 2, 90), AddRemove, "2 * AllocatedMechanism(Laplace(1.5), steps=45)"),
        (e.Allocated(G(2.0), 20, 20), AddRemove, "20 * Allocated(2.0, steps=1)"),
        # Integers move by integers, and a vector of unknown length is known by zCDP.
        (e.DiscreteG(3.0, 2.5, 1), AddRemove, "DiscreteGaussian(3.0, sensitivity=2)"),
        (e.DiscreteG(3.0, 2.5, 2), AddRemove, "DiscreteGaussianVector(3.0, sensitivity=2.5)"),
        (e.DiscreteG(3.0, 2.5), AddRemove, "DiscreteGaussianVector(3.0, sensitivity=2.5)"),
        (e.Stated(0.5, 1e-7), AddRemove, "ApproximateDP(0.5, delta=1e-07)"),
        (e.Exponential(0.5), AddRemove, "ExponentialMechanism(0.5)"),
        (e.Flip(0.5), AddRemove, "Laplace(2.0)"),
    ],
    ids=str,
)  # fmt: skip
def test_what_an_event_becomes(event, relation, wanted):
    found = repr(e.mechanism(event, relation))
    assert found.removeprefix("1 * ") == wanted.removeprefix("1 * ")


def test_what_an_epsilon_states_holds_under_the_relation_of_the_accountant():
    for relation in e.ALL:
        assert exact(e.Stated(0.5, 1e-7), relation).get_delta(0.5) == pytest.approx(1e-7)
        assert exact(e.Flip(0.5), relation).get_epsilon(0.0) == pytest.approx(0.5)
        assert exact(e.Exponential(0.5), relation).get_epsilon(0.0) == pytest.approx(0.5)
    for nothing in (e.Stated(0.0, 0.0), e.Exponential(0.0), e.Flip(0.0), e.DiscreteG(2.0, 0.9, 1)):
        assert exact(nothing).get_delta(0.0) == 0.0
    for all_of_it in (
        e.Stated(0.0, 1.0),
        e.Exponential(math.inf),
        e.Flip(math.inf),
        e.DiscreteG(0.0),
    ):
        assert exact(all_of_it).get_delta(9.0) == 1.0


def test_runs_that_nobody_joins_tell_nothing_and_runs_without_noise_everything():
    assert exact(e.Allocated(G(2.0), 0, 20)).get_epsilon(0.0) == 0.0
    assert exact(e.Allocated(G(0.0), 1, 20)).get_epsilon(0.5) == math.inf
    # Releases of one run share who is in it.
    both = e.Allocated(Composed([G(4.0), Times(G(4.0), 3)]), 1, 20)
    one = exact(e.Allocated(G(2.0), 1, 20)).get_epsilon(e.DELTA)
    assert one <= exact(both).get_epsilon(e.DELTA) <= one * (1 + 1e-9)
    assert "at most num_steps" in refusal(e.Allocated(G(2.0), 21, 20))
    assert "on a sample" in refusal(Poisson(0.1, e.Allocated(G(2.0), 1, 20)))


@pytest.mark.parametrize("relation", e.ALL, ids=str)
def test_gaussians_on_one_sample_are_one_with_the_noise_of_all(relation):
    both = Composed([G(2.0), Times(G(3.0), 4)])
    noise = (2.0**-2 + 4 * 3.0**-2) ** -0.5
    alone = exact(Times(Poisson(0.1, G(noise)), 20), relation).get_epsilon(e.DELTA)
    found = exact(Times(Poisson(0.1, both), 20), relation).get_epsilon(e.DELTA)
    assert alone * (1 - 1e-9) <= found <= alone * (1 + 1e-6)
    apart = Composed([Poisson(0.1, G(2.0)), Times(Poisson(0.1, G(3.0)), 4)])
    assert found > exact(Times(apart, 20), relation).get_epsilon(e.DELTA)


def test_a_level_of_the_tree_is_one_unit_of_squared_sensitivity():
    for steps, levels in ((1, 1), (2, 2), (3, 2), (4, 3), (7, 3), (8, 4), ([3, 8, 5], 4), ([0], 0)):
        found = e.mechanism(e.Tree(3.0, steps), e.Special)
        assert found.mu() == pytest.approx(math.sqrt(levels) / 3.0, rel=1e-12)
        if isinstance(steps, int):  # the package's own tree
            tree = ac.sampling.MatrixMechanism(ac.sampling.tree_strategy(steps))
            assert found.mu() >= tree.mechanism(3.0).mu() * (1 - 1e-12)
            assert e.mechanism(e.Tree(3.0, steps), e.Replace).mu() == pytest.approx(2 * found.mu())


def test_the_mean_number_of_runs_is_not_rounded_down():
    from accountant.derived.repetition import mean_runs

    for mean in (1.0 + 2.0**-50, 1.5, 7.3, 1e6):
        for shape in (0.0, 0.3, 1.0, 5.0):
            ((found, _),) = e.mechanism(e.Best(G(3.0), mean, shape)).parts
            loose = mean_runs(found.stopping_probability, shape)
            assert mean <= loose <= mean * (1 + 1e-9)
            known = ac.BestOfRuns.with_mean(ac.Gaussian(3.0), mean, eta=shape)
            assert found.stopping_probability < known.stopping_probability


# Relations.


@pytest.mark.parametrize("event", [G(3.0), L(3.0), DL(0.5, 2), e.Tree(3.0, 5)], ids=str)
def test_replacing_moves_a_sum_twice_as_far(event):
    noisier = {
        "GaussianDpEvent": G(6.0), "LaplaceDpEvent": L(6.0), "DiscreteLaplaceDpEvent": DL(0.5, 1),
        "SingleEpochTreeAggregationDpEvent": e.Tree(6.0, 5),
    }[type(event).__name__]  # fmt: skip
    once, twice = exact(event, e.Special), exact(noisier, e.Replace)
    assert once.get_epsilon(e.DELTA) == pytest.approx(twice.get_epsilon(e.DELTA), rel=1e-12)


def test_a_guarantee_about_replacing_says_nothing_of_leaving_out():
    stated = (e.ZCDP(0.1), e.Stated(0.1, 0.0), e.Exponential(0.1), e.Flip(0.1))
    for relation in (e.Replace, e.Special):
        for event in stated:
            assert type(event).__name__ in refusal(Poisson(0.1, event), relation)
        assert "RandomizedResponse" in refusal(Poisson(0.1, Composed([e.RR(0.5, 4)])), relation)
    for event in stated:
        assert refusal(Poisson(0.1, event)) is None
        assert refusal(e.Without(100, 10, event), e.Replace) is None
        assert type(event).__name__ in refusal(e.Without(100, 10, event), e.Special)
    assert "EpsilonDelta" in refusal(e.Allocated(e.Stated(0.1, 0.0), 1, 9), e.Special)
    for inner in (e.Without(10, 5, G(1.0)), e.With(10, 5, G(1.0)), e.Truncated(10, 0.1, 5, 1.0)):
        # Their sizes are not those of a sample.
        assert "on a sample" in refusal(Poisson(0.1, e.Best(inner, 5.0, 1.0)), e.Replace)
    assert "on a sample" in refusal(Poisson(0.1, Times(e.Tree(1.0, 5), 2)), e.Special)


def test_neighbouring_relations_of_both_libraries():
    for theirs, ours in e.OURS.items():
        assert e.adapter.ExactAccountant(theirs).neighboring_relation is theirs
        assert e.adapter.ExactAccountant(ours).neighboring_relation is theirs
    assert e.adapter.ExactAccountant().neighboring_relation is AddRemove
    for wrong in ("ADD_OR_REMOVE_ONE", 1, None):
        with pytest.raises(TypeError, match="neighboring_relation"):
            e.adapter.ExactAccountant(wrong)


# The interface.


def test_non_private_events_make_epsilon_infinite():
    other = e.events.NonPrivateDpEvent()
    for event in (
        other,
        Composed([G(1.0), Times(other, 2)]),
        Poisson(1e-9, other),
        e.Best(other, 2, 1),
    ):
        accountant = exact(Composed([G(2.0), event]))
        assert accountant.get_epsilon(0.5) == math.inf
        assert accountant.get_delta(10.0) == 1.0
        assert e.adapter.composition(event).epsilon(0.5) == math.inf
    assert "unknown" in refusal(Composed([other, None]))
    assert e.adapter.composition(Times(other, 0)).epsilon(e.DELTA) == 0.0
    assert exact(G(0.0)).get_epsilon(0.5) == math.inf


def test_composition_adds_up_as_in_one_event():
    step = Poisson(0.01, G(1.0))
    whole = exact(Composed([Times(step, 90), L(4.0), step]))
    parts = exact(step, count=80).compose(L(4.0)).compose(Times(step, 11))
    assert whole.get_epsilon(e.DELTA) == parts.get_epsilon(e.DELTA)
    assert whole.get_delta(1.0) == parts.get_delta(1.0)
    assert len(parts.releases) == 92
    assert parts.ledger == Composed([Times(step, 80), L(4.0), Times(step, 11)])
    bounds = parts.releases.epsilon_bounds(e.DELTA)
    assert 0.0 < bounds.lower <= bounds.upper == parts.get_epsilon(e.DELTA)


def test_it_calibrates_with_their_own_search():
    found = e.dp.calibrate_dp_mechanism(
        e.adapter.ExactAccountant, lambda noise: Times(Poisson(0.01, G(noise)), 1000), 2.0, e.DELTA
    )
    assert found == pytest.approx(ac.calibrate_sigma(2.0, e.DELTA, 0.01, 1000), abs=1e-5)


@pytest.mark.parametrize("count", [-1, 0, 1.0, True, None, "2"])
def test_counts_are_integers(count):
    with pytest.raises(
        (TypeError, ValueError), match=r"count must be an integer in \[1, 2\*\*53\]"
    ):
        exact(G(1.0), count=count)


BAD = [
    G(-1.0), G(math.nan), G("1"), G(True), G(None), L(-1.0), DL(0.5, 1.5), DL(-0.5, 1),
    DL(0.5, -1), e.RR(1.5, 3), e.RR(0.5, 0), e.RR(0.5, 2.5), Times(G(1.0), 1.5), Times(G(1.0), -1),
    Times(G(1.0), True), Poisson(1.1, G(1.0)), Poisson(-0.1, G(1.0)), Poisson(math.nan, G(1.0)),
    Composed(None), Composed(G(1.0)), e.Without(10, 11, G(1.0)), e.Without(0, 0, G(1.0)),
    e.Without(10.0, 5, G(1.0)), e.With(0, 1, G(1.0)), e.With(10, -1, G(1.0)), e.Tree(1.0, []),
    e.Tree(1.0, [2, -1]), e.Tree(1.0, 2.5), e.Tree(-1.0, 2), e.Best(G(1.0), 0.5, 1.0),
    e.Best(G(1.0), 5.0, -0.5), e.Best(G(1.0), math.nan, 1.0),
    e.Mixture(1.0, [0.0, -1.0], [0.5, 0.5]), e.Mixture(1.0, [1.0], [0.5]), e.Mixture(1.0, [], []),
    e.Mixture(1.0, [0.0, 1.0], [1.0]), e.ZCDP(-1.0), e.ZCDP(0.1, -0.1),
    e.Truncated(10, 1.5, 5, 1.0), e.Truncated(10, 0.5, -5, 1.0), e.Truncated(10, 0.5, 5, -1.0),
    e.Truncated(10.5, 0.5, 5, 1.0), e.Allocated(G(1.0), -1, 9), e.Allocated(G(1.0), 1, 0),
    e.Allocated(G(1.0), 1.0, 9), e.Allocated(None, 1, 9), e.Allocated(e.ZCDP(0.1), 1, 9),
    e.DiscreteG(-1.0), e.DiscreteG(1.0, -1.0), e.DiscreteG(1.0, math.nan, 1),
    e.DiscreteG(1.0, 1.0, 0), e.DiscreteG(1.0, 1.0, 1.5), e.DiscreteG(1.0, 1e300, 1),
    e.Stated(-0.1, 0.0), e.Stated(0.1, 1.5), e.Stated(math.nan, 0.0), e.Exponential(-1.0),
    e.Exponential(None), e.Flip(-1.0), e.Flip(math.nan), e.Flip("1"),
]  # fmt: skip


@pytest.mark.parametrize("event", BAD, ids=str)
def test_bad_parameters_are_refused_and_never_crash(event):
    for relation in e.ALL:
        accountant = e.adapter.ExactAccountant(relation)
        assert not accountant.supports(event)
        assert not accountant.supports(Times(Composed([G(1.0), event]), 2))
        with pytest.raises(e.dp.UnsupportedEventError):
            accountant.compose(event)
        assert len(accountant.releases) == 0


def test_events_nested_beyond_the_stack_are_refused():
    event = G(1.0)
    for _ in range(5000):
        event = Times(event, 1)
    assert "too deeply" in refusal(event)

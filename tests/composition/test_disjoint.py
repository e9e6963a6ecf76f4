"""Releases about disjoint sets: sets fixed in advance, and sets chosen by what was released.

The oracle is the recursion over strategies: whoever assigns the records puts ours, after each
output, into the branch that hurts most from there on.
"""

from functools import cache

import pytest
from mpmath import mp, mpf

import accountant as ac
from accountant import parallel
from accountant.analyses.over_steps.curve import brackets
from accountant.composition import Composition
from accountant.report.spending import Spending
from accountant.sampling import Allocated

FIXED, CHOSEN = ac.PureDP(0.5), (ac.PureDP(2.0), ac.ApproximateDP(0.0, delta=0.3))


pytestmark = pytest.mark.usefixtures("sixty_digits")


def pure(epsilon):
    e = mp.exp(mpf(epsilon))
    return ((mpf(epsilon), e / (1 + e)), (-mpf(epsilon), 1 / (1 + e)))


def approximate(epsilon, delta):
    return (*((x, (1 - mpf(delta)) * p) for x, p in pure(epsilon)), (mp.inf, mpf(delta)))


def of_answers(epsilon, k):
    e = mp.exp(mpf(epsilon))
    return (
        (mpf(epsilon), e / (e + k - 1)),
        (-mpf(epsilon), 1 / (e + k - 1)),
        (mpf(0), (k - 2) / (e + k - 1)),
    )


def over_strategies(rounds, epsilon):
    """The largest δ when each round's branch is chosen by the loss so far, by recursion."""

    @cache
    def value(k, left):
        if left == -mp.inf:
            return mpf(1)
        if k == len(rounds):
            return max(1 - mp.exp(left), mpf(0))
        return max(sum(p * value(k + 1, left - x) for x, p in branch) for branch in rounds[k])

    return value(0, mpf(epsilon))


def test_sets_chosen_by_a_release_cost_more_than_any_fixed_ones():
    rounds = [[pure(0.5)], [pure(2.0), approximate(0.0, 0.3)]]
    truth = over_strategies(rounds, 1.5)
    fixed = max(over_strategies([rounds[0], [branch]], 1.5) for branch in rounds[1])
    assert fixed == pytest.approx(0.34656, abs=1e-4)
    assert truth == pytest.approx(0.45983, abs=1e-4)
    in_advance = (FIXED + parallel(*CHOSEN)).delta(1.5)
    assert (
        fixed <= in_advance < truth
    )  # right for sets fixed before the first release, and only there
    by_output = (FIXED + parallel(*CHOSEN, adaptive=True)).delta(1.5)
    assert truth <= by_output <= truth * (1 + mpf("1e-4"))


def test_a_ledger_takes_the_sets_for_chosen_by_its_other_records():
    rounds = [[pure(0.5)], [pure(2.0), approximate(0.0, 0.3)]]
    truth = over_strategies(rounds, 1.5)
    ledger = ac.Accountant()
    ledger.compose(FIXED)
    ledger.compose(parallel(*CHOSEN))
    assert ledger.delta(1.5) >= truth
    assert over_strategies(rounds, ledger.epsilon(0.4)) <= 0.4
    assert ac.Accountant.from_json(ledger.to_json()).delta(1.5) == ledger.delta(1.5)
    # Within one record, too: its sets may depend on an earlier record.
    nested = ac.Accountant()
    nested.compose(ac.PureDP(0.25), 2)
    nested.compose(1 * parallel(*CHOSEN))
    twice = over_strategies([[pure(0.25)], [pure(0.25)], rounds[1]], 1.5)
    assert nested.delta(1.5) >= twice
    # A budget that composes exactly refuses by the same account.
    budget = ac.Budget(1.5, float(truth) * 0.99, filter="non-adaptive")
    watched = ac.Accountant(budget)
    watched.compose(FIXED)
    with pytest.raises(ac.BudgetExceeded):
        watched.compose(parallel(*CHOSEN))
    # A single release has nothing before it: the worse branch, as exactly as ever.
    alone = ac.Accountant()
    alone.compose(parallel(*CHOSEN))
    assert alone.epsilon_bounds(0.35) == parallel(*CHOSEN).epsilon_bounds(0.35)


def test_no_strategy_exceeds_the_adaptive_account():
    kinds = {
        "pure": (ac.PureDP(0.7), pure(0.7)),
        "wide": (ac.RandomizedResponse(1.3, k=5), of_answers(1.3, 5)),
        "failing": (ac.ApproximateDP(0.1, delta=0.08), approximate(0.1, 0.08)),
        "small": (ac.PureDP(0.4), pure(0.4)),
    }
    cases = [
        (["small"], ["pure", "failing"], 2),
        ([], ["pure", "wide", "failing"], 3),
        (["small", "wide"], ["small", "failing"], 3),
    ]
    larger = 0
    for before, choices, times in cases:
        release = parallel(*(kinds[c][0] for c in choices), adaptive=True)
        whole = Composition((*((kinds[b][0], 1) for b in before), (release, times)))
        rounds = [[kinds[b][1]] for b in before] + [[kinds[c][1] for c in choices]] * times
        fixed = Composition(
            (*((kinds[b][0], 1) for b in before), (parallel(*release.branches), times))
        )
        for epsilon in (0.0, 0.3, 0.8, 1.5, 2.5):
            truth = over_strategies(rounds, epsilon)
            assert truth <= whole.delta(epsilon)
            assert whole.delta(epsilon) <= 1.2 * truth + 1e-3
            larger += truth > fixed.delta(epsilon)
    assert larger, "no case tells the two accounts apart"


def test_branches_that_one_dominates_cost_what_that_one_does():
    one, other = ac.Gaussian(1.0), ac.Gaussian(2.0)
    assert (9 * parallel(one, other, adaptive=True)).epsilon_bounds(1e-6) == (
        9 * one
    ).epsilon_bounds(1e-6)
    sampled = [ac.PoissonSampled(g, 0.01) for g in (one, other)]
    both = 50 * parallel(*sampled, adaptive=True)
    assert both.epsilon_bounds(1e-6) == (50 * sampled[0]).epsilon_bounds(1e-6)
    # The same noise on different samples is not of this kind.
    mixed = parallel(ac.PoissonSampled(one, 0.1), ac.PoissonSampled(other, 0.5), adaptive=True)
    for branch in mixed.branches:
        assert (20 * mixed).epsilon(1e-6) >= (20 * branch).epsilon_bounds(1e-6).lower
    # Too many splits for sets fixed in advance are no matter here.
    many = 1000 * parallel(ac.Gaussian(50.0), ac.Laplace(100.0), adaptive=True)
    assert (1000 * ac.Gaussian(50.0)).epsilon(1e-5) <= many.epsilon(1e-5) < 2.6


def test_its_algebra():
    release = parallel(ac.Gaussian(1.0), ac.Laplace(2.0), adaptive=True)
    assert eval(repr(release), {name: getattr(ac, name) for name in ac.__all__}) == release
    assert release == parallel(ac.Laplace(2.0), ac.Gaussian(1.0), adaptive=True)
    assert release != parallel(ac.Gaussian(1.0), ac.Laplace(2.0))
    assert len({release, parallel(ac.Gaussian(1.0), ac.Laplace(2.0))}) == 2
    assert release.rdp(3.0) == max(branch.rdp(3.0) for branch in release.branches)
    whole = 2 * ac.PureDP(1.0) + parallel(ac.Gaussian(1.0), 2 * parallel(ac.PureDP(1.0)))
    inside = parallel(ac.PureDP(1.0), adaptive=True)
    assert whole.adaptively() == 2 * ac.PureDP(1.0) + parallel(
        ac.Gaussian(1.0), 2 * inside, adaptive=True
    )
    plain = 2 * ac.PureDP(1.0) + ac.Gaussian(1.0)
    assert plain.adaptively() is plain
    replaced = ac.Gaussian(1.0, relation=ac.NeighbouringRelation.REPLACE_ONE)
    with pytest.raises(ac.UnsupportedError, match="two branches"):
        parallel(replaced, adaptive=True)
    with pytest.raises(ac.ArgumentTypeError, match="adaptive must be True or False; got the int 1"):
        parallel(ac.Gaussian(1.0), adaptive=1)


def test_a_branch_that_may_fail_keeps_its_delta():
    release = parallel(ac.Laplace(2.0), ac.ApproximateDP(0.1, delta=0.01), adaptive=True)
    for times in (1, 3):
        assert (times * release).delta(float("inf")) >= (1 - mpf("0.99") ** times) * (
            1 - mpf(10) ** -15
        )
        assert (times * release).epsilon(0.005) == float("inf")


def test_a_statement_says_what_the_ledger_does():
    ledger = ac.Accountant()
    ledger.compose(FIXED)
    ledger.compose(parallel(*CHOSEN))
    for delta in (0.35, 0.4):
        assert Spending(ledger.counts).epsilon_bounds(delta).upper == ledger.epsilon(delta)
        last = brackets(ledger.history, delta)[-1]
        assert last[0] == 2
        assert last[-1] == ledger.epsilon(delta)


@pytest.mark.parametrize("adaptive", [False, True])
def test_lower_ends_of_branches_computed_from_above_are_those_of_the_mechanism(adaptive):
    alone = Allocated(2.0, steps=20)
    found = parallel(alone, alone, adaptive=adaptive).epsilon_bounds(1e-3)
    assert found.lower <= alone.epsilon_bounds(1e-3).lower

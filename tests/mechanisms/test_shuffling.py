"""Shuffled reports against exact laws of the multiset, for one randomiser and for many."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import accountant as ac
from accountant import NeighbouringRelation as Relation
from accountant.mechanisms import ShuffledResponses
from support.exact_laws import hockey_stick, multiset_law


def worst_ratio(laws):
    return max(p / q for a, b in itertools.permutations(laws, 2) for p, q in zip(a, b, strict=True))


def log_up(x):
    return math.nextafter(math.log(x), math.inf)


def log_down(x):
    return max(math.nextafter(math.log(x), -math.inf), 0.0)


def random_law(rng, reports):
    weights = [int(w) for w in rng.integers(2, 30, reports)]
    return tuple(Fraction(w, sum(weights)) for w in weights)


def test_a_randomiser_of_ones_own_is_not_covered():
    """Ten users, each through log 3-private randomised response of his own: 1/4, not 0.0486."""
    truth, n = Fraction(3, 4), 10
    mine = ((truth, 1 - truth, 0, 0), (1 - truth, truth, 0, 0))
    others = [(0, 0, truth, 1 - truth)] * (n - 1)  # in words of their own
    one, two = (multiset_law([law, *others]) for law in mine)
    exact = hockey_stick(one, two, Fraction(2))
    assert exact == Fraction(1, 4)
    claimed = ShuffledResponses(math.log(3), dataset_size=n).delta(math.log(2))
    assert claimed == pytest.approx(0.0486, abs=1e-4)
    assert exact > Fraction(claimed), "the statement for one common randomiser does not hold here"
    # What users with different randomisers have in common is ε₀.
    alone = ac.PureDP(log_up(3), relation=Relation.REPLACE_ONE)
    assert Fraction(alone.delta(log_down(2))) >= exact


@pytest.mark.long(keep=3)
@pytest.mark.parametrize("seed", range(8))
def test_one_common_randomiser_by_enumeration(seed):
    rng = np.random.default_rng(seed)
    values, reports, n = ((2, 2, 7), (2, 3, 5), (3, 3, 4), (4, 2, 5))[seed % 4]
    kernel = [random_law(rng, reports) for _ in range(values)]
    epsilon0 = log_up(worst_ratio(kernel))
    mechanism = ShuffledResponses(epsilon0, dataset_size=n)
    for others in itertools.combinations_with_replacement(range(values), n - 1):
        laws = [multiset_law([kernel[v], *(kernel[o] for o in others)]) for v in range(values)]
        for one, two in itertools.permutations(laws, 2):
            for growth in (Fraction(1), Fraction(11, 10), Fraction(3, 2), Fraction(3)):
                exact = hockey_stick(one, two, growth)
                assert exact <= Fraction(mechanism.pairs()[0].bounds.delta(log_down(growth)))


@pytest.mark.parametrize("seed", range(4))
def test_different_randomisers_that_are_pairwise_close(seed):
    rng = np.random.default_rng(100 + seed)
    reports, n = ((2, 6), (3, 4))[seed % 2]
    users = [[random_law(rng, reports) for _ in range(2)] for _ in range(n)]
    every = [law for own in users for law in own]
    bounds = ShuffledResponses(log_up(worst_ratio(every)), dataset_size=n).pairs()[0].bounds
    for values in itertools.product((0, 1), repeat=n - 1):
        others = [users[i + 1][v] for i, v in enumerate(values)]
        one, two = (multiset_law([law, *others]) for law in users[0])
        for growth in (Fraction(1), Fraction(6, 5), Fraction(2)):
            at = log_down(growth)
            assert hockey_stick(one, two, growth) <= Fraction(bounds.delta(at))
            assert hockey_stick(two, one, growth) <= Fraction(bounds.delta(at))


def test_the_profile_of_the_clones_by_enumeration():
    """The pair of the theorem itself, summed exactly: n = 12, e^ε₀ = 3."""
    n, a = 12, Fraction(3)
    mechanism = ShuffledResponses(math.log(3), dataset_size=n)

    def law(first):
        found = {}
        for clones in range(n):
            weight = math.comb(n - 1, clones) * (1 / a) ** clones * (1 - 1 / a) ** (n - 1 - clones)
            for zeros in range(clones + 1):
                mass = weight * Fraction(math.comb(clones, zeros), 2**clones)
                for own, chance in ((1, first), (0, 1 - first)):
                    key = (zeros + own, clones + 1 - zeros - own)
                    found[key] = found.get(key, 0) + mass * chance
        return found

    one, two = law(a / (a + 1)), law(1 / (a + 1))
    for growth in (Fraction(1), Fraction(5, 4), Fraction(2), Fraction(5, 2)):
        exact = hockey_stick(one, two, growth)
        found = Fraction(mechanism.pairs()[0].bounds.delta(log_down(growth)))
        assert exact <= found <= exact * (1 + Fraction(1, 10**8)) + Fraction(1, 10**9)


@pytest.mark.parametrize("k", [None, 3])
def test_large_numbers_of_clones_in_one_group_hide_no_better(k, monkeypatch):
    """A fifth of the mass, and then nearly all of it, counts as its smallest number of clones."""
    at = [0.0, 0.05, 0.2, 0.6]
    apart = [ShuffledResponses(1.0, dataset_size=200, k=k).delta(x) for x in at]
    for unseen in (0.2, 0.9):
        monkeypatch.setattr("accountant.mechanisms.selection.UNSEEN", unseen)
        for x, known in zip(at, apart, strict=True):
            bounds = ShuffledResponses(1.0, dataset_size=200, k=k).pairs()[0].bounds
            assert bounds.delta(x) >= known * (1.0 - 1e-12)
        assert bounds.delta(0.05) > 1.01 * apart[1] or unseen < 0.5

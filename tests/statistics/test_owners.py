"""Records of several owners: the bound, and that the choice depends on the ownership alone."""

import random
from collections import Counter

import pytest

import accountant as ac
from accountant import NeighbouringRelation as Relation
from accountant.statistics import bound_owners


def test_a_path_by_hand():
    path = [("a", "b"), ("b", "c"), ("c", "d")]
    assert bound_owners(path, 1) == [0, 2]
    assert bound_owners(path, 2) == [0, 1, 2]
    assert bound_owners([("a", "b"), ("a",), ("b",), ()], 1) == [3, 1, 2]


@pytest.mark.parametrize("seed", range(20))
def test_no_owner_has_more_and_no_record_is_left_out_in_vain(seed):
    rng = random.Random(seed)
    owners = [[rng.randint(0, 15) for _ in range(rng.randint(0, 4))] for _ in range(60)]
    most = rng.randint(1, 5)
    kept = bound_owners(owners, most)
    places = Counter(owner for i in kept for owner in owners[i])
    assert max(places.values(), default=0) <= most
    assert kept == sorted(kept, key=lambda i: (len(owners[i]), i))
    for i in set(range(60)) - set(kept):
        more = Counter(owners[i])
        assert any(places[owner] + n > most for owner, n in more.items())


def test_an_owner_who_is_listed_twice_takes_two_places():
    assert bound_owners([("a", "a"), ("a",)], 1) == [1]
    assert bound_owners([("a", "a"), ("a",)], 3) == [1, 0]


def test_add_or_remove_is_refused():
    """Without its first person a path of records has every choice changed."""
    with pytest.raises(ac.UnsupportedError, match="zero-out"):
        bound_owners([("a",)], 1, relation=Relation.ADD_OR_REMOVE)
    n = 31
    path = [(i, i + 1) for i in range(n)]
    kept = set(bound_owners(path, 1))
    without = {i + 1 for i in bound_owners(path[1:], 1)}
    assert not kept & without
    assert bound_owners(path, 1, relation=Relation.REPLACE_ONE) == sorted(kept)


@pytest.mark.parametrize("bad", ["ab", 3])
def test_a_record_must_list_its_owners(bad):
    with pytest.raises(ac.ArgumentTypeError, match="owners"):
        bound_owners([bad], 1)
    with pytest.raises(ac.DomainError, match="max_records"):
        bound_owners([("a",)], 0)


def test_the_guarantee_of_a_person():
    """The value of the design, of a run whose steps are sampled."""
    run = 100 * ac.PoissonSampled(ac.Gaussian(1.0, relation=Relation.ZERO_OUT), 0.01)
    assert run.group(5).epsilon(1e-6) == pytest.approx(5.00541, rel=1e-5)

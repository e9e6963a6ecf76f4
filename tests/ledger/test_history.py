"""Histories against a plain list of every release: nothing is dropped, merged or counted twice."""

import itertools
import random

import pytest

import accountant as ac
from accountant import checks
from accountant.errors import DomainError, UnsupportedError
from accountant.ledger.history import History, entry

REPLACE = ac.NeighbouringRelation.REPLACE_ONE


def fresh(k):
    """Return mechanism k: equal each time, and never the same object."""
    return [ac.Gaussian(2.0), ac.PureDP(0.1), ac.PoissonSampled(ac.Gaussian(2.0), 0.5)][k]


def recorded(history, new):
    history.check_relation(new)
    history.extend(new, history.tally(new))


@pytest.mark.parametrize("seed", range(20))
def test_a_history_holds_every_release_in_order(seed):
    rng, history, released = random.Random(seed), History(), []
    kept = [fresh(k) for k in range(3)]
    for _ in range(rng.randrange(1, 12)):
        new = []
        for _ in range(rng.randrange(0, 4)):
            k, count = rng.randrange(3), rng.randrange(1, 5)
            said = rng.choice([None, "a", "b"]), rng.choice([None, 1.0])
            # Of one object, as steps of a run are, or of another that is equal.
            new.append(entry(rng.choice([kept[k], fresh(k)]), count, *said))
            released += [(k, *said)] * count
        recorded(history, new)
    unrolled = [
        (kept.index(each.mechanism), each.label, each.time)
        for each in history.entries
        for _ in range(each.count)
    ]
    assert unrolled == released
    counted = {kept.index(mechanism): count for mechanism, count in history.counts}
    numbers = [k for k, _, _ in released]
    assert counted == {k: numbers.count(k) for k in dict.fromkeys(numbers)}
    assert list(counted) == list(dict.fromkeys(numbers))  # by first appearance
    # Repetitions are one record, and nothing else is.
    told = [(each.mechanism, each.label, each.time) for each in history.entries]
    assert all(one != two for one, two in itertools.pairwise(told))
    for k, mechanism in enumerate(kept):
        assert history.remaining_count(mechanism) == 2**53 - numbers.count(k)


def test_totals_stay_exact_doubles():
    history, one = History(), ac.Gaussian(2.0)
    recorded(history, [entry(one, 2**53 - 5)])
    assert history.remaining_count(one) == 5
    for new in ([entry(one, 6)], [entry(one, 3), entry(ac.Gaussian(2.0), 3)]):
        with pytest.raises(
            DomainError, match=r"within 2\*\*53.*stands\s+at 9007199254740987 and 6"
        ):
            history.tally(new)
    recorded(history, [entry(ac.Gaussian(2.0), 5)])
    assert history.counts == ((one, checks.MAX_COUNT),)
    assert history.remaining_count(one) == 0
    recorded(history, [entry(ac.PureDP(0.1), 1)])


def test_every_record_has_the_relation_of_the_first():
    history = History()
    add, replace = ac.Gaussian(2.0), ac.Gaussian(2.0, relation=REPLACE)
    for before in ([entry(add, 1)], [entry(add, 1), entry(add, 1, "x")]):
        wrong = [*before, entry(replace, 1)]
        with pytest.raises(UnsupportedError, match="neighbouring relation"):
            history.check_relation(wrong)
    recorded(history, [entry(replace, 1)])
    assert history.first is replace
    with pytest.raises(UnsupportedError, match="neighbouring relation"):
        history.check_relation([entry(replace, 1), entry(add, 1)])
    history.check_relation([])

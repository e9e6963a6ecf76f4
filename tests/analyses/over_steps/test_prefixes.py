"""Prefixes of histories, against histories written out release by release."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import accountant as ac
from accountant.analyses.over_steps.history import (
    Part,
    check_length,
    counts_after,
    counts_at,
    evenly,
    first,
    spread,
)

# Equal mechanisms need not be one object.
KINDS = st.sampled_from([1.0, 2.0, 3.0]).map(ac.Gaussian)
HISTORIES = st.lists(st.builds(Part, KINDS, st.integers(1, 9)), max_size=8)


def written_out(history):
    return [item.mechanism for item in history for _ in range(item.count)]


@given(HISTORIES, st.sets(st.integers(1, 80)))
def test_the_counts_of_a_prefix(history, lengths):
    releases = written_out(history)
    reached = sorted(n for n in lengths if n <= len(releases))
    found = list(counts_at(history, sorted(lengths)))
    assert [n for n, _ in found] == reached
    for n, counts in found:
        # In the order of their first release.
        assert counts == tuple(Counter(releases[:n]).items())
        assert counts_after(history, n) == counts
        assert written_out(first(history, n)) == releases[:n]


@given(st.integers(1, 10**6), st.integers(1, 50))
def test_even_lengths_end_at_the_last_release(length, points):
    found = evenly(length, points)
    assert found == sorted(set(found))
    assert found[0] >= 1
    assert found[-1] == length
    assert len(found) == min(length, points)
    gaps = [b - a for a, b in zip([0, *found], found, strict=False)]
    assert max(gaps) - min(gaps) <= 1


@given(st.integers(1, 10**6), st.sampled_from([1.07, 1.4]))
def test_spread_lengths_grow_by_at_most_a_factor(length, growth):
    found = spread(length, growth)
    assert found[0] == 1
    assert found[-1] == length
    for a, b in pairwise(found):
        assert a < b <= max(a + 1, growth * a)


def test_histories_too_long_for_a_curve_are_refused():
    check_length([Part(ac.Gaussian(1.0), 10**7)])
    with pytest.raises(ac.DomainError, match="10000001"):
        check_length([Part(ac.Gaussian(1.0), 10**7), Part(ac.Gaussian(1.0), 1)])

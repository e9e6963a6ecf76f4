"""Random compositions of every kind against their laws, written out in ball arithmetic.

``HARDEN_COMPOSITIONS=100000 pytest -m slow tests/hardening/test_random_compositions.py`` is the
nightly run. Problem number k is drawn from k alone: what a failure names can be run again by
``random_compositions.violation(k)``.
"""

import os

import pytest

pytest.importorskip("flint")

import accountant as ac
from support.oracle import random_compositions
from support.oracle.random_compositions import CATEGORIES, violation

COMPOSITIONS = int(os.environ.get("HARDEN_COMPOSITIONS", "3000"))


def violations(numbers, ask=None):
    return [found for k in numbers if (found := violation(k, ask)) is not None]


def test_some_compositions():
    assert not violations(range(300))


@pytest.mark.slow
def test_many_compositions():
    assert not violations(range(1000, 1000 + COMPOSITIONS))


def test_numbers_that_failed():
    assert not violations([11776, 44366, 94777])


@pytest.mark.parametrize(
    ("share", "end"), [(1.0 - 1e-4, "upper"), (1.0 + 1e-4, "lower")], ids=["below", "above"]
)
def test_a_wrong_end_would_be_seen(share, end):
    """Either end of every bracket, moved across the truth by a little more than its width."""

    def broken(mechanism, question, at):
        found = getattr(mechanism, question)(at)
        moved = float(getattr(found, end)) * share
        return ac.Bounds(0.0, moved) if end == "upper" else ac.Bounds(moved, moved)

    equal = [k for k in range(60) if CATEGORIES[k % 200] is random_compositions.equal]
    assert len(violations(equal, broken)) >= len(equal) // 3


def test_every_category_has_its_share():
    assert {each.__name__ for each in CATEGORIES} == {
        "equal",
        "several",
        "asked",
        "native",
        "anything",
    }
    assert len(CATEGORIES) == 200

"""Random compositions of every kind against their laws, written out in ball arithmetic.

``HARDEN_COMPOSITIONS=100000 pytest -m slow tests/hardening/test_random_compositions.py`` is the
nightly run; with ``HARDEN_PROGRESS=file`` it goes on where that file says it stopped. Problem
number k is drawn from k alone: what a failure names can be run again by ``problem(k)``. Every tenth
has parameters at the ends of the doubles, and one more in ten asks a coarse grid.
"""

import json
import math
import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("flint")

import accountant as ac
from support.oracle import random_compositions, random_extremes
from support.oracle.random_compositions import CATEGORIES, violation

COMPOSITIONS = int(os.environ.get("HARDEN_COMPOSITIONS", "3000"))
PROGRESS = os.environ.get("HARDEN_PROGRESS")
AT_ONCE = 200


def problem(k):
    """Return what is wrong with the answer to problem k of the sweep, or None."""
    if k % 10 == 0:
        return random_extremes.violation(k)
    return violation(k, None if k % 10 == 1 else random_compositions.as_a_user)


def sweep(first, last, progress=None):
    """Return what is wrong in a range of problems; ``progress`` holds what was done of it."""
    done = {"first": first, "next": first, "found": []}
    path = progress and Path(progress)
    if path and path.exists():
        done = json.loads(path.read_text())
        assert done["first"] == first, "the file is of another range"
    while done["next"] < last:
        end = min(done["next"] + AT_ONCE, last)
        done["found"] += [found for k in range(done["next"], end) if (found := problem(k))]
        done["next"] = end
        if path:
            path.write_text(json.dumps(done, indent=1))
    return done["found"]


def violations(numbers, ask=None):
    return [found for k in numbers if (found := violation(k, ask)) is not None]


@pytest.mark.long
def test_some_compositions():
    assert not violations(range(300))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_some_ends_of_the_doubles():
    assert not [found for k in range(20000, 20080) if (found := random_extremes.violation(k))]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_ends_of_the_doubles_that_failed():
    failed = [10385, 10404, 10569, 11609, 11643, 26740, 27250]
    assert not [found for k in failed if (found := random_extremes.violation(k))]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_many_compositions():
    assert not sweep(1000, 1000 + COMPOSITIONS, PROGRESS)


def test_a_sweep_goes_on_where_it_stopped(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(sys.modules[__name__], "problem", lambda k: asked.append(k) or str(k))
    monkeypatch.setattr(sys.modules[__name__], "AT_ONCE", 2)
    progress = tmp_path / "done.json"
    assert sweep(5, 8, progress) == ["5", "6", "7"]
    assert sweep(5, 9, progress) == ["5", "6", "7", "8"]
    assert asked == [5, 6, 7, 8]


@pytest.mark.long
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


@pytest.mark.long
@pytest.mark.parametrize(
    "moved",
    [
        lambda found: ac.Bounds(0.0, 0.999 * float(found.upper)),
        lambda found: ac.Bounds(1.001 * float(found.lower), math.inf),
    ],
    ids=["below", "above"],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_wrong_end_far_out_would_be_seen(moved):
    seen = [k for k in range(20000, 20080) if random_extremes.violation(k, moved)]
    assert len(seen) >= 20


def test_every_category_has_its_share():
    assert {each.__name__ for each in CATEGORIES} == {
        "equal",
        "several",
        "asked",
        "native",
        "anything",
    }
    assert len(CATEGORIES) == 200

"""The truths of the conformance suite, and the runner that puts them to accountants."""

import importlib.metadata
import json
import math
import sys
import time

import pytest

pytest.importorskip("flint")
from flint import arb

from support import conformance_truths as truths

sys.path.append(str(truths.TRUTHS.parent))
accountants = pytest.importorskip("accountants", reason="the suite is not beside these tests")
run = pytest.importorskip("run", reason="the suite is not beside these tests")

STORED = json.loads(truths.TRUTHS.read_text())
CASES = STORED["cases"]
FIELDS = {"id", "group", "parts", "delta", "relation", "epsilon", "oracle", "digits"}
# One of four is shown anew here.
EVERY = 4


def shown_anew(case):
    """Tell whether the oracle shows both ends of a case."""
    low, high = case["epsilon"]
    _, above = truths.profile(case["parts"], low)
    _, under = truths.profile(case["parts"], high)
    bound = arb(case["delta"])
    return any(v > bound for v in above.values()) and all(v < bound for v in under.values())


def test_every_case_says_what_it_is_and_who_showed_it():
    assert (STORED["format"], STORED["version"]) == ("dp-accounting-truths", 1)
    assert [case["id"] for case in CASES] == list(range(len(CASES)))
    questions = {json.dumps([case["parts"], case["delta"], case["relation"]]) for case in CASES}
    assert len(questions) == len(CASES)
    for case in CASES:
        assert set(case) == FIELDS
        assert case["oracle"] in STORED["oracles"]
        assert 0.0 < case["delta"] < 1.0
        low, high = case["epsilon"]
        if high is None:
            assert low > 0.0
            assert case["oracle"] in ("event", "one pair")
        else:
            assert 0.0 < low < high <= low * (1.0 + 3.0 * 10.0 ** -case["digits"])
    assert {case["oracle"] for case in CASES} == set(STORED["oracles"])


# Of the contours those of many steps: others take seconds each.
SAMPLE = [
    *[case for case in CASES if case["group"] == "typical" and case["parts"][0]["count"] > 1000][
        ::3
    ],
    *[case for case in CASES if case["oracle"] in ("closed form", "outcomes")][::EVERY],
]


@pytest.mark.long(keep=12)
@pytest.mark.parametrize("case", SAMPLE, ids=lambda case: f"{case['group']} {case['id']}")
def test_the_oracle_shows_the_ends(case):
    assert shown_anew(case)
    # The oracle would tell: a little further in, one end or the other is not true.
    low, high = case["epsilon"]
    for wrong in ([high * (1 + 1e-6), high * (1 + 1e-5)], [low * (1 - 1e-5), low * (1 - 1e-6)]):
        assert not shown_anew(case | {"epsilon": wrong})


@pytest.mark.parametrize("group", ["shuffled", pytest.param("fixed size", marks=pytest.mark.slow)])
def test_lower_ends_of_counterexamples_are_those_of_their_oracle(group):
    for parts, delta, relation, oracle, low in truths.COUNTEREXAMPLES[group]():
        (case,) = [case for case in CASES if (case["parts"], case["delta"]) == (parts, delta)]
        assert (case["group"], case["relation"], case["oracle"]) == (group, relation, oracle)
        assert case["epsilon"][0] <= low * (1 + 1e-9)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['group']} {case['id']}")
def test_this_library_is_never_below_and_hardly_above(case):
    try:
        found = accountants.accountant(case["parts"], case["delta"])
    except accountants.NoAnswer:
        assert case["group"] == "shuffled"
        return
    low, high = case["epsilon"]
    assert found >= low
    assert high is None or found <= high * (1 + 1e-6)


def answer(parts, delta):
    """Answer as libraries do: too little, too much, nothing, infinity, an error, never."""
    number = parts[0]["number"]
    if number == 2:
        raise accountants.NoAnswer
    if number == 4:
        raise ValueError("no")
    if number == 5:
        time.sleep(60)
    return [1.0, 3.0, 0.0, math.inf, 0.0, 0.0, 2.0][number]


def test_the_runner_counts_what_is_below_above_failed_and_not_asked(monkeypatch):
    monkeypatch.setitem(accountants.ADAPTERS, "toy", ("pytest", answer))
    cases = [
        {"parts": [{"number": k}], "delta": 1e-5, "group": "toy", "epsilon": [1.5, 2.0]}
        for k in range(7)
    ]
    row, below = run.judged("toy", cases, 1.0)
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    version = importlib.metadata.version("pytest")
    assert cells[:6] == [f"toy {version}", "3", "3", "1", "2.5e-01", "5.0e-01"]
    assert below == [(cases[0], 1.0)]
    text = run.tables(cases, ["toy"], 1.0)
    assert "- toy, below the truth: toy 1 (by up to 3.3e-01)." in text
    monkeypatch.setitem(accountants.ADAPTERS, "none", ("no-such-distribution", answer))
    assert "- none: not installed." in run.tables(cases, ["none"], 1.0)

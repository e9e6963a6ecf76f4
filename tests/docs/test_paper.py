"""The paper's numbers are generated, all of them are used, and the checks of its proof can fail."""

import re
import sys
from pathlib import Path

import pytest

PAPER = Path(__file__).parents[2] / "docs" / "paper"


@pytest.fixture
def inequalities(monkeypatch):
    pytest.importorskip("mpmath")
    monkeypatch.syspath_prepend(str(PAPER))
    for name in ("formulas", "laws", "inequalities"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import inequalities

    return inequalities


def test_every_number_is_generated_and_used():
    defined = re.findall(r"newcommand\{\\(N\w+)\}", (PAPER / "numbers.tex").read_text())
    used = set(re.findall(r"\\(N[A-Z]\w*)", (PAPER / "paper.tex").read_text()))
    assert len(defined) == len(set(defined))
    assert used - {"Norm"} == set(defined)


def test_the_proof_holds_where_it_is_evaluated(inequalities):
    assert inequalities.run(["kappa", "losses", "powers"]).keys() == {"kappa", "losses", "powers"}
    assert [bad for _, bad in inequalities.run(["kappa", "losses", "powers"]).values()] == [0, 0, 0]


def test_a_wrong_constant_is_noticed(inequalities, monkeypatch):
    right = inequalities.chernoff
    monkeypatch.setattr(inequalities, "chernoff", lambda m: right(m) * 0.999)
    ((_, bad),) = inequalities.run(["kappa"]).values()
    assert bad > 0

"""The notebooks run from top to bottom."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted((DOCS / "notebooks").glob("*.md"))


def cells(page):
    return re.findall(r"```\{code-cell\} python\n(.*?)```", page.read_text(), re.S)


@pytest.mark.long(keep=5)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_notebook_runs(page, capsys):
    if "sklearn" in page.read_text():
        pytest.importorskip("sklearn")
    names = {}
    for cell in cells(page):
        exec(compile(cell, page.name, "exec"), names)
    told = capsys.readouterr().out
    if page.stem == "audit_a_trainer":
        assert told.count("REFUTED") == 1
        assert names["report"].epsilon_lower < names["report"].epsilon_claimed
    if page.stem == "unknown_keys":
        assert names["ledger"].epsilon(1e-6) <= 1.0
        assert min(names["counts"][key] for key in names["released"].keys) > 1
        assert "left out without a trace" in told
    if page.stem == "budget_for_a_year":
        assert "would exceed" in told

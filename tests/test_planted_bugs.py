"""Every planted bug is noticed, and the check that notices it finds nothing in the shipped code."""

import ast
import importlib.util
from pathlib import Path

import pytest

from planted import BUGS

ROOT = Path(__file__).parents[1]
CHECKS = {bug.check.__name__: bug.check for bug in BUGS}


@pytest.mark.parametrize("name", CHECKS)
def test_the_shipped_code_is_not_flagged(name):
    assert CHECKS[name]() is None


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_noticed(bug, monkeypatch):
    bug.plant(monkeypatch)
    assert bug.check() is not None


def test_there_are_many_and_each_has_a_name():
    assert len({bug.name for bug in BUGS}) == len(BUGS) >= 25


def test_the_page_is_the_registry():
    spec = importlib.util.spec_from_file_location("page", ROOT / "docs" / "make_planted_bugs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PAGE.read_text() == module.page(), "run: python docs/make_planted_bugs.py"
    for file, test in module.ELSEWHERE.values():
        tree = ast.parse((ROOT / "tests" / file).read_text())
        assert test in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}

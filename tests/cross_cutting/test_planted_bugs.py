"""Every planted bug is noticed, and the check that notices it finds nothing in the shipped code."""

import ast
from pathlib import Path

import pytest

from support import floating_point_modes as modes
from support.planted import BUGS, NAMED
from support.planted.alone import run
from support.scripts import script

ROOT = Path(__file__).parents[2]
CHECKS = {bug.check.__name__: bug.check for bug in BUGS}


@pytest.mark.parametrize("name", CHECKS)
def test_the_shipped_code_is_not_flagged(name):
    assert CHECKS[name]() is None


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_noticed(bug, monkeypatch):
    modes.forget()  # what was answered before the bug came
    bug.plant(monkeypatch)
    assert bug.check() is not None
    modes.forget()


@pytest.mark.slow
@pytest.mark.parametrize("bug", NAMED, ids=lambda bug: bug.name)
def test_the_test_of_its_name_notices_a_planted_bug(bug):
    """In a process of its own: the named test is red with the bug, and nothing else went wrong."""
    pytest.importorskip(bug.needs)
    done = run(bug.name, bug.check, "-m", "")  # whatever its markers
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout[-2000:] + done.stderr
    assert "1 failed" in done.stdout


def test_there_are_many_and_each_has_a_name():
    assert len({bug.name for bug in (*BUGS, *NAMED)}) == len(BUGS) + len(NAMED) >= 70


@pytest.mark.parametrize("bug", [*BUGS, *NAMED], ids=lambda bug: bug.name)
def test_what_a_bug_patches_is_there(bug):
    pytest.importorskip(bug.needs)
    assert bug.found()


def test_the_page_is_the_registry():
    module = script(ROOT / "docs" / "make_planted_bugs.py")
    assert module.PAGE.read_text() == module.page(), "run: python docs/make_planted_bugs.py"
    named = [tuple(bug.check.split("::")) for bug in NAMED]
    for file, test in (*module.ELSEWHERE.values(), *named):
        tree = ast.parse((ROOT / "tests" / file).read_text())
        assert test in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}

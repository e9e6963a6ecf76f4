"""The page on installing: its extras exist, its lines run, and no page names another's package."""

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from accountant.cli import main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "install.md").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
FOR_CONTRIBUTORS = {"test", "lint", "docs", "peers"}


def commands():
    blocks = re.findall(r"```sh\n(.*?)```", PAGE, re.S)
    return [line for block in blocks for line in block.splitlines()]


@pytest.mark.parametrize("line", [c for c in commands() if not c.startswith("pip ")])
def test_lines_of_the_page_run(line):
    words = shlex.split(line)
    if words[0] == "accountant":
        assert CliRunner().invoke(main, words[1:]).exit_code == 0
        return
    done = subprocess.run([sys.executable, *words[1:]], cwd=ROOT, check=True, capture_output=True)
    assert float(done.stdout) > 1.0


def test_every_extra_is_explained():
    listed = set(re.findall(r"^\|`([a-z-]+)` \|", PAGE, re.M))
    assert listed == set(PROJECT["optional-dependencies"]) - FOR_CONTRIBUTORS


def test_no_hint_names_the_unrelated_package():
    texts = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("accountant/**/*.py")]
    for file in texts:
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"(?<!dp-)accountant\[[a-z]", text), file
        for found in re.findall(r"pip install (?:-\S+ )*['\"]?(accountant\b)", text):
            assert file.name == "install.md", (file, found)


def test_every_extra_that_a_message_names_exists():
    named = set()
    for file in ROOT.glob("accountant/**/*.py"):
        named |= set(re.findall(r"dp-accountant\[([a-z-]+)\]", file.read_text(encoding="utf-8")))
    assert named
    assert named <= set(PROJECT["optional-dependencies"])

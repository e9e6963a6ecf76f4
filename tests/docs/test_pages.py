"""The pages of the command line, the statement and the pictures: their examples run."""

import doctest
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import accountant as ac
from accountant.cli import group, main

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", ["report.md", "plots.md"])
def test_examples_in_pages(page, tmp_path, monkeypatch):
    if page == "plots.md":
        pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    results = doctest.testfile(str(DOCS / page), module_relative=False)
    assert results.attempted > 0
    assert results.failed == 0


def commands():
    for page in ("cli.md", "report.md"):
        for block in re.findall(r"```sh\n(.*?)```", (DOCS / page).read_text(), re.S):
            for line in block.splitlines():
                if line.startswith("accountant "):
                    yield line


@pytest.mark.long(keep=10)
@pytest.mark.parametrize("line", list(commands()))
def test_commands_in_pages(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledger = ac.Accountant()
    ledger.step(noise_multiplier=1.1, sampling_probability=0.01, count=100)
    ledger.save("ledger.json")
    told = re.search(r"```toml\n(.*?)```", (DOCS / "report.md").read_text(), re.S)[1]
    Path("deployment.toml").write_text(told)
    words = shlex.split(line)[1:]
    given = None
    for sign in ("<", ">", ">>"):
        if sign in words:
            place = words.index(sign)
            given = Path(words[place + 1]).read_text() if sign == "<" else None
            words = words[:place]
    done = CliRunner().invoke(main, words, input=given)
    assert done.exit_code == 0, done.output


def test_every_command_and_exit_code_is_documented():
    page = (DOCS / "cli.md").read_text()
    for name in main.commands:
        assert f"`{name}`" in page
    for name in ("ANSWERED", "FAILED", "WRONG", "REFUSED", "EXHAUSTED", "DEFECT", "INTERRUPTED"):
        assert f"|{getattr(group, name)} |" in page


def test_the_page_of_the_ledger_describes_the_file(tmp_path):
    ledger = ac.Accountant()
    ledger.step(noise_multiplier=1.1, sampling_probability=0.01, label="a")
    document = json.loads(ledger.to_json())
    page = (DOCS / "ledger.md").read_text()
    assert f"version {document['version']}" in page
    for key in (*document, *document["ledger"]):
        assert f"`{key}`" in page or f'"{key}"' in page
    assert np.shape(document["ledger"]["entries"]) == (1, 4)

"""The example of a shared budget runs, and run again charges nothing twice."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from support import postgres

EXAMPLE = Path(__file__).parents[2] / "examples" / "shared_budget.py"

pytestmark = pytest.mark.skipif(not EXAMPLE.exists(), reason="the examples are not here")


def run(url):
    command = [sys.executable, EXAMPLE, url]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout, re.findall(r"clinic/visits/\S+: (\d+) releases", done.stdout)


def run_twice(url):
    first, spent = run(url)
    assert "training: 100 of 120 steps made" in first
    assert "verified" in first
    assert len(spent) == 6
    assert int(spent[0]) > 10
    assert int(spent[-1]) > 100
    again, same = run(url)
    assert same == spent
    assert "the model was trained before" in again
    assert "had about" not in again
    assert "outcomes" not in again


@pytest.mark.slow
def test_in_a_file(tmp_path):
    run_twice(f"sqlite:///{tmp_path / 'budget.db'}")


@pytest.mark.slow
@pytest.mark.skipif(bool(postgres.why_not()), reason=postgres.why_not() or "it can be had")
def test_in_postgresql():
    server = postgres.Server()
    try:
        run_twice(server.fresh())
    finally:
        server.stop()

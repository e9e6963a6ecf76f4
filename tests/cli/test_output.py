"""Terminals without Unicode: ≤ and ≥ stay apart, and no sign becomes a question mark."""

import os
import subprocess
import sys

import pytest

import accountant as ac
from accountant.cli.output import HANDLER, plain


def test_signs_are_spelled():
    assert plain("ε ≤ 1, ε ≥ 1", "ascii") == "eps <= 1, eps >= 1"
    assert plain("ε ≤ 1", "utf-8") == plain("ε ≤ 1", None) == "ε ≤ 1"
    assert "ε ≤ 1, 🙂".encode("ascii", HANDLER) == b"eps <= 1, ?"
    assert "é".encode("latin-1", HANDLER) == b"\xe9"


@pytest.mark.long(keep=2)
@pytest.mark.parametrize(
    "words",
    [
        ["samplers", "--help"],
        ["epsilon", "--q", ".01", "--sigma", "1", "--steps", "10", "--delta", "7"],
        ["show", "ledger.json"],
        ["report", "ledger.json", "-o", "report.html"],
        ["report", "ledger.json", "--format", "md"],
    ],
)
def test_no_command_writes_signs_to_an_ascii_terminal(tmp_path, words):
    """Help, answers, tables and complaints alike: click writes UTF-8 to a stream called ASCII."""
    ledger = ac.Accountant()
    ledger.compose(ac.Laplace(2.0))
    ledger.save(tmp_path / "ledger.json")
    done = subprocess.run(
        [sys.executable, "-m", "accountant", *words],
        capture_output=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    text = (done.stdout + done.stderr).decode("ascii")
    assert "eps" in text or "delta" in text

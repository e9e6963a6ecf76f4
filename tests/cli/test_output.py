"""Terminals without Unicode: ≤ and ≥ stay apart, and no sign becomes a question mark."""

import os
import re
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


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp437"])
def test_a_whole_answer(tmp_path, encoding):
    ledger = ac.Accountant(ac.Budget(3.0, 1e-5))
    ledger.step(noise_multiplier=1.1, sampling_probability=0.01, count=10, label="naïve 🙂")
    ledger.save(tmp_path / "ledger.json")
    done = subprocess.run(
        [sys.executable, "-m", "accountant", "show", str(tmp_path / "ledger.json")],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
    )
    text = done.stdout.decode(encoding)
    if encoding != "cp437":
        assert "eps <=" in text
        assert "eps >=" in text
    assert re.search("<=|≤", text)
    assert re.search(">=|≥", text)


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

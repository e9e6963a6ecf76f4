"""Huge ledgers: a million different records are loaded and reported in bounded memory."""

import subprocess
import sys

import pytest

import accountant as ac
from accountant.ledger import document
from accountant.ledger.history import Entry

CODE = """
import pathlib, re, sys
from accountant.cli import main
try:
    main(["report", sys.argv[1], "-o", sys.argv[2]])
except SystemExit as done:
    assert not done.code
peak = "0"
if sys.platform == "linux":
    # Not ru_maxrss, which begins with the parent's.
    peak = re.search(r"VmHWM:\\s*(\\d+)", pathlib.Path("/proc/self/status").read_text())[1]
print(int(peak) / 1024)
"""


def write(path, records, different=500):
    """A schedule gone through again and again, every record with its own label and time."""
    steps = [ac.PoissonSampled(ac.Gaussian(1.0 + k / different), 0.01) for k in range(different)]
    entries = [Entry(steps[k % different], 1, f"step {k}", 1.7e9 + k) for k in range(records)]
    path.write_text(document.encode(entries, None))


@pytest.mark.long
@pytest.mark.parametrize(
    ("records", "megabytes"), [(50_000, 200), pytest.param(1_000_000, 500, marks=pytest.mark.slow)]
)
def test_a_huge_ledger_is_reported(tmp_path, records, megabytes):
    write(tmp_path / "ledger.json", records)
    command = [sys.executable, "-c", CODE, str(tmp_path / "ledger.json"), str(tmp_path / "r.html")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert float(done.stdout.splitlines()[-1]) < megabytes
    text = (tmp_path / "r.html").read_text()
    assert f"{records:,}" in text
    assert "step 0" in text


def test_loading_makes_each_mechanism_once(tmp_path):
    write(tmp_path / "ledger.json", 1000, 10)
    ledger = ac.Accountant.load(tmp_path / "ledger.json")
    assert len({id(item.mechanism) for item in ledger.history}) == 10
    assert [count for _, count in ledger.counts] == [100] * 10
    assert len(ledger.history) == 1000

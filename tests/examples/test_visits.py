"""The example of a million visits runs, and keeps to its budget."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "visits.py"

pytestmark = pytest.mark.skipif(not EXAMPLE.exists(), reason="the examples are not here")


@pytest.mark.slow
def test_the_plan_the_release_and_its_busiest_user():
    pytest.importorskip("narwhals", reason="narwhals is not installed")
    pytest.importorskip("polars", reason="Polars is not installed")
    told = subprocess.run(
        [sys.executable, EXAMPLE], capture_output=True, text=True, check=True
    ).stdout
    assert "noise multiplier 17.38, threshold 110.95" in told
    assert re.search(r"depending on outputs: +ε = 1\.\d+", told)
    assert float(re.search(r"ledger: ε = (\S+)", told)[1]) <= 1.0
    assert "5 of the zip counts change, by 1 at most" in told
    assert "3 of the category counts change, by 1 at most" in told

"""The comparison of correlated and independent noise runs, and learns."""

import re
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

pytestmark = pytest.mark.skipif(not EXAMPLES.exists(), reason="the examples are not here")


@pytest.mark.slow
def test_every_strategy_learns(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import correlated_noise

    monkeypatch.setitem(correlated_noise.SETTINGS, "mnist", (400, 5, 4.0, 1))
    correlated_noise.main("mnist", epsilons=(20.0,))
    shown = capsys.readouterr().out
    rows = dict(re.findall(r"^(\S.*?) +(\d+\.\d\d) ±", shown, re.MULTILINE))
    assert len(rows) == 7
    assert min(float(value) for value in rows.values()) > 60.0
    sys.modules.pop("correlated_noise")

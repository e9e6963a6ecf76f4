"""The tables of docs/migration.md: calls of ours run, and those of peers that are installed too."""

import importlib
import math
import re
from pathlib import Path

import numpy as np
import pytest

import accountant as ac

PAGE = (Path(__file__).parents[2] / "docs" / "migration.md").read_text()
GIVEN = {"q": 0.01, "sigma": 1.5, "steps": 200, "delta": 1e-5, "ac": ac, "math": math}
TRAINING = {"n": 60_000, "batch": 256, "epochs": 10, "orders": [2.0, 8.0]}
WORDS = (
    "ledger.affordable",
    "the same",
    "PrivacyEngine",
    "engine.",
    "accountant report",
    "len(accountant)",
)


def rows():
    section = ""
    for line in PAGE.splitlines():
        if line.startswith("## "):
            section = line[3:].split()[0]
        cells = re.findall(r"(?<=\|)(`[^`]+`.*?|the same.*?)(?= ?\|)", line)
        if line.startswith("|") and len(cells) == 2:
            yield section, *cells


def code(cell):
    found = re.match(r"`([^`]+)`", cell)
    return found.group(1) if found and not found.group(1).startswith(WORDS) else None


def names():
    ledger = ac.Accountant()
    ledger.step(noise_multiplier=1.5, sampling_probability=0.01)
    one, other = ac.Gaussian(2.0), ac.Laplace(2.0)
    given = {"ledger": ledger, "one": one, "other": other, "mechanism": one, "x": np.ones(9) / 2}
    return {
        **GIVEN,
        **TRAINING,
        **given,
        "m": importlib.import_module("accountant.learn.convex"),
    }


def sklearn():
    pytest.importorskip("sklearn")
    return {"sk": importlib.import_module("accountant.adapters.sklearn")}


def theirs(section):
    """Return the names that a section's left column uses, or skip."""
    if section == "Opacus":
        accountants = pytest.importorskip("opacus.accountants")
        utils = importlib.import_module("opacus.accountants.utils")
        accountant = accountants.PRVAccountant()
        accountant.step(noise_multiplier=1.5, sample_rate=0.01)
        multiplier = utils.get_noise_multiplier
        return {**GIVEN, "accountant": accountant, "get_noise_multiplier": multiplier}
    if section == "dp-accounting":
        return {**GIVEN, "d": pytest.importorskip("dp_accounting")}
    found = pytest.importorskip("prv_accountant")
    importlib.import_module("prv_accountant.dpsgd")
    return {**GIVEN, "p": found}


ROWS = list(rows())
OURS = [code(right) for _, _, right in ROWS if code(right) is not None]
INSTALLABLE = ("Opacus", "dp-accounting", "prv-accountant")
THEIRS = [row for row in ROWS if row[0] in INSTALLABLE and code(row[1]) is not None]


@pytest.mark.parametrize("call", OURS)
def test_our_calls_run(call):
    given = names() | (sklearn() if "sk." in call else {})
    assert eval(call, given) is not NotImplemented


@pytest.mark.parametrize(("section", "left", "right"), THEIRS)
def test_their_calls_run_and_are_never_below_ours(section, left, right):
    told = eval(code(left), theirs(section))
    if isinstance(told, float) and code(right) is not None and "noise_multiplier(" not in left:
        # Their closed forms for one Gaussian have a tolerance of 1e-12; ours rounds up.
        assert eval(code(right), names()) <= told * (1.0 + 1e-6)

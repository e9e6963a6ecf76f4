"""The stored curves of random shifts and profiles of replace-one must notice a broken core.

As test_core_mutants.py. Where the error of a sum is bounded and the sum is planned by the same
bound, removing one of the two is not noticed; the patch makes the sum coarse instead.
"""

import ctypes
import json
import shutil
from decimal import Decimal

import pytest

from hardening.test_core_mutants import Mutant
from support.native import SOURCES, build, core_file, core_files
from support.oracle_checks import DATA

MUTANTS = [
    Mutant(
        "a strip across the zeros",
        "mixture_renyi.c",
        "0.999 * ACCT_PI * var / at->spread",
        "2.5 * ACCT_PI * var / at->spread",
    ),
    Mutant(
        "nodes far apart, and no error of the lattice",
        "mixture_renyi.c",
        "const double exponent = 2.0 * ACCT_PI * height / h;",
        "const double exponent = 16.0 * ACCT_PI * height / h;",
    ),
    Mutant(
        "a term of second order missing",
        "mixture_renyi_sum.c",
        "        return main + t * other;",
        "        return main;",
    ),
    Mutant(
        "parts skipped that count",
        "mixture_renyi_sum.c",
        "s->left_out += exp(bound) * ACCT_SLACK;",
        "s->left_out += 0.0;",
    ),
    Mutant(
        "a shift at the wrong place",
        "shift_law.c",
        "const double u = d * (2.0 * x[i] - d) * rate;",
        "const double u = d * (2.0 * x[i] - d) * rate * (1.0 + 1e-11);",
    ),
    Mutant(
        "phases off the real line forgotten",
        "exchange_law.c",
        "2.0 * y * turn",
        "0.0 * turn",
    ),
    Mutant(
        "a loss at the wrong place",
        "exchange_law.c",
        "const double a = mu * (x - 0.5 * mu), b",
        "const double a = mu * (x - 0.5 * mu) + 1e-10, b",
    ),
    Mutant(
        "terms beyond the last left out",
        "exchange.c",
        "        total += acct_tail_weight(b, from, to, dy) * exp(power);",
        "        total += 0.0 * power;",
    ),
    Mutant(
        "a pole forgotten",
        "exchange.c",
        "k->phase[i] = n * arg - atan2(y, k->b) - atan2(y, k->b + 1.0);",
        "k->phase[i] = n * arg - atan2(y, k->b);",
    ),
    Mutant(
        "the linear phase of another mean",
        "exchange.c",
        "k->drift = n * (way == PLAIN ? m.mean : mean);",
        "k->drift = n * (way == PLAIN ? m.mean : mean) * (1.0 + 1e-9);",
    ),
]
# Patches that plan a coarser sum as well, so that what the first removes is needed.
BESIDE = {
    "nodes far apart, and no error of the lattice": (
        "const double wanted = size - floor + 1.0,",
        "const double wanted = 9.0,",
    ),
    "parts skipped that count": ("bound < s->floor - 6.0", "bound < s->floor + 26.0"),
}


class Bounds(ctypes.Structure):
    _fields_ = (("lower", ctypes.c_double), ("upper", ctypes.c_double))


class Curve(ctypes.Structure):
    _fields_ = (
        ("sigma", ctypes.c_double), ("count", ctypes.c_int),
        ("shift", ctypes.POINTER(ctypes.c_double)), ("weight", ctypes.POINTER(ctypes.c_double)),
        ("first_err", ctypes.c_double), ("weight_err", ctypes.c_double),
    )  # fmt: skip


def curve_bracket(library, row):
    double, out = ctypes.c_double * len(row["shifts"]), Bounds()
    law = Curve(
        row["sigma"], len(row["shifts"]), double(*row["shifts"]), double(*row["weights"]),
        2.0**-52, 0.0,
    )  # fmt: skip
    add = ctypes.c_int(row["direction"] == "add")
    order = ctypes.c_double(row["order"])
    assert library.acct_mixture_renyi(ctypes.byref(law), order, add, ctypes.byref(out)) == 0
    return out


def profile_bracket(library, row):
    out = Bounds()
    numbers = [row["distance"], row["q"], float(row["steps"]), row["epsilon"]]
    given = map(ctypes.c_double, numbers)
    assert library.acct_exchange_delta(*given, ctypes.byref(out)) == 0
    return out


def wrong(directory, mutant=None):
    """The first stored row that a core of these sources gets wrong, or None."""
    sources = shutil.copytree(SOURCES, directory / "src")
    if mutant:
        text = core_file(mutant.file, sources).read_text().replace(mutant.old, mutant.new)
        core_file(mutant.file, sources).write_text(
            text.replace(*BESIDE.get(mutant.name, ("\0", "")))
        )
    library = build(directory, core_files(sources), sources)
    stored = (("shift_mixture_renyi", curve_bracket), ("exchange", profile_bracket))
    for name, bracket in stored:
        with (DATA / f"{name}.jsonl").open() as lines:
            for row in map(json.loads, lines):
                out = bracket(library, row)
                low, high = Decimal(out.lower), Decimal(out.upper)
                if not (low <= Decimal(row["upper"]) and high >= Decimal(row["lower"])):
                    return name, row["id"]
    return None


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_patches_apply_once(mutant):
    text = core_file(mutant.file).read_text()
    assert text.count(mutant.old) == 1
    if mutant.name in BESIDE:
        assert text.count(BESIDE[mutant.name][0]) == 1


@pytest.mark.slow
def test_the_core_itself_passes(tmp_path):
    assert wrong(tmp_path) is None


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutants_are_noticed(mutant, tmp_path):
    assert wrong(tmp_path, mutant) is not None

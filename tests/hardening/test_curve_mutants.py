"""The stored curves of random shifts and profiles of replace-one must notice a broken core.

As test_core_mutants.py. Where the error of a sum is bounded and the sum is planned by the same
bound, removing one of the two is not noticed; the patch makes the sum coarse instead.
"""

import ctypes
import sys
import types
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from accountant.pairs import mixture_renyi
from support.native import Bounds, Patch, build, core_files, mutants, patched
from support.oracle_checks import stored

MUTANTS = mutants(
    {
        "exchange_law.c: phases off the real line forgotten": Patch("2.0 * y * turn", "0.0 * turn"),
        "exchange_law.c: a loss at the wrong place": Patch(
            "const double a = mu * (x - 0.5 * mu), b",
            "const double a = mu * (x - 0.5 * mu) + 1e-10, b",
        ),
        "exchange.c: terms beyond the last left out": Patch(
            "        total += acct_tail_weight(b, from, to, dy) * exp(power);",
            "        total += 0.0 * power;",
        ),
        "exchange.c: a pole forgotten": Patch(
            "k->terms.im[i] = n * arg - atan2(y, k->b) - atan2(y, k->b + 1.0);",
            "k->terms.im[i] = n * arg - atan2(y, k->b);",
        ),
        "exchange.c: the linear phase of another mean": Patch(
            "k->drift = n * (way == PLAIN ? m.mean : mean);",
            "k->drift = n * (way == PLAIN ? m.mean : mean) * (1.0 + 1e-9);",
        ),
    }
)
# Of accountant/pairs/mixture_renyi.py. The second patch, where there is one, plans a coarser sum as
# well, so that what the first removes is needed.
CURVE = {
    "a strip across the zeros": ("0.999 * math.pi", "6.0 * math.pi"),
    "nodes far apart, and no error of the lattice": (
        "fall = 2.0 * math.pi * height / h", "fall = 16.0 * math.pi * height / h",
        "height / (digits + rise)", "height / 9.0",
    ),
    "a term of second order missing": ("terms = main + t * other", "terms = main"),
    "nodes left out that count": (
        "return nodes, height + math.log(2.0)", "return nodes, -math.inf * math.log(2.0)",
        "reach = law.sigma, math.sqrt(2.0 * digits) + 1.0", "reach = law.sigma, 2.0",
        "math.sqrt(2.0 * (digits + max(height - least, 0.0))) + 1.0", "2.0",
    ),
    "a shift at the wrong place": (
        "law.shifts * (2.0 * x[:, np.newaxis]",
        "(1.0 - 1e-11) * law.shifts * (2.0 * x[:, np.newaxis]",
    ),
}  # fmt: skip


def wrong_curve(name=None):
    """The first stored divergence that the module, patched, does not bound; or None."""
    text = Path(mixture_renyi.__file__).read_text()
    patches = CURVE.get(name, ())
    for old, new in zip(patches[::2], patches[1::2], strict=True):
        text = text.replace(old, new)
    patched = types.ModuleType("patched")
    sys.modules["patched"] = patched  # NamedTuple looks it up
    exec(compile(text, "patched", "exec"), patched.__dict__)
    for row in stored("shift_mixture_renyi.jsonl"):
        law = patched.Mixture(
            row["sigma"], np.array(row["shifts"]), np.array(row["weights"]), 2.0**-52, 0.0
        )
        try:
            high = patched.divergence_upper(law, row["order"], reverse=row["direction"] == "add")
        except (ArithmeticError, ValueError):
            return row["id"]
        if not Decimal(high) >= Decimal(row["lower"]):
            return row["id"]
    return None


@pytest.mark.parametrize("name", CURVE)
def test_patches_of_the_curve_apply_once(name):
    text = Path(mixture_renyi.__file__).read_text()
    assert all(text.count(old) == 1 for old in CURVE[name][::2])


def test_the_curve_itself_passes():
    assert wrong_curve() is None


@pytest.mark.parametrize("name", CURVE)
def test_mutants_of_the_curve_are_noticed(name):
    assert wrong_curve(name) is not None


def profile_bracket(library, row):
    out = Bounds()
    numbers = [row["distance"], row["q"], float(row["steps"]), row["epsilon"]]
    given = map(ctypes.c_double, numbers)
    assert library.acct_exchange_delta(*given, ctypes.byref(out)) == 0
    return out


def wrong(directory, mutant=None):
    """The first stored row that a core of these sources gets wrong, or None."""
    sources = patched(directory, mutant)
    library = build(directory, core_files(sources), sources)
    for row in stored("exchange.jsonl"):
        out = profile_bracket(library, row)
        low, high = Decimal(out.lower), Decimal(out.upper)
        if not (low <= Decimal(row["upper"]) and high >= Decimal(row["lower"])):
            return row["id"]
    return None


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_patches_apply_once(mutant):
    assert mutant.applies()


@pytest.mark.slow
def test_the_core_itself_passes(tmp_path):
    assert wrong(tmp_path) is None


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutants_are_noticed(mutant, tmp_path):
    assert wrong(tmp_path, mutant) is not None

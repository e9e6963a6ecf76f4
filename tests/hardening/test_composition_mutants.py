"""The stored compositions must notice a core that is broken where different steps meet.

As test_core_mutants.py, for steps with random shifts and the sums over parts.
"""

import ctypes
import json
from decimal import Decimal

import pytest

from support.native import Bounds, Patch, build, core_files, mutants, patched
from support.oracle_checks import DATA, DIRECTION

MUTANTS = mutants(
    {
        "heterogeneous_sum.c: one step of a part too few": Patch(
            "acct_sum_add(&log_mod[i], n * (b->log_modulus[i] - log_scale));",
            "acct_sum_add(&log_mod[i], (n - 1.0) * (b->log_modulus[i] - log_scale));",
        ),
        "heterogeneous_sum.c: the decay of every part counted twice": Patch(
            "sums->decay[j] += n * bound[j];", "sums->decay[j] += 2.0 * n * bound[j];"
        ),
        "heterogeneous_sum.c: the decay of a plain part said to be that of another": Patch(
            "sums->decay[j] -= 0.5 * rate * sums->level[j] * sums->level[j] * (1.0 - 1e-12);",
            "sums->decay[j] -= 2.0 * rate * sums->level[j] * sums->level[j] * (1.0 - 1e-12);",
        ),
        "heterogeneous_sum.c: the tail event of one step a part": Patch(
            "sums->log_stay_ratio += n * log1p(-pq / (1.0 - q));",
            "sums->log_stay_ratio += log1p(-pq / (1.0 - q));",
        ),
        "cf_decay.c: decay along a path said to be four times as fast": Patch(
            "- y * arg[j + i] + (lift", "- 4.0 * y * arg[j + i] + (lift"
        ),
        "tilted_law.c: shifts above the first left out of the mass above a window": Patch(
            "    for (int j = 0; m && j < m->count; j++)\n        if (m->weight[j] > 0.0)\n",
            "    for (int j = 0; m && j < 1; j++)\n        if (m->weight[j] > 0.0)\n",
        ),
        "heterogeneous.c: the largest loss of an addition that of one step a part": Patch(
            "sum -= w->part[i].steps * acct_part_step", "sum -= acct_part_step"
        ),
        "mixture_loss.c: a shift's density at the wrong place": Patch(
            "u = d * (2.0 * x - d) / var2;\n            double em1;",
            "u = d * (2.0 * x - 1.0000001 * d) / var2;\n            double em1;",
        ),
    }
)


class Law(ctypes.Structure):
    _fields_ = (
        ("sigma", ctypes.c_double), ("count", ctypes.c_int),
        ("shift", ctypes.POINTER(ctypes.c_double)), ("weight", ctypes.POINTER(ctypes.c_double)),
        ("silent", ctypes.c_double), ("weight_err", ctypes.c_double),
    )  # fmt: skip


class Part(ctypes.Structure):
    _fields_ = (
        ("q", ctypes.c_double), ("sigma", ctypes.c_double), ("steps", ctypes.c_double),
        ("mixture", ctypes.c_void_p),
    )  # fmt: skip


def bracket(library, row):
    """The profile of a stored row, every part that is not plain as a mixture."""
    parts = (Part * len(row["parts"]))()
    kept = []
    for part, (sigma, shifts, weights, steps) in zip(parts, row["parts"], strict=True):
        if not shifts:
            part.q, part.sigma, part.steps = 1.0, sigma, steps
            continue
        double = ctypes.c_double * len(shifts)
        law = Law(sigma, len(shifts), double(*shifts), double(*weights), 0.0, 0.0)
        room = ctypes.create_string_buffer(8192)
        kept += [law, room]
        status = library.acct_part_set_mixture(
            ctypes.byref(part), room, ctypes.byref(law), ctypes.c_double(steps)
        )
        assert status == 0
    out = Bounds()
    status = library.acct_heterogeneous_delta(
        parts, len(parts), ctypes.c_double(row["epsilon"]), DIRECTION[row["direction"]],
        ctypes.byref(out),
    )  # fmt: skip
    assert status == 0
    return Decimal(out.lower), Decimal(out.upper)


def wrong(directory, mutant=None):
    """The first stored row that a core of these sources gets wrong, or None."""
    sources = patched(directory, mutant)
    library = build(directory, core_files(sources), sources)
    with (DATA / "shift_compositions.jsonl").open() as lines:
        for row in map(json.loads, lines):
            low, high = bracket(library, row)
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

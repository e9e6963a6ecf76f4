"""The suite must notice a broken core: each mutant drops or flips one term of a certificate.

A mutant is a patch of a copy of the C sources. Its patch must apply exactly once, and then at least
one stored problem, or one random one, must go red. core_mutants.md lists terms whose removal
cannot be noticed, and why.
"""

import itertools
import shutil
from dataclasses import dataclass

import pytest

from support.native import SOURCES, Core, core_file
from support.oracle_checks import (
    PROFILE,
    RENYI,
    contradictions,
    random_problems,
    wrong_deltas,
    wrong_divergences,
    wrong_epsilons,
)


@dataclass(frozen=True)
class Mutant:
    name: str
    file: str
    old: str
    new: str


MUTANTS = [
    Mutant(
        "aliases left out of the lower bound",
        "contour.c",
        "low = sum - error - alias;",
        "low = sum - error;",
    ),
    Mutant("error subtracted above", "contour.c", "high = sum + error,", "high = sum - error,"),
    Mutant(
        "error added below", "contour.c", "low = sum - error - alias;", "low = sum + error - alias;"
    ),
    Mutant("outcomes above the window forgotten above", "contour.c", "upper += tail.upper;", ""),
    Mutant(
        "outcomes above the window doubled below",
        "contour.c",
        "lower += tail.lower;",
        "lower += 2.0 * tail.lower;",
    ),
    Mutant(
        "reverse term of the outcomes above the window forgotten",
        "tail_event.c",
        "parity + err + reverse * ACCT_SLACK",
        "parity + err",
    ),
    Mutant(
        "small outcomes of a rare-event contour forgotten",
        "contour.c",
        "upper += exp(k->small_losses_log - k->small_losses_slope * epsilon);",
        "upper += 0.0;",
    ),
    Mutant(
        "large outcomes of a rare-event contour counted once too little",
        "tail_event.c",
        "    pq += law->pq_above;\n    if (",
        "    pq += 0.5 * law->pq_above;\n    if (",
    ),
    Mutant(
        "middling outcomes of a rare-event contour left out",
        "rare_event_path.c",
        "near ? in.above[0] - out.above[0] : out.below[0] - in.below[0];",
        "near ? 0.5 * (in.above[0] - out.above[0]) : 0.5 * (out.below[0] - in.below[0]);",
    ),
    Mutant(
        "the add direction by the other one without its constant",
        "contour.c",
        "exp(epsilon), all = expm1(epsilon);",
        "exp(epsilon), all = epsilon;",
    ),
    Mutant(
        "order rounded, its distance not",
        "order.h",
        "const double exact = (1.0 + b) - 1.0;",
        "const double exact = b;",
    ),
    Mutant(
        "quadrature said to converge twice as fast",
        "gauss_legendre.h",
        "(2.0 * ACCT_GL_ORDER - 1.0) * log(rho)",
        "(4.0 * ACCT_GL_ORDER - 1.0) * log(rho)",
    ),
    Mutant(
        "decay by moments said to be twice as fast",
        "cf_decay.c",
        "from[i] = y[i] * y[i];",
        "from[i] = 2.0 * y[i] * y[i];",
    ),
    Mutant(
        "decay by windows said to be far faster",
        "cf_decay.c",
        "            total += drop;",
        "            total += 10.0 * drop;",
    ),
    Mutant(
        "decay of a rare-event contour said to be four times as fast",
        "rare_event_sum.c",
        "sum[i] += large[j + i] * acct_vexp(-y * l_im[j + i]);",
        "sum[i] += large[j + i] * acct_vexp(-4.0 * y * l_im[j + i]);",
    ),
    Mutant(
        "aliases said to fall twice as fast",
        "contour.c",
        "alias->slope = b2 - k->b;",
        "alias->slope = 2.0 * (b2 - k->b);",
    ),
    Mutant(
        "round-off of log1p's argument lost",
        "vmath.h",
        "(lost + k * ACCT_LN2_LO)",
        "(k * ACCT_LN2_LO)",
    ),
    Mutant(
        "round-off of the scale with the wrong sign",
        "contour.c",
        "const double unit_err = k->log_scale_err +",
        "const double unit_err = -k->log_scale_err -",
    ),
    Mutant(
        "error of a Gaussian added below",
        "gaussian.c",
        "const double low = sum - error * ACCT_SLACK -",
        "const double low = sum + error * ACCT_SLACK -",
    ),
    Mutant(
        "error of a Gaussian subtracted above",
        "gaussian.c",
        "const double high = sum + error * ACCT_SLACK;",
        "const double high = sum - error * ACCT_SLACK;",
    ),
    Mutant(
        "error of a divergence subtracted above",
        "renyi.c",
        "(value + error) / (order - 1.0)",
        "(value - error) / (order - 1.0)",
    ),
    Mutant(
        "error of a divergence added below",
        "renyi.c",
        "(value - error) / (order - 1.0)",
        "(value + error) / (order - 1.0)",
    ),
    Mutant(
        "composition with all of delta for each step",
        "subsampled_gaussian.c",
        "acct_down(delta / steps)",
        "delta",
    ),
    Mutant(
        "terms beyond the last forgotten",
        "contour.c",
        "k->truncated = acct_cf_decay_tail_upper(decay, k->b, (k->count - 1) * k->dy, k->dy);",
        "k->truncated = 0.0;",
    ),
    Mutant(
        "quadrature error of the terms with the wrong sign",
        "characteristic_sum.h",
        "(e->at_last + e->at_zero * (1.0 + y * e->reach)",
        "(-e->at_last - e->at_zero * (1.0 + y * e->reach)",
    ),
]


def first_failure(core) -> str | None:
    """Return what the suite would notice first, or None."""
    checks = (
        wrong_deltas(core, PROFILE),
        contradictions(core, random_problems(20, 400)),
        wrong_divergences(core, RENYI),
        wrong_epsilons(core, PROFILE),
    )
    return next(map(repr, itertools.chain(*checks)), None)


def build(directory, mutant=None):
    sources = shutil.copytree(SOURCES, directory / "src")
    if mutant:
        text = core_file(mutant.file, sources).read_text()
        assert text.count(mutant.old) == 1, f"the patch of {mutant.name!r} no longer applies"
        core_file(mutant.file, sources).write_text(text.replace(mutant.old, mutant.new))
    return Core(directory, sources)


@pytest.mark.slow
def test_the_core_itself_passes(tmp_path):
    assert first_failure(build(tmp_path)) is None


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_patches_apply_once(mutant):
    assert core_file(mutant.file).read_text().count(mutant.old) == 1


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutants_are_noticed(mutant, tmp_path):
    assert first_failure(build(tmp_path, mutant)) is not None

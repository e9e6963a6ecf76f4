"""The suite must notice a broken core: each mutant drops or flips one term of a certificate.

A mutant is a patch of a copy of the C sources. Its patch must apply exactly once, and then at least
one stored problem, or one random one, must go red. core_mutants.md lists terms whose removal
cannot be noticed, and why.
"""

import itertools

import pytest

from support import oracle_checks
from support.native import Core, Patch, mutants, patched

MUTANTS = mutants(
    {
        "contour.c: aliases left out of the lower bound": Patch(
            "low = sum - error - alias;", "low = sum - error;"
        ),
        "contour.c: error subtracted above": Patch("high = sum + error,", "high = sum - error,"),
        "contour.c: error added below": Patch(
            "low = sum - error - alias;", "low = sum + error - alias;"
        ),
        "contour.c: outcomes above the window forgotten above": Patch("upper += tail.upper;", ""),
        "contour.c: outcomes above the window doubled below": Patch(
            "lower += tail.lower;", "lower += 2.0 * tail.lower;"
        ),
        "contour.c: small outcomes of a rare-event contour forgotten": Patch(
            "upper += exp(k->small_losses_log - k->small_losses_slope * epsilon);", "upper += 0.0;"
        ),
        "contour.c: the add direction by the other one without its constant": Patch(
            "exp(epsilon), all = expm1(epsilon);", "exp(epsilon), all = epsilon;"
        ),
        "contour.c: aliases said to fall twice as fast": Patch(
            "alias->slope = b2 - k->b;", "alias->slope = 2.0 * (b2 - k->b);"
        ),
        "contour.c: round-off of the scale with the wrong sign": Patch(
            "const double unit_err = k->log_scale_err +",
            "const double unit_err = -k->log_scale_err -",
        ),
        "contour.c: terms beyond the last forgotten": Patch(
            "k->truncated = acct_cf_decay_tail_upper(decay, k->b, (k->count - 1) * k->dy, k->dy);",
            "k->truncated = 0.0;",
        ),
        "tail_event.c: reverse term of the outcomes above the window forgotten": Patch(
            "parity + err + reverse * ACCT_SLACK", "parity + err"
        ),
        "tail_event.c: large outcomes of a rare-event contour counted once too little": Patch(
            "    pq += law->pq_above;\n    if (", "    pq += 0.5 * law->pq_above;\n    if ("
        ),
        "rare_event_path.c: middling outcomes of a rare-event contour left out": Patch(
            "near ? in.above[0] - out.above[0] : out.below[0] - in.below[0];",
            "near ? 0.5 * (in.above[0] - out.above[0]) : 0.5 * (out.below[0] - in.below[0]);",
        ),
        "order.h: order rounded, its distance not": Patch(
            "const double exact = (1.0 + b) - 1.0;", "const double exact = b;"
        ),
        "gauss_legendre.h: quadrature said to converge twice as fast": Patch(
            "(2.0 * ACCT_GL_ORDER - 1.0) * log(rho)", "(4.0 * ACCT_GL_ORDER - 1.0) * log(rho)"
        ),
        "cf_decay.c: decay by moments said to be twice as fast": Patch(
            "from[i] = y[i] * y[i];", "from[i] = 2.0 * y[i] * y[i];"
        ),
        "cf_decay.c: decay by windows said to be far faster": Patch(
            "            total += drop;", "            total += 10.0 * drop;"
        ),
        "rare_event_contour.c: decay of a rare-event contour said to be four times as fast": Patch(
            "sum[i] += large[j + i] * acct_vexp(-y * l_im[j + i]);",
            "sum[i] += large[j + i] * acct_vexp(-4.0 * y * l_im[j + i]);",
        ),
        "vmath.h: round-off of log1p's argument lost": Patch(
            "(lost + k * ACCT_LN2_LO)", "(k * ACCT_LN2_LO)"
        ),
        "gaussian.c: error of a Gaussian added below": Patch(
            "const double low = sum - error * ACCT_SLACK -",
            "const double low = sum + error * ACCT_SLACK -",
        ),
        "gaussian.c: error of a Gaussian subtracted above": Patch(
            "const double high = sum + error * ACCT_SLACK;",
            "const double high = sum - error * ACCT_SLACK;",
        ),
        "renyi.c: error of a divergence subtracted above": Patch(
            "(value + error) / (order - 1.0)", "(value - error) / (order - 1.0)"
        ),
        "renyi.c: error of a divergence added below": Patch(
            "(value - error) / (order - 1.0)", "(value + error) / (order - 1.0)"
        ),
        "subsampled_gaussian.c: composition with all of delta for each step": Patch(
            "acct_down(delta / steps)", "delta"
        ),
        "characteristic_sum.h: quadrature error of the terms with the wrong sign": Patch(
            "(e->at_last + e->at_zero * (1.0 + y * e->reach)",
            "(-e->at_last - e->at_zero * (1.0 + y * e->reach)",
        ),
    }
)


def first_failure(core) -> str | None:
    """Return what the suite would notice first, or None."""
    checks = (
        oracle_checks.wrong_deltas(core, oracle_checks.PROFILE),
        oracle_checks.contradictions(core, oracle_checks.random_problems(20, 400)),
        oracle_checks.wrong_divergences(core, oracle_checks.RENYI),
        oracle_checks.wrong_epsilons(core, oracle_checks.PROFILE),
    )
    return next(map(repr, itertools.chain(*checks)), None)


def build(directory, mutant=None):
    return Core(directory, patched(directory, mutant))


@pytest.mark.slow
def test_the_core_itself_passes(tmp_path):
    assert first_failure(build(tmp_path)) is None


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_patches_apply_once(mutant):
    assert mutant.applies()


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutants_are_noticed(mutant, tmp_path):
    assert first_failure(build(tmp_path, mutant)) is not None


def test_modules_that_are_mutated_and_their_tests_exist():
    pytest.importorskip("flint")
    from support.hardening import mutate

    for module in mutate.BESIDE:
        assert (mutate.ROOT / "accountant" / f"{module}.py").exists(), module
        found = mutate.tests_of(module)
        assert found
        assert all((mutate.ROOT / "tests" / each).exists() for each in found), module

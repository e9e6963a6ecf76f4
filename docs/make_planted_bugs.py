"""Write planted_bugs.md from the registry of the tests; a test compares the two."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "planted_bugs.md"

HEAD = """\
# Planted bugs

A check that cannot fail proves nothing. The tests therefore plant every mistake below into the
shipped code by a patch of a few lines (`tests/support/planted/`). The check beside it must then
report a finding, and it must report none on the code as shipped
(`tests/cross_cutting/test_planted_bugs.py`; the full suite plants the bugs, the default suite runs
every check on the code as shipped). `python -m support.planted.alone` with `PYTHONPATH=tests`
plants each bug alone and lists those that the default suite notices. *Audits* see only what is
released; *tests* look at a property. `python docs/make_planted_bugs.py` writes this page from the
registry of the bugs, and a test compares the two.
"""

ELSEWHERE = {
    "the log-determinant with the data norm in place of its square": (
        "learn/convex/test_mechanism_density.py",
        "test_a_determinant_without_the_square_of_the_norm_is_caught",
    ),
    "softmax gradients bounded by R, not √2 R": (
        "learn/convex/test_mechanism_density.py",
        "test_a_softmax_slope_of_r_instead_of_root_two_r_is_caught",
    ),
    "a smoothed hinge that understates its curvature": (
        "learn/convex/test_mechanism_density.py",
        "test_a_hinge_that_understates_its_curvature_is_caught",
    ),
    "a bias that objective perturbation does not perturb": (
        "learn/convex/test_mechanism_density.py",
        "test_a_coordinate_without_noise_is_caught",
    ),
    "objective perturbation recorded as a Gaussian mechanism": (
        "learn/convex/test_mechanism_density.py",
        "test_recording_a_gaussian_mechanism_is_caught",
    ),
    "objective perturbation with half of its noise": (
        "learn/convex/test_mechanism_density.py",
        "test_half_of_the_noise_is_caught",
    ),
    "the exponential mechanism without its factor two": (
        "learn/selection/test_noisy_max.py",
        "test_the_exponential_mechanism_has_its_law_and_the_mutant_without_the_two_has_not",
    ),
    "AboveThreshold without noise on the threshold": (
        "learn/selection/test_noisy_max.py",
        "test_above_threshold_has_its_law",
    ),
    "Laplace noise rounded down": (
        "noise/test_exact_samplers.py",
        "test_rounded_laplace_has_the_law_of_rounding",
    ),
    "PATE's data-dependent bound without its second term": (
        "learn/pate/test_bounds.py",
        "test_a_mutant_without_the_second_term_is_caught",
    ),
    "a choice among runs that costs nothing": (
        "learn/selection/test_tuning.py",
        "test_dropping_the_excess_is_noticed",
    ),
    "subsets that are not uniform": ("sampling/test_drawing.py", "test_the_mutant_is_not_uniform"),
    "terms of the native certificate, one at a time": (
        "hardening/test_core_mutants.py",
        "test_mutants_are_noticed",
    ),
}


def page() -> str:
    """Return the page."""
    sys.path.insert(0, str(ROOT / "tests"))
    from support.planted import BUGS, NAMED, accounts, releases, run_accounts, runs

    parts = [HEAD]
    for title, module in (
        ("Training runs", runs),
        ("Accounts of training runs", run_accounts),
        ("Other releases", releases),
        ("Accounts and ledgers", accounts),
    ):
        rows = "\n".join(bug.row for bug in module.BUGS)
        parts.append(f"## {title}\n\n| name | mistake | noticed by |\n|---|---|---|\n{rows}\n")
    rows = "\n".join(bug.row for bug in NAMED)
    parts.append(
        "## Noticed in the file of their name\n\nEach is planted in a test process of its own"
        "\n(`pytest -m slow tests/cross_cutting/test_planted_bugs.py`), in which the test beside it"
        " must turn\nred. That test is in the file named after the faulty module or package.\n\n"
        f"| name | mistake | noticed by |\n|---|---|---|\n{rows}\n"
    )
    rows = "\n".join(f"| {story} | `{file}::{test}` |" for story, (file, test) in ELSEWHERE.items())
    parts.append(
        "## Planted beside their theorems\n\nThese are in the tests of the theorem they break.\n\n"
        f"| mistake | noticed by |\n|---|---|\n{rows}\n"
    )
    audits = sum(bug.audit for bug in BUGS)
    parts.append(
        f"The registry has {len(BUGS)} bugs; an audit of what is released finds {audits} of them."
        f" {len(NAMED)} more must be\nnoticed in the file of their name, and {len(ELSEWHERE)} more"
        " are planted beside their theorems.\n"
    )
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page())

"""Write planted_bugs.md from the registry of the tests; a test compares the two."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "planted_bugs.md"

HEAD = """\
# Planted bugs

A check that cannot fail proves nothing. The tests therefore plant mistakes in the shipped code,
each by a patch of a few lines (`tests/support/planted/`). The check beside it must report a
finding, and it must report none on the code as shipped
(`tests/cross_cutting/test_planted_bugs.py`).

An *audit* sees only what is released. A *test* looks at a property. The other bugs must turn one
test of the faulty module red, each in a process of its own.

|where |bugs |noticed by an audit |for example|
|---|---|---|---|
"""
TAIL = """
`python docs/make_planted_bugs.py --all` prints every mistake and what notices it. `python -m
support.planted.alone [NAME]`, with `PYTHONPATH=tests`, plants each bug alone and lists those that
the default suite notices. Without an option the script writes this page; a test compares the two.
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
    "subsets that are not uniform": ("sampling/test_sampler.py", "test_the_mutant_is_not_uniform"),
    "terms of the native certificate, one at a time": (
        "hardening/test_core_mutants.py",
        "test_mutants_are_noticed",
    ),
}


def groups() -> list[tuple[str, tuple]]:
    """Return the bugs of the registry by where they are planted."""
    sys.path.insert(0, str(ROOT / "tests"))
    from support.planted import NAMED, accounts, releases, run_accounts, runs

    return [
        ("training runs", runs.BUGS),
        ("accounts of training runs", run_accounts.BUGS),
        ("other releases", releases.BUGS),
        ("accounts and ledgers", accounts.BUGS),
        ("all modules, each with its own test", NAMED),
    ]


def page() -> str:
    """Return the page."""
    rows = []
    for title, bugs in groups():
        audits = sum(bug.audit for bug in bugs)
        rows.append(f"|{title} |{len(bugs)} |{audits} |{bugs[0].story}|\n")
    rows.append(f"|beside their theorems |{len(ELSEWHERE)} |0 |{next(iter(ELSEWHERE))}|\n")
    return HEAD + "".join(rows) + TAIL


def every() -> str:
    """Return a row for each mistake."""
    rows = [bug.row for _, bugs in groups() for bug in bugs]
    rows += [f"| | {story} | `{file}::{test}` |" for story, (file, test) in ELSEWHERE.items()]
    return "\n".join(rows)


if __name__ == "__main__":
    if "--all" in sys.argv:
        print(every())
    else:
        PAGE.write_text(page(), encoding="utf-8")

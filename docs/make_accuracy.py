"""Write docs/accuracy.md: the core measured against the stored oracle values.

Run from anywhere, on a quiet machine: ``python docs/make_accuracy.py``. tests/cross_cutting/test_soundness.py and
tests/cross_cutting/test_laws.py assert what the page claims.
"""

import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from accountant._core import answers as core

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support import oracle_checks  # noqa: E402

FAMILIES = {
    "**claimed tight** (below)": lambda r: claimed(r),
    "steps ≥ 50, steps·q ≥ 30": lambda r: r["steps"] >= 50 and r["steps"] * r["q"] >= 30,
    "steps 2 to 49": lambda r: 2 <= r["steps"] < 50,
    "one step": lambda r: r["steps"] == 1,
    "steps·q < 0.1": lambda r: r["steps"] * r["q"] < 0.1,
    "sigma < 0.4": lambda r: r["sigma"] < 0.4,
    "q < 1e-6": lambda r: r["q"] < 1e-6,
    "ε < 1e-3": lambda r: r["epsilon"] < 1e-3,
    "delta < 1e-20": lambda r: float(r["lower"]) < 1e-20,
    "all": lambda r: True,
}


def claimed(row: dict) -> bool:
    """Whether the page claims a width of 1e-9 for this problem."""
    delta, _ = oracle_checks.deltas_around(row)
    return oracle_checks.claimed_tight(*oracle_checks.problem(row), delta, row["epsilon"])


@dataclass
class Measured:
    """The public answer at the δ of one stored problem."""

    row: dict
    delta: float
    upper: float
    width: float
    seconds: float

    @property
    def bar(self) -> float:
        """The relative width wanted of it."""
        return 1e-9 if self.row["q"] >= 1e-6 and self.row["epsilon"] >= 1e-3 else 1e-6


def measure(row: dict) -> Measured | None:
    """Measure one problem, or nothing where its δ is out of the public range."""
    delta, _ = oracle_checks.deltas_around(row)
    if not 0.0 < delta < 1.0:
        return None
    began = time.thread_time()
    lower, upper = core.epsilon_bounds(*oracle_checks.problem(row), delta, core.EITHER)
    seconds = time.thread_time() - began
    return Measured(row, delta, upper, (upper - lower) / upper if upper > 0.0 else 0.0, seconds)


def violations(rows: list[dict]) -> set[int]:
    """Ids of the problems with any bracket, on δ or on ε, that misses the truth."""
    wrong = [*oracle_checks.wrong_deltas(core, rows), *oracle_checks.wrong_epsilons(core, rows)]
    return {id(row) for row in wrong}


def line(name: str, part: list[Measured], wrong: set[int]) -> str:
    """One row of the table. Widths leave out ε = 0, where relative width has no meaning."""
    widths = [m for m in part if m.row["epsilon"] > 0.0]
    over = sum(m.width > m.bar for m in widths)
    median = statistics.median(m.width for m in widths)
    times = [m.seconds for m in part]
    return (
        f"|{name} |{len(part)} |{sum(id(m.row) in wrong for m in part)} |{median:.1e} |"
        f"{max(m.width for m in widths):.1e} |{over} of {len(widths)} |"
        f"{statistics.median(times) * 1e6:.0f} µs |{max(times) * 1e3:.0f} ms|"
    )


SWEPT = 20_000
SWEEPS = {
    "**claimed tight**": oracle_checks.claimed_tight,
    "q ≥ 1e-6, steps ≥ 50, steps·q ≥ 30": lambda q, s, n, d, e: (
        q >= 1e-6 and n >= 50 and n * q >= 30 and e >= 1e-3
    ),
    "q ≥ 1e-6": lambda q, s, n, d, e: q >= 1e-6 and e >= 1e-3,
}


def sweep(seed: int, n: int) -> str:
    """Widths at random problems, where no truth is stored but a width needs none."""
    found: dict[str, list[float]] = {name: [] for name in SWEEPS}
    for problem in oracle_checks.random_problems(seed, n):
        lower, upper = core.epsilon_bounds(*problem, core.EITHER)
        for name, member in SWEEPS.items():
            if member(*problem, upper):
                found[name].append((upper - lower) / upper)
    return "\n".join(
        f"|{name} |{len(w)} |{sum(x > 1e-9 for x in w)} |{sum(x > 1e-6 for x in w)} |"
        f"{sum(x > 1e-2 for x in w)} |{statistics.median(w):.1e} |{max(w):.1e}|"
        for name, w in found.items()
    )


def renyi() -> tuple[int, int, float]:
    """Count of stored divergences, violations, and the largest relative excess of the upper end."""
    excess = 0.0
    for row in oracle_checks.RENYI:
        direction = oracle_checks.DIRECTION[row["direction"]]
        upper = core.renyi_bounds(row["q"], row["sigma"], row["alpha"], direction)[1]
        excess = max(
            excess, float(oracle_checks.Decimal(upper) / oracle_checks.Decimal(row["lower"]) - 1)
        )
    return (
        len(oracle_checks.RENYI),
        len(list(oracle_checks.wrong_divergences(core, oracle_checks.RENYI))),
        excess,
    )


PAGE = """# Accuracy

`docs/make_accuracy.py` writes the first half of this page. It compares the package with {count} stored
problems of DP-SGD, most of them extreme. Independent code (`tests/support/oracle`) computed their privacy
profiles to at least 18 digits. They have q from 1e-9 to 1, sigma from 0.2 to 100, steps from 1 to 1e12 and
delta from 1e-30 to 0.9.

- *Violations*: problems where the bracket on δ at the stored ε, or the bracket on ε at the neighbouring δ,
  does not contain the truth. The comparison has no tolerance.
- *Width*: that of the bracket on ε, relative to its upper end.
- *Over*: problems whose width exceeds 1e-9 (q ≥ 1e-6 and ε ≥ 1e-3) or 1e-6 (elsewhere), without ε = 0.
- *Time*: the processor time of one public call.

|family |problems |violations |median width |widest |over |median time |slowest|
|---|---|---|---|---|---|---|---|
{table}

Of the Rényi divergences {orders} are stored, at orders from 1 + 1e-6 to 1e4, with {renyi_wrong} violations.
The upper ends exceed the truth by a relative {excess:.1e} at most.

## What is claimed

- Every bracket contains the truth. `tests/cross_cutting/test_soundness.py` checks every stored problem.
- The bracket on ε has a relative width of at most 1e-9 for q ≥ 1e-6, ε ≥ 1e-3, δ ≤ 0.1 and steps ≥ 50, in
  two cases. Either participation is not rare (steps·q ≥ 300 and steps·q² ≥ 0.3). Or the run is typical
  (q ≥ 1e-3, sigma ≥ 0.4, steps·q ≥ 30 and δ ≥ 1e-15). `test_soundness.py` and `test_laws.py` check this.

There are no further claims. Of the stored problems with q ≥ 1e-6 and ε ≥ 1e-3, {share_over} exceed that
width. The next table counts {swept} random problems over the whole range, those with ε ≥ 1e-3:

|domain |problems |wider than 1e-9 |than 1e-6 |than 1e-2 |median width |widest|
|---|---|---|---|---|---|---|
{sweep}

## Where brackets are wide

These brackets are valid, but wider:

- *δ near its largest value.* The thirteenth digit of δ is the sixth of ε.
- *Tiny δ, few steps, large sigma.* The terms between the two thresholds of rare events cancel
  ([theorem 15](theorems.md)), so round-off dominates.
- *A loss spread over several scales, with an ε below 1e-3.* These problems, and rare events in few steps, take
  longest: tens of milliseconds.
- *Few steps under replace-one with q <= 1e-4.* ε is wide by 1e-5 at δ = 1e-5, 2e-4 at 1e-20.
"""


def main() -> None:
    """Measure every stored problem and write the page."""
    wrong = violations(oracle_checks.PROFILE)
    measured = [m for row in oracle_checks.PROFILE if (m := measure(row))]
    table = [
        line(n, [m for m in measured if member(m.row)], wrong) for n, member in FAMILIES.items()
    ]
    wanted = [m for m in measured if m.bar == 1e-9]
    wide = [m for m in wanted if m.width > m.bar]
    orders, renyi_wrong, excess = renyi()
    page = PAGE.format(
        count=len(oracle_checks.PROFILE),
        table="\n".join(table),
        orders=orders,
        renyi_wrong=renyi_wrong,
        excess=excess,
        share_over=f"{len(wide)} of {len(wanted)} ({100 * len(wide) / len(wanted):.1f} %)",
        swept=SWEPT,
        sweep=sweep(5, SWEPT),
    )
    # benchmarks/mechanisms.py writes the rest of the page.
    path = ROOT / "docs/accuracy.md"
    _, heading, rest = path.read_text(encoding="utf-8").partition("## Every mechanism")
    path.write_text(f"{page}\n{heading}{rest}" if heading else page, encoding="utf-8")


if __name__ == "__main__":
    main()

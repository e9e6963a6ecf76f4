"""The section of docs/accuracy.md about every mechanism."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from every_mechanism.measuring import LONGEST, TIMES, WIDE, Line

__all__ = ["HEADING", "section", "write"]

PAGE = Path(__file__).parents[2] / "docs" / "accuracy.md"
HEADING = "## Every mechanism"
# The δ of the table; the other one that is measured counts for what is wide.
SHOWN = 1e-5

TEXT = """{heading}

`python benchmarks/mechanisms.py --write` measures this section: every mechanism, plain and on a
Poisson sample (*q*), after 1,000 releases, at δ = 1e-5. {setting}

- *ε*: the certified upper end. *Width*: that of the bracket, relative to ε; (*): the distance to
  what a strategy certainly has, where the pair need not be attained.
- *Time*: the least processor time of a question that no cache knows.
- *dp-accounting*: its pessimistic estimate of ε, the distance to its optimistic one, and the time
  of both. Its interval is divided by four, from 0.01 on, until its bracket is as narrow as ours
  or time runs out ({limit:g} s, or {times:g} times ours up to {longest:g} s).
- *Ratio*: its time over ours; `>` where it did not become as narrow. `!`: its bracket does not
  meet ours, which is certified.

{table}

{wide}
"""


def section(lines: Sequence[Line], setting: str, limit: float) -> str:
    return TEXT.format(
        heading=HEADING,
        setting=setting,
        limit=limit,
        times=TIMES,
        longest=LONGEST,
        table=_table([one for one in lines if one.delta == SHOWN]),
        wide=_wide(lines),
    )


def write(text: str) -> None:
    """Put the section in the place of the one that the page has, or at its end."""
    before = PAGE.read_text(encoding="utf-8").partition(HEADING)[0].rstrip()
    PAGE.write_text(f"{before}\n\n{text.rstrip()}\n", encoding="utf-8")


def _wide(lines: Sequence[Line]) -> str:
    """Return a sentence about what is wide, at both δ that are measured."""
    tight = [one for one in lines if one.attained is None]
    wide = [f"{_place(one)}: {one.width:.1e}" for one in tight if one.width > WIDE]
    slowest = max(lines, key=lambda one: one.seconds)
    said = "; ".join(wide) if wide else f"none of {len(tight)} brackets, at 1e-5 and at 1e-10"
    return (
        f"Wider than {WIDE:g}: {said}. The slowest line takes {_time(slowest.seconds)}"
        f" ({_place(slowest)})."
    )


def _place(line: Line) -> str:
    rate = "" if line.rate == 1.0 else f", sampled at {line.rate:g}"
    return f"{line.name}{rate}, {line.releases} releases, δ = {line.delta:g}"


def _table(lines: Sequence[Line]) -> str:
    head, rule = "|mechanism |q |ε |width |time", "|---|---|---|---|---|"
    has_peer = any(one.peer for one in lines)
    if has_peer:
        head += " |dp-accounting |its width |its time |ratio"
        rule += "---|---|---|---|"
    return "\n".join([f"{head}|", rule, *(_row(one, has_peer) for one in lines)])


def _row(line: Line, has_peer: bool) -> str:
    width = f"{line.width:.1e}" if line.attained is None else f"{line.gap:.1e} (*)"
    row = f"|{line.name} |{line.rate:g} |{line.upper:.8g} |{width} |{_time(line.seconds)}"
    other, ratio = line.peer, line.ratio
    if other is None or ratio is None:
        return f"{row}|–||||" if has_peer else f"{row}|"
    misses = "" if other.upper >= line.lower and other.lower <= line.upper else " !"
    apart = (other.upper - other.lower) / other.upper if 0.0 < other.upper < math.inf else 0.0
    more = "" if other.reached else "> "
    theirs = f"{other.upper:.8g}{misses} |{apart:.1e} |{_time(other.seconds)}"
    return f"{row} |{theirs} |{more}{ratio:.3g}|"


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1.0 else f"{seconds * 1e3:.2f} ms"

"""The section of docs/accuracy.md about every mechanism."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from every_mechanism.measuring import LONGEST, REPEATS, TIMES, WIDE, Line

__all__ = ["HEADING", "section", "write"]

PAGE = Path(__file__).parents[2] / "docs" / "accuracy.md"
HEADING = "## Every mechanism"

TEXT = """{heading}

`python benchmarks/mechanisms.py --write` measures this section: every mechanism, plain and on a
Poisson sample (*q*), after 1 to 100,000 releases, at two δ.
{setting}

- *ε*: the certified upper end. *Width*: that of the bracket, relative to ε.
- *Time*: the least of up to {repeats} processor times to make the mechanism and to answer one
  question that no cache of answers or laws knows.
- *dp-accounting*: the pessimistic estimate of ε of its privacy loss distribution. *Its width*: the
  distance to its optimistic estimate. Its interval is a quarter of the one before, from 0.01, until
  the two are as near to each other as the ends of our bracket, or until both took {limit:g} s, or
  {times:g} times as long as we did up to {longest:g} s. *Its time* is that of building, composing
  and one question, of both estimates. Where the entries are missing it raises an error, or has no
  such mechanism.
- *Ratio*: its time over ours; `>` where it did not become as narrow. *Upper alone*: the ratio where
  its pessimistic estimate is computed alone, until it is within our width of our lower end.
- `!`: its bracket does not meet ours, which is certified. Its estimates count no round-off: those
  of one release of a few outcomes are equal, and may both be a rounding away from the truth.
- *Attained*, where the composed pair need not be: what a strategy certainly has, which is the
  exponential mechanism or permute-and-flip between two candidates, one integer for a vector, normal
  noise for a Rényi curve. The answer's own lower end is that of two candidates whose scores change
  places, where a curve rules. *Gap*: how far ε is above it. It is not an error: mechanisms with the
  stated property may be worse than the strategy.

{summary}

{below}

{tables}
"""

REASONS = """\
One release of a few outcomes costs either library little more than its Python calls. dp-accounting
takes some 25 µs for two to four outcomes, and a twentieth of it is what one checked call takes
here, before the mechanism is made and counted (4 µs), its losses are listed (4 µs, and 12 µs of a
sample) and both ends are certified (6 µs). A finer interval costs it nothing there, for so few
losses are no array: randomised response takes as long at 1e-4, where its two estimates are 1e-4
apart, as at 6e-16, where they are as near as our ends and this table compares them. One release of
discrete Gaussian noise, with a table of 76 outcomes, costs it some 0.3 ms, and 1 ms sampled."""


def section(lines: Sequence[Line], setting: str, limit: float) -> str:
    tables = [_table(name, list(rows)) for name, rows in groupby(lines, key=lambda one: one.name)]
    return TEXT.format(
        heading=HEADING,
        setting=setting,
        limit=limit,
        times=TIMES,
        longest=LONGEST,
        repeats=REPEATS,
        summary=_summary(lines),
        below=_below(lines),
        tables="\n\n".join(tables),
    )


def write(text: str) -> None:
    """Put the section in the place of the one that the page has, or at its end."""
    before = PAGE.read_text(encoding="utf-8").partition(HEADING)[0].rstrip()
    PAGE.write_text(f"{before}\n\n{text.rstrip()}\n", encoding="utf-8")


def _summary(lines: Sequence[Line]) -> str:
    tight = [one for one in lines if one.attained is None]
    ratios = [one.ratio for one in lines if one.ratio is not None]
    widest, slowest = max(tight, key=_width), max(lines, key=lambda one: one.seconds)
    said = (
        f"Of {len(lines)} lines {len(tight)} have a bracket of both ends. The widest of these is"
        f" {_width(widest):.1e} ({_place(widest)}); {sum(_width(one) > WIDE for one in tight)} are"
        f" wider than {WIDE:g}. The slowest line takes {slowest.seconds:.2f} s ({_place(slowest)})."
    )
    if ratios:
        alone = [a for one in lines if (a := _alone(one)) is not None]
        below, alone_below = (sum(one < TIMES for one in rows) for rows in (ratios, alone))
        said += (
            f"\ndp-accounting answers {len(ratios)}; the least ratio is {min(ratios):.2g}, and"
            f" {below} are below {TIMES:g}. Of the upper end alone {alone_below} of {len(alone)}"
            f" ratios are below {TIMES:g}."
        )
    return said


def _below(lines: Sequence[Line]) -> str:
    """Return the lines whose ratio is too small, the two δ of one release in one row."""
    groups = groupby(lines, key=lambda one: (one.name, one.rate, one.releases))
    rows = []
    for (name, rate, releases), group in groups:
        pairs = [(one.ratio, one) for one in group if one.ratio is not None and one.ratio < TIMES]
        if not pairs:
            continue
        ratio, worst = min(pairs, key=lambda pair: pair[0])
        more = "" if worst.peer and worst.peer.reached else "> "
        theirs = worst.peer.seconds if worst.peer else 0.0
        rows.append(
            f"| {name} | {rate:g} | {releases} | {_time(worst.seconds)} | {_time(theirs)}"
            f" | {more}{ratio:.3g} |"
        )
    if not rows:
        return ""
    head = (
        f"### Ratios below {TIMES:g}\n\n{REASONS}\n\nThe smaller ratio of both δ:\n\n"
        "| mechanism | q | releases | time | its time | ratio |\n|---|---|---|---|---|---|"
    )
    return "\n".join([head, *rows])


def _width(line: Line) -> float:
    return line.width


def _place(line: Line) -> str:
    rate = "" if line.rate == 1.0 else f", sampled at {line.rate:g}"
    return f"{line.name}{rate}, {line.releases} releases, δ = {line.delta:g}"


def _alone(line: Line) -> float | None:
    if line.peer is None or line.peer.upper_seconds == math.inf:
        return None
    return line.peer.upper_seconds / line.seconds


def _table(name: str, lines: Sequence[Line]) -> str:
    head = f"### {name}\n\n| q | releases | δ | ε | width | time |"
    rule = "|---|---|---|---|---|---|"
    if lines[0].attained is not None:
        head, rule = f"{head} attained | gap |", f"{rule}---|---|"
    has_peer = any(one.peer for one in lines)
    if has_peer:
        head += " dp-accounting | its width | its time | ratio | upper alone |"
        rule += "---|---|---|---|---|"
    return "\n".join([head, rule, *(_row(one, has_peer) for one in lines)])


def _row(line: Line, has_peer: bool) -> str:
    row = (
        f"| {line.rate:g} | {line.releases} | {line.delta:g} | {line.upper:.8g} | {line.width:.1e}"
        f" | {_time(line.seconds)} |"
    )
    if line.attained is not None:
        row += f" {line.attained:.8g} | {line.gap:.1e} |"
    other, ratio, alone = line.peer, line.ratio, _alone(line)
    if other is None or ratio is None:
        return f"{row} – | | | | |" if has_peer else row
    misses = "" if other.upper >= line.lower and other.lower <= line.upper else " !"
    width = (other.upper - other.lower) / other.upper if 0.0 < other.upper < math.inf else 0.0
    more = "" if other.reached else "> "
    return (
        f"{row} {other.upper:.8g}{misses} | {width:.1e} | {_time(other.seconds)} |"
        f" {more}{ratio:.3g} | {'–' if alone is None else f'{alone:.3g}'} |"
    )


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1.0 else f"{seconds * 1e3:.2f} ms"

"""A statement as an HTML page, as Markdown and as JSON."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from accountant._basics.display import json_value, percent, plain, text_down, text_up
from accountant.errors import UnsupportedError
from accountant.report import answers, facts
from accountant.report.contents import Contents

# The picture's size, in units of the page's pixels.
WIDTH = 640
HEIGHT = 340
# The margins around the axes hold the numbers and the words beside them.
LEFT = 84
RIGHT = 38
TOP = 14
BOTTOM = 58


@dataclass(frozen=True)
class Series:
    """A line: ``kind`` is its class in the style sheet."""

    name: str
    points: Sequence[tuple[float, float]]
    kind: str = "first"


@dataclass(frozen=True)
class Axis:
    """An axis from ``least`` to ``most`` with ticks; ``logarithmic`` ones by powers of ten."""

    label: str
    least: float
    most: float
    logarithmic: bool = False
    reverse: bool = False

    def place(self, value: float) -> float:
        """Return the position of a value, from 0 to 1."""
        low, high, x = self.least, self.most, value
        if self.logarithmic:
            low, high, x = math.log10(low), math.log10(high), math.log10(value)
        share = (x - low) / (high - low) if high > low else 0.0
        return 1.0 - share if self.reverse else share

    def ticks(self) -> list[tuple[float, str]]:
        """Return the values that are marked, and their texts."""
        if self.logarithmic:
            first, last = round(math.log10(self.least)), round(math.log10(self.most))
            return [(10.0**k, f"1e{k}") for k in range(first, last + 1, 2)]
        span = self.most - self.least
        step = _step(span / 5.0)
        count = math.floor(span / step * (1.0 + 1e-9))
        values = [self.least + k * step for k in range(count + 1)]
        return [(value, f"{value:.10g}") for value in values]


@dataclass(frozen=True)
class Chart:
    """Finished SVG, and where it put the points of the first series."""

    svg: str
    places: tuple[tuple[float, float], ...]


def line_chart(
    name: str, title: str, description: str, x: Axis, y: Axis, series: Sequence[Series]
) -> Chart:
    """Draw lines; ``name`` makes the identifiers of this chart unique on the page."""
    inside = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def at(point: tuple[float, float]) -> tuple[float, float]:
        across, up = x.place(point[0]), y.place(point[1])
        return round(LEFT + across * inside[0], 2), round(TOP + (1.0 - up) * inside[1], 2)

    lines = [
        (
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img"'
            f' aria-labelledby="{name}-title {name}-description">'
        ),
        f'<title id="{name}-title">{escape(title)}</title>',
        f'<desc id="{name}-description">{escape(description)}</desc>',
        *_grid(x, y),
    ]
    places: tuple[tuple[float, float], ...] = ()
    for number, one in enumerate(series):
        found = [at(point) for point in one.points if all(map(math.isfinite, point))]
        if number == 0:
            places = tuple(found)
        path = " ".join(f"{a},{b}" for a, b in found)
        if len(found) == 1:
            # A line of one point would be invisible.
            lines.append(
                f'<circle class="dot {one.kind}" cx="{found[0][0]}" cy="{found[0][1]}" r="4"/>'
            )
        lines.append(f'<polyline class="line {one.kind}" points="{path}"/>')
    lines += _legend(series) if len(series) > 1 else []
    return Chart("\n".join([*lines, "</svg>"]), places)


def _grid(x: Axis, y: Axis) -> list[str]:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    lines = []
    for value, text in x.ticks():
        at = round(LEFT + x.place(value) * (right - LEFT), 2)
        lines.append(f'<line class="grid" x1="{at}" x2="{at}" y1="{TOP}" y2="{bottom}"/>')
        lines.append(f'<text class="tick middle" x="{at}" y="{bottom + 21}">{text}</text>')
    for value, text in y.ticks():
        at = round(TOP + (1.0 - y.place(value)) * (bottom - TOP), 2)
        lines.append(f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{at}" y2="{at}"/>')
        lines.append(f'<text class="tick end" x="{LEFT - 7}" y="{at + 4}">{text}</text>')
    middle, across = (LEFT + right) / 2, (TOP + bottom) / 2
    lines += [
        f'<path class="axis" d="M{LEFT} {TOP}V{bottom}H{right}"/>',
        f'<text class="name middle" x="{middle}" y="{HEIGHT - 6}">{escape(x.label)}</text>',
        (
            f'<text class="name middle" transform="translate(20 {across}) rotate(-90)">'
            f"{escape(y.label)}</text>"
        ),
    ]
    return lines


def _legend(series: Sequence[Series]) -> list[str]:
    lines = []
    for number, one in enumerate(series):
        at, stroke = TOP + 20 + 24 * number, f"{LEFT + 14},{TOP + 14 + 24 * number}"
        lines.append(f'<polyline class="line {one.kind}" points="{stroke} {LEFT + 44},{at - 6}"/>')
        lines.append(f'<text class="tick" x="{LEFT + 52}" y="{at}">{escape(one.name)}</text>')
    return lines


def _step(rough: float) -> float:
    """Return 1, 2 or 5 times a power of ten, at least ``rough``."""
    if not 0.0 < rough < math.inf:
        return 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    return next(m * power for m in (1.0, 2.0, 5.0, 10.0) if m * power >= rough * (1.0 - 1e-9))


if TYPE_CHECKING:
    from jinja2 import Environment


FORMAT = "accountant-statement"
VERSION = 1
# Digits shown; the certificates have more.
DIGITS = 5
# Brackets narrower than this, relative to ε, are called exact.
EXACT = 1e-3
# An ε of a certificate that is larger by less, relatively, is called that of the summary.
AS_LARGE = 1e-8
NO_BOUND = "∞"


def to_json(statement: Contents) -> str:
    """Return everything unrounded; infinities are strings, because JSON has none."""
    values = {"format": FORMAT, "version": VERSION, "statement": json_value(statement.values())}
    return json.dumps(values, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def markdown(statement: Contents) -> str:
    """Return the statement as Markdown; words of the ledger are escaped."""
    return _environment(escape=False).get_template("statement.md.jinja").render(_view(statement))


def html(statement: Contents) -> str:
    """Return the statement as one page without other files; its script is optional."""
    style, script = (_text(f"statement.{kind}") for kind in ("css", "js"))
    drawn = _charts(statement)
    view = _view(statement, drawn["profile"].places) | {
        "style": style,
        "script": script,
        "style_hash": _digest(style),
        "script_hash": _digest(script),
        "charts": drawn,
    }
    return _environment(escape=True).get_template("statement.html").render(view)


def _view(statement: Contents, places: tuple[tuple[float, float], ...] = ()) -> dict[str, Any]:
    """Return the values that the templates use."""
    left = iter(places)
    rows = [
        vars(row) | {"place": next(left, None) if math.isfinite(row.epsilon) else None}
        for row in statement.table
    ]
    nearest = min(range(len(rows)), key=lambda k: abs(rows[k]["delta"] - statement.headline.delta))
    return {
        "s": statement,
        "rows": rows,
        "start": nearest,
        "answers": answers.summary(statement),
        "evaluation": answers.evaluation(statement),
        "proofs": facts.proofs(statement.theorems, statement.deployment.documentation),
        "steps_words": _steps_words(statement),
        "certify": answers.certify(statement),
        "larger": _larger_words(statement),
        "own": facts.of_analysis(statement.analysis),
        "question": facts.QUESTIONS.get(statement.relation, "what was released"),
    }


def _steps_words(statement: Contents) -> str:
    """Say whether ε over the releases is exact, or a bound."""
    delta = plain(statement.headline.delta)
    if not statement.attained:
        return (
            f"A certified upper bound on ε at δ = {delta} had the releases stopped early (solid),"
            " with the lower end of its bracket (dashed). Where they agree they are the ε of the"
            " worst case that the theorems state; whether data reach it is not known."
        )
    if all(step.epsilon - step.epsilon_lower <= EXACT * step.epsilon for step in statement.steps):
        return (
            f"Exact ε at δ = {delta} had the releases stopped early: the bounds from above and"
            " below agree to three digits at every point."
        )
    return (
        f"An upper bound on ε at δ = {delta} had the releases stopped early (solid), with a lower"
        " one (dashed). Where they differ the composition was not exact, and the truth is between"
        " them."
    )


def _larger_words(statement: Contents) -> str:
    """Say by how much the ε of the certificate is larger than that of the summary, if visibly."""
    if statement.certificate.larger <= AS_LARGE:
        return ""
    of = " of it" if statement.headline.epsilon > 0.0 else ""
    more = text_up(statement.certificate.larger, 2)
    return f"This is larger than the ε of the summary, by {more}{of}."


def _charts(statement: Contents) -> dict[str, Chart]:
    return {
        "profile": _profile(statement),
        "tradeoff": _tradeoff(statement),
        **({"steps": _steps(statement)} if statement.steps else {}),
    }


def _profile(statement: Contents) -> Chart:
    rows = [row for row in statement.table if math.isfinite(row.epsilon)]
    deltas = [row.delta for row in statement.table]
    ends = [f"at δ = {plain(row.delta)} ε is at most {up(row.epsilon)}" for row in rows]
    summary = f"{ends[0].capitalize()}, {ends[-1]}." if ends else "No finite ε is known."
    return line_chart(
        "profile",
        "ε over δ",
        f"Certified upper bound on ε for each δ; it grows as δ gets smaller. {summary}",
        Axis("δ", min(deltas) * 0.99, max(deltas) * 1.01, logarithmic=True, reverse=True),
        Axis("ε (nats)", 0.0, _top([row.epsilon for row in rows])),
        [
            Series("certified ε", [(row.delta, row.epsilon) for row in rows]),
            Series("lower bound", [(row.delta, row.epsilon_lower) for row in rows], "second"),
        ],
    )


def _steps(statement: Contents) -> Chart:
    points = [(float(step.releases), step.epsilon) for step in statement.steps]
    finite = [point for point in points if math.isfinite(point[1])]
    lower = [(float(step.releases), step.epsilon_lower) for step in statement.steps]
    delta = statement.headline.delta
    return line_chart(
        "steps",
        "ε over the releases",
        f"Certified upper bound on ε at δ = {plain(delta)} after each number of releases; it ends"
        f" at {up(points[-1][1])} after {statement.total}.",
        Axis("releases", 0.0, max(point[0] for point in points)),
        Axis(f"ε at δ = {plain(delta)} (nats)", 0.0, _top([y for _, y in finite])),
        [
            Series("certified ε", [(0.0, 0.0), *finite]),
            Series("lower bound", [(0.0, 0.0), *lower], "second"),
        ],
    )


def _tradeoff(statement: Contents) -> Chart:
    points = [(a.false_positive_rate, a.true_positive_rate) for a in statement.curve]
    one = statement.attacks[1]
    return line_chart(
        "tradeoff",
        "What the best attack can achieve",
        "Upper bound on the share of records found for each share of false alarms, with the"
        f" diagonal of blind guessing. At {one.false_positive_rate:.0%} false alarms no attack"
        f" finds more than {percent(one.true_positive_rate)}.",
        Axis("false alarms: share of unused records accused", 0.0, 1.0),
        Axis("hits: used records found", 0.0, 1.0),
        [
            Series("best possible attack, at most", points),
            Series("blind guessing", [(0.0, 0.0), (1.0, 1.0)], "second"),
        ],
    )


def _top(values: list[float]) -> float:
    return 1.05 * max(values, default=1.0) or 1.0


def up(value: float | None) -> str:
    """Write a number rounded up."""
    if value is None:
        return "–"
    return text_up(value, DIGITS) if value < math.inf else NO_BOUND


def down(value: float) -> str:
    """Write a number rounded down."""
    return text_down(value, DIGITS) if value < math.inf else NO_BOUND


_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_MARKUP = str.maketrans(_ENTITIES | {mark: "\\" + mark for mark in "\\`*_{}[]()#+-.!|~$"})


def _cell(text: object) -> str:
    """Escape text so that Markdown, and HTML within it, shows it unchanged."""
    return " ".join(str(text).split()).translate(_MARKUP)


def _text(name: str) -> str:
    return (files("accountant.report") / "templates" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@lru_cache(maxsize=2)
def _environment(escape: bool) -> Environment:
    try:
        from jinja2 import Environment, FunctionLoader, StrictUndefined
    except ImportError:
        raise UnsupportedError(
            "a report needs Jinja2, which is not installed; run: pip install jinja2"
        ) from None
    made = Environment(
        loader=FunctionLoader(_text),
        autoescape=escape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {"up": up, "down": down, "plain": plain, "percent": percent, "cell": _cell}
    return made

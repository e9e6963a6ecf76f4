"""Line charts as inline SVG, with a title and a description for readers who cannot see them.

Series differ in colour and in dashes, so they can be distinguished without colours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

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

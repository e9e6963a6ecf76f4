"""Axes, colours and dashes that all pictures share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from accountant.errors import UnsupportedError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# Okabe, Ito 2008: blue, vermillion, bluish green, reddish purple, orange, sky blue, black.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", "-.", ":", (0, (3, 1, 1, 1)), (0, (5, 1)), (0, (1, 1)))


def new_axes(given: Axes | None, height: float = 4.0) -> tuple[Figure, Axes]:
    """Return the caller's axes or new ones, with their figure."""
    if given is not None:
        figure: Any = given.get_figure()
        return figure, given
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise UnsupportedError(
            "plots need matplotlib, which is not installed; run: pip install 'dp-accountant[plot]'"
        ) from None
    # Without pyplot no window system is needed and no global figure remains.
    made = Figure(figsize=(6.4, height), layout="constrained")
    FigureCanvasAgg(made)
    return made, made.add_subplot()


def finish(figure: Figure, axes: Axes, lines: int) -> Figure:
    """Draw a grid, and a legend where there are several lines."""
    axes.grid(alpha=0.3)
    if lines > 1:
        axes.legend(fontsize=8)
    return figure


def style(number: int) -> dict[str, Any]:
    """Return the style of the line with this number, counted from 0."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "linestyle": DASHES[number % len(DASHES)],
        "linewidth": 1.8,
    }

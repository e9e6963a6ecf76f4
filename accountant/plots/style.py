"""How figures look, and figures saved to files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accountant._basics.arrays import FloatArray
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


if TYPE_CHECKING:
    from matplotlib.figure import Figure


def save(figure: Figure, path: Path) -> None:
    """Save a figure in the format that the name ends in.

    Raises
    ------
    UnsupportedError
        matplotlib cannot write that format.
    """
    try:
        figure.savefig(path, dpi=300)
    except ValueError as error:
        # matplotlib's own message names the formats that it can write.
        raise UnsupportedError(f"cannot save {path}: {error}") from None


def save_curve(path: Path, steps: Sequence[int], epsilons: Sequence[float], title: str) -> None:
    """Save ε over steps to ``path``, in the format its suffix names."""
    figure, axes = new_axes(None)
    axes.plot(steps, epsilons, marker="." if len(steps) <= 30 else "", **style(0))
    axes.set(xlabel="steps", ylabel="certified ε (nats, add-or-remove)", title=title)
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    finish(figure, axes, 1)
    save(figure, path)


def save_tradeoff(
    path: Path,
    *,
    observed: tuple[FloatArray, FloatArray],
    certified: tuple[FloatArray, FloatArray] | None,
    bounded: Sequence[tuple[float, float]],
    title: str,
) -> None:
    """Save an attack's observed error rates beside the curve that bounds every attack."""
    figure, axes = new_axes(None, 4.8)
    axes.plot(*observed, label="observed", **style(0))
    if certified is not None:
        axes.plot(*certified, label="certified: no test is below", **style(1))
    axes.plot(*zip(*bounded, strict=True), "x", label="upper confidence bounds", color=COLOURS[2])
    axes.set(xlabel="false-positive rate", ylabel="false-negative rate", title=title)
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.title.set_fontsize(9)
    finish(figure, axes, 3)
    save(figure, path)

"""Pictures that commands save to a file, in the format of its suffix."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from accountant._basics.arrays import FloatArray
from accountant.errors import UnsupportedError
from accountant.plots.style import COLOURS, finish, new_axes, style

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

"""Pictures of privacy spent, one call each. Needs matplotlib: the ``plot`` extra.

Every function returns a matplotlib ``Figure`` (save it with ``figure.savefig("name.png")``), or
draws into the caller's ``axes``. The colours of Okabe and Ito can be distinguished with any colour
vision, and lines also differ in their dashes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from accountant import calibration, checks
from accountant._basics.arrays import FloatArray
from accountant.errors import DomainError, UnsupportedError
from accountant.ledger import Accountant
from accountant.mechanisms import Mechanism

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "calibration_map",
    "epsilon_over_steps",
    "profile",
    "samplers",
    "save",
    "save_curve",
    "save_tradeoff",
    "tradeoff",
]


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


DELTAS = tuple(10.0**-k for k in range(2, 13))


def profile(
    *mechanisms: Mechanism,
    deltas: Sequence[float] = DELTAS,
    labels: Sequence[str] | None = None,
    axes: Axes | None = None,
) -> Figure:
    """Draw ε over δ, with the certified bracket as a band.

    Parameters
    ----------
    *mechanisms : Mechanism
        Mechanisms or compositions; at least one.
    deltas : sequence of float
        In (0, 1).
    labels : sequence of str, optional
        One for each mechanism; by default its ``repr``.
    axes : matplotlib Axes, optional
        Where to draw; else a new figure.

    Returns
    -------
    Figure
        ``ε (nats)`` over ``δ``, logarithmic and falling to the right.

    Notes
    -----
    *Guarantee.* Each line is :meth:`Mechanism.epsilon <accountant.Mechanism.epsilon>` and the band
    reaches down to the lower end of ``epsilon_bounds``; lines between points are not proved.

    Examples
    --------
    >>> import accountant as ac
    >>> figure = profile(ac.Gaussian(5.0), 1000 * ac.PoissonSampled(ac.Gaussian(1.1), 0.01))
    """
    names = _labels(mechanisms, labels)
    values = [float(delta) for delta in np.atleast_1d(checks.real(checks.TARGET_DELTA, deltas))]
    figure, drawn = new_axes(axes)
    for number, (mechanism, name) in enumerate(zip(mechanisms, names, strict=True)):
        brackets = [mechanism.epsilon_bounds(delta) for delta in values]
        upper = [float(bracket.upper) for bracket in brackets]
        marker = "." if len(values) < 30 else ""
        drawn.plot(values, upper, label=name, **style(number), marker=marker)
        drawn.fill_between(
            values,
            [float(bracket.lower) for bracket in brackets],
            upper,
            color=COLOURS[number % len(COLOURS)],
            alpha=0.2,
            linewidth=0.0,
        )
    drawn.set(xscale="log", xlabel="δ", ylabel="certified ε (nats)")
    drawn.invert_xaxis()
    return finish(figure, drawn, len(names))


def epsilon_over_steps(ledger: Accountant, delta: float, *, axes: Axes | None = None) -> Figure:
    """Draw ε after each release of a ledger: the tightest known, and by Rényi divergences alone.

    Parameters
    ----------
    ledger : Accountant
        With at least one release.
    delta : float
        In (0, 1).
    axes
        As in :func:`profile`.

    Returns
    -------
    Figure
        ``ε (nats)`` over ``releases``.

    Notes
    -----
    *Guarantee.* Each point by itself, for parameters fixed in advance (Theorem L8 of
    docs/theorems_ledger.md).

    Examples
    --------
    >>> import accountant as ac
    >>> ledger = ac.Accountant()
    >>> ledger.step(noise_multiplier=1.1, sampling_probability=0.01, count=100)
    >>> figure = epsilon_over_steps(ledger, 1e-5)
    """
    if not len(ledger):
        raise DomainError("the ledger must hold at least one release; it is empty")
    figure, drawn = new_axes(axes)
    # Exact after every release for Gaussian noise alone: the name must hold for all ledgers.
    names = {"tightest certified bound": None, "Rényi divergences": 0}
    for number, (name, checkpoints) in enumerate(names.items()):
        found = ledger.epsilon_over_steps(delta, checkpoints=checkpoints)
        drawn.plot(np.arange(1, len(found) + 1), found, label=name, **style(number))
    drawn.set(xlabel="releases", ylabel=f"ε at δ = {delta:g} (nats)")
    drawn.set_xlim(left=0)
    drawn.set_ylim(bottom=0)
    return finish(figure, drawn, len(names))


def tradeoff(
    *mechanisms: Mechanism,
    labels: Sequence[str] | None = None,
    points: int = 41,
    axes: Axes | None = None,
) -> Figure:
    """Draw what the best attack can achieve: hits over false alarms.

    Parameters
    ----------
    *mechanisms, labels, axes
        As in :func:`profile`.
    points : int
        Number of false-positive rates, from 0 to 1.

    Returns
    -------
    Figure
        ``true-positive rate, at most`` over ``false-positive rate``, with blind guessing.

    Notes
    -----
    *Guarantee.* At each point one minus :meth:`Mechanism.tradeoff <accountant.Mechanism.tradeoff>`:
    no attack finds more (docs/theorems_conversions.md, Theorem C16).

    Examples
    --------
    >>> import accountant as ac
    >>> figure = tradeoff(ac.Gaussian(2.0), points=5)
    """
    names = _labels(mechanisms, labels)
    figure, drawn = new_axes(axes)
    # Dense where the curve is steep.
    rates = np.linspace(0.0, 1.0, checks.integer("points", points, 2, 10_000)) ** 2
    for number, (mechanism, name) in enumerate(zip(mechanisms, names, strict=True)):
        found = [1.0 - mechanism.tradeoff(float(rate)) for rate in rates]
        drawn.plot(rates, found, label=name, **style(number))
    drawn.plot([0, 1], [0, 1], label="blind guessing", color="#555555", linestyle=":", linewidth=1)
    drawn.set(
        xlabel="false-positive rate (unused records accused)",
        ylabel="true-positive rate, at most (used records found)",
        xlim=(0, 1),
        ylim=(0, 1.02),
        aspect="equal",
    )
    return finish(figure, drawn, 2)


def calibration_map(
    epsilons: Sequence[float],
    delta: float,
    steps: int,
    *,
    probabilities: Sequence[float] = tuple(np.geomspace(1e-3, 1.0, 16).tolist()),
    axes: Axes | None = None,
) -> Figure:
    """Draw how much noise DP-SGD needs: σ over the sampling probability, a line for each target ε.

    Parameters
    ----------
    epsilons : sequence of float
        Target ε, in nats.
    delta : float
        In (0, 1).
    steps : int
        Number of steps.
    probabilities : sequence of float
        Sampling probabilities q, in (0, 1].
    axes
        As in :func:`profile`.

    Returns
    -------
    Figure
        ``noise multiplier σ`` over ``sampling probability q``, both logarithmic.

    Notes
    -----
    *Guarantee.* Each point is :func:`accountant.calibrate_sigma`: at it, ε is at most the target.

    Examples
    --------
    >>> figure = calibration_map([1.0, 3.0], 1e-5, 1000, probabilities=[0.01, 0.1])
    """
    if not len(epsilons):
        raise DomainError("epsilons must hold at least one target ε")
    figure, drawn = new_axes(axes)
    for number, epsilon in enumerate(epsilons):
        found = [calibration.calibrate_sigma(epsilon, delta, q, steps) for q in probabilities]
        drawn.plot(probabilities, found, label=f"ε = {epsilon:g}", **style(number), marker=".")
    drawn.set(
        xscale="log",
        yscale="log",
        xlabel="sampling probability q",
        ylabel="least noise multiplier σ",
        title=f"{steps} steps, δ = {delta:g}, Poisson sampling",
    )
    drawn.title.set_fontsize(9)
    return finish(figure, drawn, 2)


# Any: packages import only from layers below, and the table's package is above.
def samplers(table: Any, *, axes: Axes | None = None) -> Figure:
    """Draw the certified brackets of ε of one run under every sampler.

    Parameters
    ----------
    table : SamplerTable
        What :func:`accountant.compare_samplers` returned.
    axes
        As in :func:`profile`.

    Returns
    -------
    Figure
        One row for each sampler, with its relation; ``ε (nats)`` is logarithmic.

    Examples
    --------
    >>> import accountant as ac
    >>> names = ["poisson", "shuffled"]
    >>> table = ac.compare_samplers(
    ...     dataset_size=1000, batch_size=100, epochs=2, noise_multiplier=1.0, delta=1e-5,
    ...     samplers=names,
    ... )
    >>> figure = samplers(table)
    """
    names = [f"{row.sampler}\n({row.relation.words})" for row in table.rows]
    figure, drawn = new_axes(axes, 1.2 + 0.45 * len(names))
    rows, high = range(len(names), 0, -1), [row.upper for row in table.rows]
    low = [row.lower for row in table.rows]
    drawn.hlines(rows, low, high, linewidth=4, alpha=0.5, color=COLOURS[0])
    drawn.plot(high, rows, "|", markersize=12, color=COLOURS[0])
    drawn.set_yticks(rows, names, fontsize=8)
    drawn.set(xlabel="certified bracket of ε (nats)", xscale="log")
    # 4 and 20 rather than 4·10⁰ and 2·10¹; not every tick within a decade.
    drawn.xaxis.set_major_formatter("{x:g}")
    drawn.xaxis.set_minor_formatter(lambda x, _: f"{x:g}" if f"{x:e}"[0] in "25" else "")
    drawn.grid(axis="x", alpha=0.3)
    title = f"n = {table.dataset_size}, batch = {table.batch_size}, epochs = {table.epochs}"
    drawn.set(title=f"{title}, σ = {table.noise_multiplier:g}, δ = {table.delta:g}")
    drawn.title.set_fontsize(9)
    return figure


def _labels(mechanisms: Sequence[Mechanism], labels: Sequence[str] | None) -> list[str]:
    if not mechanisms:
        raise DomainError("give at least one mechanism, such as Gaussian(1.1)")
    relations = {mechanism.relation for mechanism in mechanisms}
    found = [f"{mechanism!r:.60}" for mechanism in mechanisms] if labels is None else list(labels)
    if len(found) != len(mechanisms):
        raise DomainError(f"labels must be one for each mechanism: {len(mechanisms)}")
    # Rows of different relations answer different questions, so each states its relation.
    ends = [f" ({one.relation.words})" if len(relations) > 1 else "" for one in mechanisms]
    return [name + end for name, end in zip(found, ends, strict=True)]

"""Make the pictures of docs/how_it_works.md: the line, the integrand on it, and the sum.

Plain NumPy, a page of it, and no line of the library's numerics: what is drawn is the formula of
Theorem 1. Only the bracket that the sum is compared with comes from the library.
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import accountant as ac

FIGURES = Path(__file__).parent / "figures"
Q, SIGMA, STEPS, EPSILON = 0.01, 1.0, 1000, 1.5
BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"  # Okabe and Ito

X = np.linspace(-12.0 * SIGMA, 24.0 * SIGMA, 4001)
NOISE = np.exp(-0.5 * (X / SIGMA) ** 2) / (SIGMA * np.sqrt(2.0 * np.pi)) * (X[1] - X[0])
LOSS = np.log1p(Q * np.expm1((2.0 * X - 1.0) / (2.0 * SIGMA**2)))


def log_transform(s):
    """Return log E[exp(s L)] of one step at complex orders s."""
    return np.log(np.array([np.sum(NOISE * np.exp(order * LOSS)) for order in np.ravel(s)]))


def integrand(s):
    """Return A(s)^n e^{-ε(s-1)} / (s (s - 1))."""
    s = np.ravel(s)
    return np.exp(STEPS * log_transform(s) - EPSILON * (s - 1.0)) / (s * (s - 1.0))


def log10_size(s):
    """Return log₁₀ of the integrand's size, which itself may be beyond the doubles."""
    s = np.ravel(s)
    exponent = STEPS * log_transform(s).real - EPSILON * (s.real - 1.0)
    return exponent / np.log(10.0) - np.log10(np.abs(s * (s - 1.0)))


def saddle():
    """Return the order above 1 at which the integrand is smallest on the real axis."""
    orders = np.linspace(1.5, 9.0, 1501)
    return orders[np.argmin(integrand(orders))]


def trapezoid(order, spacing, points):
    """Return partial sums of the trapezoid rule on the line through ``order``."""
    y = spacing * np.arange(points)
    values = integrand(order + 1j * y).real
    values[0] *= 0.5
    return np.cumsum(values) * spacing / np.pi


def draw_plane(axes, order):
    """Draw the size of the integrand over the complex plane, the poles and the line."""
    re, im = np.linspace(-1.02, 11.0, 132), np.linspace(-6.0, 6.0, 98)
    plane = re[None, :] + 1j * im[:, None]
    size = np.clip(log10_size(plane).reshape(plane.shape), -12.0, 2.0)
    drawn = axes.contourf(re, im, size, levels=np.arange(-10.0, 1.5, 1.0), cmap="cividis",
                          extend="both")  # fmt: skip
    axes.figure.colorbar(drawn, ax=axes, label="log₁₀ |integrand|")
    axes.plot([0.0, 1.0], [0.0, 0.0], "x", color=RED, markersize=9, markeredgewidth=2)
    axes.axvline(order, color="white", linewidth=2)
    axes.plot([order], [0.0], "o", color="white")
    axes.annotate("poles", (1.0, 0.0), (-0.6, 1.4), color="white")
    axes.annotate("the line", (order, 4.5), (order + 0.2, 4.6), color="white")
    axes.set(xlabel="Re s", ylabel="Im s", title="A pass between two heights")


def draw_line(axes, order, spacing):
    """Draw the real part of the integrand along the line, and the points that are summed."""
    y = np.linspace(0.0, 4.0, 801)
    axes.plot(y, integrand(order + 1j * y).real, color=BLUE, label="real part")
    axes.plot(y, np.abs(integrand(order + 1j * y)), "--", color=ORANGE, label="size")
    points = spacing * np.arange(1 + int(4.0 / spacing))
    axes.plot(points, integrand(order + 1j * points).real, "o", color=GREEN, label="summed")
    axes.set(xlabel="distance y from the real axis", title="Along the line: a bell")
    axes.legend()


def draw_sums(axes, order, truth):
    """Draw how far sums with several spacings are above the truth."""
    for spacing, style in ((1.1, "^-"), (0.7, "s--"), (0.4, "o:")):
        error = trapezoid(order, spacing, 32) - truth
        axes.semilogy(1 + np.arange(32), np.abs(error) / truth, style, label=f"dy = {spacing}")
    axes.set(xlabel="points summed", ylabel="|sum − δ| / δ", ylim=(1e-9, 3),
             title="Few points are enough")  # fmt: skip
    axes.legend()


def draw_aliases(axes, order, truth):
    """Draw the error of the full sum over the spacing: it has one sign."""
    spacings = np.linspace(0.6, 2.2, 33)
    errors = [trapezoid(order, dy, 60)[-1] / truth - 1.0 for dy in spacings]
    axes.axhline(0.0, color="black", linewidth=1)
    axes.plot(spacings, errors, "o-", color=BLUE, markersize=4)
    axes.set_yscale("symlog", linthresh=1e-9)
    axes.set(xlabel="spacing dy", ylabel="(sum − δ) / δ", title="Too wide a spacing errs upwards")


def figures():
    """Yield names and figures."""
    run = STEPS * ac.PoissonSampled(ac.Gaussian(SIGMA), Q)
    truth = run.delta_bounds(EPSILON).lower  # remove is the larger direction here
    order = saddle()
    for name, (left, right) in {
        "contour_line": (
            lambda axes: draw_plane(axes, order),
            lambda axes: draw_line(axes, order, 0.7),
        ),
        "contour_sum": (
            lambda axes: draw_sums(axes, order, truth),
            lambda axes: draw_aliases(axes, order, truth),
        ),
    }.items():
        figure = Figure(figsize=(11.0, 4.2), layout="constrained")
        axes = figure.subplots(1, 2)
        left(axes[0])
        right(axes[1])
        yield name, figure


if __name__ == "__main__":
    for name, figure in figures():
        figure.savefig(FIGURES / f"{name}.png", dpi=300)

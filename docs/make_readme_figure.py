"""Make the picture of the README: one training run, four accounts of it."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import accountant as ac
from accountant.analyses.gdp import clt_epsilon_approximation
from accountant.conversions import rdp_to_epsilon

Q, SIGMA, DELTA = 256 / 60_000, 1.0, 1e-5
COUNTS = np.unique(np.geomspace(10, 3000, 36).astype(int))
BLUE, ORANGE, RED, GREY = "#0072B2", "#E69F00", "#D55E00", "#555555"  # Okabe and Ito


def by_renyi(steps, form):
    """Return ε by the conversion ``form`` of the run's Rényi curve."""
    return rdp_to_epsilon(lambda order: ac.get_rdp(Q, SIGMA, steps, order), DELTA, form=form)


def figure():
    """Draw ε over steps."""
    made = Figure(figsize=(7.2, 3.8), layout="constrained")
    axes = made.subplots()
    counts = [int(count) for count in COUNTS]
    lines = {
        "Rényi divergences, converted as in 2017": (":", RED, lambda n: by_renyi(n, "mironov")),
        "Rényi divergences, converted optimally": ("--", ORANGE, lambda n: by_renyi(n, "asoodeh")),
        "exact: this library's certified bound": (
            "-", BLUE, lambda n: ac.get_epsilon(Q, SIGMA, n, DELTA),
        ),
        "central limit (GDP): below the truth": (
            "-.", GREY, lambda n: clt_epsilon_approximation(Q, SIGMA, n, DELTA),
        ),
    }  # fmt: skip
    for label, (dashes, colour, epsilon) in lines.items():
        axes.plot(counts, [epsilon(n) for n in counts], dashes, color=colour, label=label,
                  linewidth=2.5 if dashes == "-" else 1.8)  # fmt: skip
    axes.set(xlabel="steps", ylabel="ε at δ = 1e-5", ylim=(0.0, None), xlim=(0, 3000),
             title="DP-SGD: 60,000 records, batches of 256, σ = 1")  # fmt: skip
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right", fontsize=9)
    return made


if __name__ == "__main__":
    figure().savefig(Path(__file__).parent / "figures" / "four_accounts.png", dpi=300)

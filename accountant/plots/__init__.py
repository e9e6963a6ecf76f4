"""Pictures of privacy spent, one line each. Needs matplotlib: the ``plot`` extra.

Every function returns a matplotlib ``Figure`` (save it with ``figure.savefig("name.png")``), or
draws into the caller's ``axes``. Colours are those of Okabe and Ito, which people with any colour
vision tell apart, and lines differ in their dashes as well.
"""

from accountant.plots.pictures import (
    calibration_map,
    epsilon_over_steps,
    profile,
    samplers,
    tradeoff,
)
from accountant.plots.saved import save, save_curve, save_tradeoff

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

"""Pictures of privacy spent, one call each. Needs matplotlib: the ``plot`` extra.

Every function returns a matplotlib ``Figure`` (save it with ``figure.savefig("name.png")``), or
draws into the caller's ``axes``. The colours of Okabe and Ito can be distinguished with any colour
vision, and lines also differ in their dashes.
"""

from accountant.plots.pictures import (
    calibration_map,
    epsilon_over_steps,
    profile,
    samplers,
    save,
    save_curve,
    save_tradeoff,
    tradeoff,
)

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

"""SmartNoise SQL: the steps of its odometer as a composition."""

from __future__ import annotations

from typing import Any

from accountant.composition import Composition
from accountant.errors import UnsupportedError
from accountant.mechanisms import ApproximateDP


def from_odometer(source: Any) -> Composition:
    """Return what a reader of SmartNoise SQL spent, one ``ApproximateDP`` a step.

    Parameters
    ----------
    source : PrivateReader or OdometerHeterogeneous
        Its ``odometer``, or the odometer itself.

    Returns
    -------
    Composition
        Under add-or-remove; compose it with all else, and ask for ε at any δ.

    Raises
    ------
    UnsupportedError
        An ``Odometer``, whose total is far below the truth (for 10 steps of (0.05, 0.2) it states
        (0.169, 0.196), and δ(0.169) is above 0.89) and which does not list its steps. Gaussian
        noise: a step's δ pays for the noise, and the threshold, set by the formula of Laplace
        noise, takes more. No step at all.

    Notes
    -----
    *Guarantee.* That of each step, taken on trust: SmartNoise computes a covariance from values
    that it does not clip (smartnoise-sdk #622).
    """
    odometer = getattr(source, "odometer", source)
    steps = getattr(odometer, "steps", None)
    if steps is None:
        raise UnsupportedError(
            f"a {type(odometer).__name__} does not list its steps, and its total is below the"
            " truth; use OdometerHeterogeneous"
        )
    privacy = getattr(odometer, "privacy", None)
    chosen = getattr(getattr(privacy, "mechanisms", None), "map", {})
    if any("gauss" in getattr(kind, "name", str(kind)) for kind in chosen.values()):
        raise UnsupportedError(
            "Gaussian noise of SmartNoise is refused: the δ of a step pays for the noise alone, and"
            " the threshold of rare groups is set by the formula of Laplace noise"
        )
    if not steps:
        raise UnsupportedError("the odometer has no step: nothing was spent by it")
    return Composition(
        tuple((ApproximateDP(float(epsilon), delta=float(delta)), 1) for epsilon, delta in steps)
    )

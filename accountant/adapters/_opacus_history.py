"""Steps as opacus writes them."""

from __future__ import annotations

from accountant.errors import UnsupportedError
from accountant.mechanisms import ApproximateDP, Gaussian, Mechanism
from accountant.sampling.poisson import PoissonSampled


def row(mechanism: Mechanism) -> tuple[float, float] | None:
    """Return the noise multiplier and the rate of a step as :meth:`step` records it."""
    if not isinstance(mechanism, PoissonSampled):
        return None
    release, rate = mechanism.mechanism, mechanism.sampling_probability
    if isinstance(release, Gaussian) and release == Gaussian(release.noise_multiplier):
        return release.noise_multiplier, rate
    return (0.0, rate) if release == ApproximateDP(0.0, delta=1.0) else None


def parameters(mechanism: Mechanism) -> tuple[float, float]:
    """Return the noise multiplier and the rate of a step."""
    found = row(mechanism)
    if found is None:
        raise UnsupportedError(
            f"the ledger holds {mechanism!r:.80}, which opacus' history of (noise multiplier,"
            " sampling rate, steps) cannot say. get_epsilon counts it; the records are in"
            " ledger.history, and state_dict keeps them"
        )
    return found

"""Steps as opacus writes them, and what a loaded history may not forget."""

from __future__ import annotations

from collections.abc import Sequence

from accountant.errors import DomainError, UnsupportedError
from accountant.ledger import Entry
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


def refuse_forgetting(recorded: Sequence[Entry], loaded: Sequence[Entry]) -> None:
    """Refuse a loaded history that does not begin with what is recorded."""
    for place, item in enumerate(recorded):
        found = loaded[place] if place < len(loaded) else None
        more = 0 if found is None else found.count - item.count
        last = place == len(recorded) - 1
        if found is None or found.mechanism != item.mechanism or more < 0 or (more and not last):
            raise DomainError(
                f"state_dict must continue the {sum(each.count for each in recorded)} steps"
                " recorded here; it does not hold them. What was released stays released: load a"
                " checkpoint into a new PrivacyEngine, and merge the ledgers of runs on the same"
                " records"
            )

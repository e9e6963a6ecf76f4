"""The libraries under comparison, each behind one plain function.

An :class:`Engine` names a library and how to load it. Loading imports the library, so it only
happens inside a worker process, and a library that is not there costs nothing but a note.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Engine:
    """A function of some library that the benchmark can call.

    Parameters
    ----------
    name : str
        Short name, used in tables and on the command line.
    module : str
        Import name of the library.
    distribution : str
        Name of the installed distribution, for its version.
    load : callable
        Imports the library and returns the function to measure.
    warm_up : tuple
        Cheap arguments for one call before anything is timed.
    vary : int
        Index of the argument that is nudged by parts in 1e12 between repeats, so that
        no memoised answer is timed.
    """

    name: str
    module: str
    distribution: str
    load: Callable[[], Callable[..., Any]]
    warm_up: tuple
    vary: int

    def version(self) -> str | None:
        """Return the installed version, or None if the library is not there."""
        try:
            return importlib.metadata.version(self.distribution)
        except importlib.metadata.PackageNotFoundError:
            return "(unknown version)" if importlib.util.find_spec(self.module) else None


# --- epsilon: f(q, sigma, steps, delta) -------------------------------------------------


def _load_ours() -> Callable[..., float]:
    import accountant as ac

    return ac.get_epsilon


def _load_ours_rdp() -> Callable[..., float]:
    import accountant as ac

    return lambda q, sigma, steps, delta: ac.get_epsilon(q, sigma, steps, delta, method="rdp")


def _load_ours_bounds() -> Callable[..., tuple[float, float]]:
    import accountant as ac

    def bounds(q: float, sigma: float, steps: int, delta: float) -> tuple[float, float]:
        found = ac.epsilon_bounds(q, sigma, steps, delta)
        return float(found.lower), float(found.upper)

    return bounds


def _dp_accounting_event(q: float, sigma: float, steps: int) -> Any:
    import dp_accounting

    event = dp_accounting.GaussianDpEvent(sigma)
    if q < 1.0:
        event = dp_accounting.PoissonSampledDpEvent(q, event)
    return dp_accounting.SelfComposedDpEvent(event, steps)


def _load_dp_pld() -> Callable[..., float]:
    from dp_accounting.pld import PLDAccountant

    def epsilon(q: float, sigma: float, steps: int, delta: float) -> float:
        return PLDAccountant().compose(_dp_accounting_event(q, sigma, steps)).get_epsilon(delta)

    return epsilon


def _load_dp_rdp() -> Callable[..., float]:
    from dp_accounting.rdp import RdpAccountant

    def epsilon(q: float, sigma: float, steps: int, delta: float) -> float:
        return RdpAccountant().compose(_dp_accounting_event(q, sigma, steps)).get_epsilon(delta)

    return epsilon


def _load_opacus_prv() -> Callable[..., float]:
    from opacus.accountants import PRVAccountant

    def epsilon(q: float, sigma: float, steps: int, delta: float) -> float:
        accountant = PRVAccountant()
        accountant.history = [(sigma, q, steps)]
        return accountant.get_epsilon(delta)

    return epsilon


def _load_opacus_rdp() -> Callable[..., float]:
    from opacus.accountants import RDPAccountant

    def epsilon(q: float, sigma: float, steps: int, delta: float) -> float:
        accountant = RDPAccountant()
        accountant.history = [(sigma, q, steps)]
        return accountant.get_epsilon(delta)

    return epsilon


def _load_prv_accountant() -> Callable[..., float]:
    from prv_accountant.dpsgd import DPSGDAccountant

    def epsilon(q: float, sigma: float, steps: int, delta: float) -> float:
        accountant = DPSGDAccountant(
            noise_multiplier=sigma,
            sampling_probability=q,
            max_steps=steps,
            delta_error=delta / 1000,  # as its documentation advises
        )
        return accountant.compute_epsilon(delta, steps)[2]  # lower, estimate, upper

    return epsilon


# --- sigma: f(target_eps, delta, q, steps) ----------------------------------------------


def _load_ours_calibrate() -> Callable[..., float]:
    import accountant as ac

    return lambda eps, delta, q, steps: ac.calibrate_sigma(eps, delta=delta, q=q, steps=steps)


def _load_opacus_calibrate() -> Callable[..., float]:
    from opacus.accountants.utils import get_noise_multiplier

    def calibrate(target_eps: float, delta: float, q: float, steps: int) -> float:
        return get_noise_multiplier(
            target_epsilon=target_eps,
            target_delta=delta,
            sample_rate=q,
            steps=steps,
            accountant="prv",
        )

    return calibrate


_EPS = {"warm_up": (0.01, 2.0, 10, 1e-5), "vary": 1}
_SIGMA = {"warm_up": (3.0, 1e-5, 0.01, 10), "vary": 0}
_OURS = ("accountant", "accountant")
_DP = ("dp_accounting", "dp-accounting")
_OPACUS = ("opacus", "opacus")

OURS = Engine("ours", *_OURS, _load_ours, **_EPS)
OURS_RDP = Engine("ours-rdp", *_OURS, _load_ours_rdp, **_EPS)
OURS_BOUNDS = Engine("ours-bounds", *_OURS, _load_ours_bounds, **_EPS)
OURS_CALIBRATE = Engine("ours-calibrate", *_OURS, _load_ours_calibrate, **_SIGMA)
OPACUS_CALIBRATE = Engine("opacus-calibrate", *_OPACUS, _load_opacus_calibrate, **_SIGMA)

PEERS: dict[str, Engine] = {
    engine.name: engine
    for engine in (
        Engine("dp-pld", *_DP, _load_dp_pld, **_EPS),
        Engine("opacus-prv", *_OPACUS, _load_opacus_prv, **_EPS),
        Engine("prv-accountant", "prv_accountant", "prv-accountant", _load_prv_accountant, **_EPS),
        Engine("dp-rdp", *_DP, _load_dp_rdp, **_EPS),
        Engine("opacus-rdp", *_OPACUS, _load_opacus_rdp, **_EPS),
    )
}
RDP_PEERS = ("dp-rdp", "opacus-rdp")
ENGINES: dict[str, Engine] = PEERS | {
    engine.name: engine
    for engine in (OURS, OURS_RDP, OURS_BOUNDS, OURS_CALIBRATE, OPACUS_CALIBRATE)
}

"""Apple's pfl: an accountant for its mechanisms. Needs pfl 0.6.

:class:`ExactPrivacyAccountant` goes where ``pfl.privacy.PLDPrivacyAccountant`` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pfl.privacy.privacy_accountant import PrivacyAccountant

from accountant import checks
from accountant.calibration.any_mechanism import calibrate
from accountant.errors import DomainError, UnsupportedError
from accountant.mechanisms import Gaussian, Laplace, Mechanism
from accountant.sampling import PoissonSampled

__all__ = ["ExactPrivacyAccountant"]

_NOISES = {"gaussian": Gaussian, "laplace": Laplace}


@dataclass
class ExactPrivacyAccountant(PrivacyAccountant):  # type: ignore[misc]
    """Finds the one of ε, δ and noise that is not given; checks them where all three are.

    Parameters
    ----------
    num_compositions, sampling_probability, mechanism, epsilon, delta, noise_parameter
        As in pfl: noise of sensitivity one, on Poisson samples of users.
    noise_scale : float
        1: other values simulate larger populations, and their noise is less than what is counted.

    Notes
    -----
    *Guarantee.* ε and δ are never too small, and the noise is never too little, under add-or-remove
    (Theorems M3, M5, M6 and E2).
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        this: Any = self  # pfl's fields have types of their own
        checks.choice("mechanism", this.mechanism, tuple(_NOISES))
        if this.noise_scale != 1.0:
            raise UnsupportedError(
                f"noise_scale must be 1; got {this.noise_scale}. It adds less noise than is counted"
            )
        if this.noise_parameter is None:
            assert this.epsilon is not None
            this.noise_parameter = float(
                calibrate(this._run, epsilon=this.epsilon, delta=this.delta, precision=1e-6)
            )
            return
        run = this._run(this.noise_parameter)
        if this.epsilon is None:
            this.epsilon = run.epsilon(this.delta)
        elif this.delta is None:
            this.delta = run.delta(this.epsilon)
        elif not run.epsilon(this.delta) <= this.epsilon:
            raise DomainError(
                f"epsilon must be at least {run.epsilon(this.delta)} at delta={this.delta} with"
                f" this noise; got {this.epsilon}"
            )

    def _run(self, noise: float) -> Mechanism:
        this: Any = self
        one, rate = _NOISES[this.mechanism](noise), float(this.sampling_probability)
        return int(this.num_compositions) * (PoissonSampled(one, rate) if rate < 1.0 else one)

"""Apple's pfl: an accountant for its mechanisms. Needs pfl 0.6.

:class:`ExactPrivacyAccountant` goes where ``pfl.privacy.PLDPrivacyAccountant`` does.
"""

from __future__ import annotations

from dataclasses import dataclass

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
        checks.choice("mechanism", self.mechanism, tuple(_NOISES))
        if self.noise_scale != 1.0:
            raise UnsupportedError(
                f"noise_scale must be 1; got {self.noise_scale}. It adds less noise than is counted"
            )
        if self.noise_parameter is None:
            assert self.epsilon is not None
            self.noise_parameter = float(
                calibrate(self._run, epsilon=self.epsilon, delta=self.delta, precision=1e-6)
            )
            return
        run = self._run(self.noise_parameter)
        if self.epsilon is None:
            self.epsilon = run.epsilon(self.delta)
        elif self.delta is None:
            self.delta = run.delta(self.epsilon)
        elif not run.epsilon(self.delta) <= self.epsilon:
            raise DomainError(
                f"epsilon must be at least {run.epsilon(self.delta)} at delta={self.delta} with"
                f" this noise; got {self.epsilon}"
            )

    def _run(self, noise: float) -> Mechanism:
        one = _NOISES[self.mechanism](noise)
        rate = self.sampling_probability
        return self.num_compositions * (PoissonSampled(one, rate) if rate < 1.0 else one)

"""The account of DP-SGD's steps, and the ledger that a release is charged to."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from accountant.calibration import calibrate_sigma
from accountant.calibration.any_mechanism import calibrate
from accountant.errors import AccountantError, ArgumentTypeError
from accountant.ledger import Accountant
from accountant.ledger.closed import HoldsLedger
from accountant.mechanisms import ApproximateDP, DiscreteGaussianVector, Gaussian
from accountant.mechanisms.base import Mechanism
from accountant.noise import SecureGenerator
from accountant.sampling import PoissonSampled

# What a charge says of a generator that is a subclass: nobody knows what it draws.
UNKNOWN = "not private: drawn by a generator of the caller's own"


def step_mechanism(noise: str, noise_multiplier: float, sampling_probability: float) -> Mechanism:
    """Return one step: a noisy sum over a Poisson sample, or over all records."""
    if noise_multiplier == 0.0:
        return ApproximateDP(0.0, delta=1.0)  # no guarantee at all
    law = Gaussian if noise == "gaussian" else DiscreteGaussianVector
    step = law(noise_multiplier)
    return step if sampling_probability == 1.0 else PoissonSampled(step, sampling_probability)


def calibrated_noise_multiplier(
    noise: str, epsilon: float, delta: float, sampling_probability: float, steps: int
) -> float:
    """Return the least noise multiplier with which ``steps`` steps stay within ``epsilon``."""
    gaussian = calibrate_sigma(epsilon, delta, sampling_probability, steps)
    if noise == "gaussian":
        return gaussian
    # Rounded to integers, as much noise costs a little more.
    return calibrate(
        lambda multiplier: steps * step_mechanism(noise, multiplier, sampling_probability),
        epsilon=epsilon,
        delta=delta,
        start=gaussian,
    )


def as_ledger(ledger: object) -> Accountant:
    """Return the ledger given to a trainer, or a new one."""
    if ledger is None:
        return Accountant()
    if isinstance(ledger, Accountant):
        return ledger
    raise ArgumentTypeError(
        f"ledger must be an Accountant or None; got a {type(ledger).__name__}. For a budget give"
        " Accountant(Budget(epsilon, delta))"
    )


def marked(label: str, generator: SecureGenerator) -> str:
    """Return the label of a charge; that of seeded noise says so, and statements show it."""
    return f"{label}; {generator.why_not_private or UNKNOWN}" if generator.seeded else label


def charged(
    ledger: object, mechanisms: tuple[Mechanism, ...], label: str, generator: SecureGenerator
) -> Accountant:
    """Charge a release of several parts to the ledger given, or to a new one; return that ledger.

    All parts are recorded or, where the ledger refuses one, none. ``generator`` draws the noise.
    """
    book, parts = as_ledger(ledger), Accountant()
    for mechanism in mechanisms:
        parts.compose(mechanism, label=marked(label, generator))
    book.merge(parts)
    return book


@dataclass(frozen=True, eq=False, kw_only=True)
class Released(HoldsLedger):
    """What every release that was charged to a ledger comes with.

    Attributes
    ----------
    ledger : Accountant
        The ledger given, or the run's own, with the release charged.
    delta : float
        Where ε is reported.
    run_epsilon : float
        The ε of this release alone, at ``delta``.
    private : bool
        False when the noise came from a known seed; then there is no guarantee at all.
    epsilon : float
        The ε at ``delta`` of everything in the ledger when the run ended.
    """

    ledger: Accountant
    delta: float
    run_epsilon: float
    private: bool
    epsilon: float = field(init=False)

    def _charged(self) -> int:
        """Return how many releases the ledger was charged for; 0 where it is to be asked anyway."""
        return 1

    def __post_init__(self) -> None:
        spent = self.run_epsilon
        if len(self.ledger) != self._charged():  # it holds others
            spent = epsilon_held(self.ledger, self.delta)
        object.__setattr__(self, "epsilon", spent)


def count_charged(ledger: Accountant, mechanism: Mechanism, label: str) -> int:
    """Return how many releases of ``mechanism`` the ledger holds under ``label``."""
    return sum(
        entry.count
        for entry in ledger.history
        if entry.label == label and entry.mechanism == mechanism
    )


def epsilon_held(ledger: Accountant, delta: float) -> float:
    """Return the certified ε of everything in the ledger; infinite where none is certified."""
    try:
        return ledger.epsilon(delta)
    except AccountantError:
        # What was recorded has been released; its cost may be beyond proof, but it is not nothing.
        return math.inf

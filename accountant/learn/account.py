"""The account of DP-SGD's steps, the ledger they are charged to, and what its budget can pay."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from accountant import checks
from accountant._basics.display import text_down, text_up
from accountant.calibration import calibrate_sigma
from accountant.calibration.any_mechanism import calibrate
from accountant.errors import AccountantError, BudgetExceeded, UnsupportedError
from accountant.ledger import Accountant, Budget
from accountant.ledger.history import HoldsLedger
from accountant.mechanisms import ApproximateDP, DiscreteGaussianVector, Gaussian
from accountant.mechanisms.base import Mechanism
from accountant.noise import SecureGenerator
from accountant.sampling import PoissonSampled
from accountant.search import narrow

T = TypeVar("T")
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
    advice = "For a budget give Accountant(Budget(epsilon, delta))"
    given = Accountant() if ledger is None else ledger
    return checks.instance("ledger", given, Accountant, "an Accountant or None", advice)


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


def unless_refused(ask: Callable[[], T], otherwise: T) -> T:
    """Return an answer, or what stands for it where the accountant has none."""
    try:
        return ask()
    except AccountantError:
        return otherwise


def epsilon_held(ledger: Accountant, delta: float) -> float:
    """Return the certified ε of everything in the ledger; infinite where none is certified.

    What was recorded has been released; its cost may be beyond proof, but it is not nothing.
    """
    return unless_refused(lambda: ledger.epsilon(delta), math.inf)


# No larger noise multiplier is suggested where a run does not fit: nobody would use it.
_MOST_NOISE = 2.0**20
_HALVINGS = 7  # They find what would fit to a hundredth, which a message says.


def affordable_steps(
    ledger: Accountant, step: Mechanism, wanted: int | None, label: str | None = None
) -> int:
    """Return how many of the steps wanted a ledger will admit: all of them or none.

    ``None`` wants as many as the budget allows. A run that its filter would not admit is planned
    (:meth:`Accountant.plan`) where it is the ledger's first; what the filter admits is charged as
    it is made, so that a run that stops early has cost no more than its steps.
    """
    fresh = ledger.budget is not None and not ledger.counts
    try:
        if wanted is not None:
            ledger.require(step, wanted)
            return wanted
        admitted = ledger.affordable(step)
    except BudgetExceeded:
        admitted = 0
    except UnsupportedError:
        if not fresh:
            raise
        admitted = 0  # the filter cannot charge such a step, but a plan may hold it
    if not fresh:
        return admitted
    held = sum(item.count for item in ledger.planned if item.mechanism == step)
    try:
        if wanted is not None:
            ledger.plan(step, max(wanted - held, 1), label)
            ledger.require(step, wanted)
            return wanted
        more = 0 if held else ledger.affordable(step, planned=True)
        return ledger.plan(step, more, label) if more > admitted else admitted
    except BudgetExceeded:
        return 0
    except UnsupportedError:
        if not ledger.counts:
            raise
        return 0  # another thread has made a release meanwhile


def require_a_step(
    ledger: Accountant, step: Mechanism, multiplier: float, q: float, *, plan: bool
) -> None:
    """Before the first Gaussian step of a ledger, refuse a run of which not one step fits.

    With ``plan``, as many steps as fit are planned where its filter allows fewer.
    """
    if ledger.budget is None or ledger.counts or ledger.planned or multiplier == 0.0:
        return
    if not (affordable_steps(ledger, step, None) if plan else ledger.affordable(step)):
        raise BudgetExceeded(unaffordable(ledger, "gaussian", multiplier, q, None, None))


def unaffordable(
    ledger: Accountant,
    noise: str,
    multiplier: float,
    q: float,
    batch: float | None,
    steps: int | None,
) -> str:
    """Return why a run is refused: what it costs, what is left, and what would fit.

    Without ``batch``, the expected batch size, the rate alone is named.
    """
    budget = ledger.budget
    assert budget is not None
    count = 1 if steps is None else steps
    step = step_mechanism(noise, multiplier, q)
    what = "not one step of this run fits" if steps is None else f"{steps} steps do not fit"
    left = ledger.remaining()
    spent, limit = text_up(left.spent, 4), text_down(left.capacity, 4)

    def fit(sigma: float, rate: float) -> bool:
        return _fits(ledger, step_mechanism(noise, sigma, rate), count)

    fits = []
    sigma = _last(lambda s: fit(s, q), max(multiplier, 2.0**-4), 2.0, _MOST_NOISE)
    if sigma is not None:
        fits.append(f"noise_multiplier={text_up(sigma, 4)}")
    rate = None
    if q < 1.0 and multiplier > 0.0:
        rate = _last(lambda x: fit(multiplier, x), q, 0.5, q * 2.0**-20)
    if rate is not None:
        size = "" if batch is None else text_down(batch * (rate / q), 4)
        smaller = f" (expected_batch_size={size})" if size else ""
        fits.append(f"sampling_probability={text_down(rate, 4)}{smaller}")
    now = unless_refused(
        lambda: max(ledger.affordable(step), ledger.affordable(step, planned=True)), 0
    )
    if steps is not None and now:
        fits.append(f"steps={now}")
    cost = unless_refused(lambda: text_up((count * step).epsilon(budget.delta), 4), "inf")
    return (
        f"{what} {budget!r}: {'it costs' if count == 1 else 'they cost'}"
        f" ε = {cost} at its delta alone, and of {limit} ({left.unit})"
        f" the ledger has spent {spent};"
        f" {', or '.join(fits) if fits else 'no noise and no smaller batch'} would fit."
        " Nothing was charged, and no step was made"
    )


def _fits(ledger: Accountant, step: Mechanism, count: int) -> bool:
    def admitted() -> bool:
        ledger.require(step, count)
        return True

    if unless_refused(admitted, False):
        return True
    budget = ledger.budget
    if ledger.counts or ledger.planned or not isinstance(budget, Budget):
        return False
    spent = unless_refused(lambda: (count * step).epsilon(budget.delta), None)
    return spent is not None and bool(spent <= budget.epsilon)


def _last(fits: Callable[[float], bool], start: float, factor: float, end: float) -> float | None:
    """Return nearly the first number that fits on the way from ``start`` to ``end``, or None."""
    bad = good = start
    while not fits(good):
        bad, good = good, factor * good
        if (good > end) == (factor > 1.0):
            return None
    return narrow(fits, good, bad, _HALVINGS)[0]

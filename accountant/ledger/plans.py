"""What watches over a ledger: its plan by exact composition, and the budget's filter for the rest.

A plan is a menu of releases and caps, fixed before the first release. Within the caps anything may
be released in any order, or not at all: that is a post-processing of the whole menu (Theorem L12).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

from accountant import checks
from accountant._basics.display import text_down, text_up
from accountant.errors import AccountantError, BudgetExceeded, DomainError, UnsupportedError
from accountant.ledger import filters
from accountant.ledger.budget import Budget
from accountant.ledger.meters import Charges, Meter, Remaining
from accountant.mechanisms import Gaussian
from accountant.mechanisms.base import Mechanism
from accountant.sampling import PoissonSampled
from accountant.search import least

# The noise, the batch or the ε that would fit is at most this many times, or this part, of it.
MOST_FACTOR = 2.0**8
# It is narrowed by this many halvings, to one percent: a message shows three digits.
HALVINGS = 7
# A message asks what ε would be needed for no more kinds of releases, which would take seconds.
MOST_KINDS = 8


class Watch:
    """The meter of a ledger: the caps of its plan, and the filter of its budget."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._exact = filters.exact(budget)
        self._caps: dict[Mechanism, int] = {}
        self._left: dict[Mechanism, int] = {}
        self._rest: Meter | None = filters.meter(budget)
        self._unplanned = False
        # Read from a file: priced when the filter is first asked, which most readers never do.
        self._waiting: list[tuple[Mechanism, int]] = []

    # The plan

    def plan(self, menu: Charges, *, ask: bool = True) -> None:
        """Add releases to the plan, all or none; without asking where they were planned before."""
        caps = dict(self._caps)
        for mechanism, count in menu:
            caps[mechanism] = caps.get(mechanism, 0) + count
            if not (caps[mechanism] <= checks.MAX_COUNT):
                raise DomainError(f"count must keep a plan within 2**53; got {count}")
        if ask and not self._exact.admits(menu):
            raise BudgetExceeded(self._unaffordable(menu))
        self._exact.add(menu)
        self._caps, self._left = caps, dict(caps)
        self._rest = None  # what it may spend has changed

    def plannable(self, mechanism: Mechanism) -> int:
        """Return how many releases the plan could hold beside what it holds; at most 2**53."""
        most = checks.MAX_COUNT - self._caps.get(mechanism, 0)
        return min(self._exact.affordable(mechanism), most)

    def left(self, mechanism: Mechanism) -> int:
        """Return how many planned releases of a mechanism have not been made."""
        return self._left.get(mechanism, 0)

    # What meters do

    @property
    def quick(self) -> bool:
        """Whether the filter is sums alone."""
        return self._filter.quick

    def admits(self, charges: Charges) -> bool:
        """Tell whether charges are planned, and the filter admits the rest of them."""
        rest, _ = self._split(charges)
        return not rest or self._filter.admits(rest)

    def add(self, charges: Charges) -> None:
        """Add charges, without asking."""
        rest, left = self._split(charges)
        if rest:
            self._filter.add(rest)
            self._unplanned = True
        self._left = left

    def restore(self, charges: Charges) -> None:
        """Add charges that happened; what the filter cannot charge is refused when it is asked."""
        rest, self._left = self._split(charges)
        self._waiting += rest
        self._unplanned |= bool(rest)

    def affordable(self, mechanism: Mechanism) -> int:
        """Return how many more releases are admitted, planned or not."""
        left = self.left(mechanism)
        try:
            more = self._filter.affordable(mechanism)
        except UnsupportedError:
            if not left:
                raise
            more = 0  # the filter cannot charge it, but the plan holds it
        return min(left + more, checks.MAX_COUNT)

    def remaining(self) -> Remaining:
        """Describe what is left: beside a plan, of the exact ε while all releases are planned."""
        return (self._exact if self._caps and not self._unplanned else self._filter).remaining()

    def remaining_after(self, charges: Charges) -> Remaining:
        """Describe what the filter would have left after ``charges``, admitted or not."""
        return self._filter.remaining_after(self._split(charges)[0])

    def epsilon_after(self, charges: Charges) -> float:
        """Return about the least ε that would admit ``charges``; ρ or μ² of such a budget."""
        return self._filter.epsilon_after(self._split(charges)[0])

    @property
    def _filter(self) -> Meter:
        """The filter for what is not planned; the plan is charged in full (Theorem L12)."""
        if self._rest is None:
            # Kept once the plan is charged: what is raised meanwhile must not leave it uncharged.
            rest = filters.meter(self.budget)
            rest.reserve(tuple(self._caps.items()))
            self._rest = rest
        if self._waiting:
            self._rest.add(self._waiting)  # what it raises leaves them waiting, so nothing is free
            self._waiting = []
        return self._rest

    def _split(self, charges: Charges) -> tuple[list[tuple[Mechanism, int]], dict[Mechanism, int]]:
        """Return what is not planned of the charges, and what they leave of the plan."""
        if not self._left:
            return list(charges), self._left
        left, rest = dict(self._left), []
        for mechanism, count in charges:
            planned = min(count, left.get(mechanism, 0))
            if planned:
                left[mechanism] -= planned
            if count > planned:
                rest.append((mechanism, count - planned))
        return rest, left

    def _unaffordable(self, menu: Charges) -> str:
        more = ""
        if len(menu) == 1:
            more = f"; {self.plannable(menu[0][0])} would fit"
        names = filters.named(menu)
        return f"the plan of {names} would exceed {self.budget.words}{more}. Nothing was planned"


def allowances(watch: Watch, counts: Charges, mechanism: Mechanism) -> dict[str, int]:
    """Return how many releases each filter would allow after ``counts``, where it can say."""
    budget = watch.budget
    found = {} if counts else {"plan": watch.left(mechanism) + watch.plannable(mechanism)}
    for name in ("gaussian", "kinds", "moments", "renyi", "approximate", "pure", "zcdp", "gdp"):
        try:
            if budget.filter == name:
                found[name] = watch.affordable(mechanism)
            elif name != "kinds" and budget.delta > 0.0:  # a sum is its own account
                meter = filters.meter(Budget(budget.epsilon, budget.delta, filter=name))
                meter.add(counts)
                found[name] = meter.affordable(mechanism)
        except AccountantError:
            continue  # a filter that cannot charge this mechanism, or leaves nothing to spend
    return found


def refusal(watch: Watch, counts: Charges, charges: Charges) -> str:
    """Return the message of a refusal: the total in the budget's unit, and what fits instead."""
    said = f"{filters.named(charges)} would exceed the budget, {watch.budget.words}"
    if not watch.quick:
        return f"{said}. Nothing was recorded"
    total, why = totals(watch, counts, charges)
    said += f": {total}"
    if len(charges) == 1:
        mechanism, count = charges[0]
        said += f"; {_fitting(watch, counts, mechanism)}"
        if others := _instead(watch, mechanism, count):
            said += f"; {count} with {' or with '.join(others)}"
    return f"{said}. Nothing was recorded{why}"


def totals(watch: Watch, counts: Charges, charges: Charges) -> tuple[str, str]:
    """Return what the total would be, in the budget's unit; and the filter's own sum, if another.

    Both numbers have as many digits as tell them apart.
    """
    budget = watch.budget
    letter, limit = budget.limit
    epsilon, after = watch.epsilon_after(charges), watch.remaining_after(charges)
    if epsilon == math.inf:
        epsilon = _needed(budget, (*counts, *charges))
    if budget.filter == "gdp":
        epsilon = math.sqrt(epsilon)
    words = f"{after.unit}: {_apart(after.spent, after.capacity)}"
    if not epsilon < math.inf:
        return words, ""
    said = f"{letter} would be {_apart(max(epsilon, math.nextafter(limit, math.inf)), limit)}"
    alike = after.unit.startswith("ε") or budget.filter in ("pure", "zcdp", "gdp")
    return said, "" if alike else f'.\nThe filter "{budget.filter}" adds up {words}'


def _apart(total: float, limit: float) -> str:
    if not abs(total - limit) < math.inf:
        return f"{text_up(total, 4)}, and the limit is {text_down(limit, 4)}"
    apart = Decimal(total) - Decimal(limit)
    for digits in range(4, 18):
        spent, most = text_up(total, digits), text_down(limit, digits)
        if max(Decimal(spent) - Decimal(total), Decimal(limit) - Decimal(most)) <= apart / 2:
            break
    return f"{spent}, and the limit is {most}"


def _needed(budget: Budget, counts: Charges) -> float:
    """Return about the least ε with which a budget like this one would allow all; inf for none.

    The prices of moments depend on ε, so this asks budgets; for a few kinds of releases only.
    """
    if budget.filter != "moments" or len(counts) > MOST_KINDS:
        return math.inf

    def enough(epsilon: float) -> bool:
        with contextlib.suppress(AccountantError):
            return filters.meter(Budget(epsilon, budget.delta, share=budget.share)).admits(counts)
        return False

    return least(enough, budget.epsilon, budget.epsilon * MOST_FACTOR, HALVINGS)


def _fitting(watch: Watch, counts: Charges, mechanism: Mechanism) -> str:
    """Say how many would fit, by this filter and by others."""
    fits = watch.affordable(mechanism)
    others = allowances(watch, counts, mechanism)
    planned = others.pop("plan", 0)
    own = watch.budget.filter
    listed = [f'{n} by "{name}"' for name, n in others.items() if n and name != own]
    if planned > fits:
        listed.insert(0, f"{planned} if planned before the first release (ledger.plan)")
    return f"{fits} would fit" + (f" by this filter, {', '.join(listed)}" if listed else "")


def _instead(watch: Watch, mechanism: Mechanism, count: int) -> list[str]:
    """Return the noise, and the sampling probability, with which ``count`` releases would fit."""
    q = mechanism.sampling_probability if isinstance(mechanism, PoissonSampled) else None
    noise = mechanism.mechanism if isinstance(mechanism, PoissonSampled) else mechanism
    ways: list[Callable[[float], tuple[str, Mechanism]]] = []
    if isinstance(noise, Gaussian):
        inner = noise

        def quieter(factor: float) -> tuple[str, Mechanism]:
            sigma = float(text_up(inner.noise_multiplier * factor, 3))
            made: Mechanism = replace(inner, noise_multiplier=sigma)
            return f"noise_multiplier={sigma:g}", made if q is None else PoissonSampled(made, q)

        ways.append(quieter)
    if q is not None:

        def rarer(factor: float) -> tuple[str, Mechanism]:
            rate = float(text_down(q / factor, 3))
            return f"sampling_probability={rate:g}", PoissonSampled(noise, rate)

        ways.append(rarer)
    return [words for made in ways for words in _search(watch, made, count)]


def _search(watch: Watch, made: Callable[[float], tuple[str, Mechanism]], count: int) -> list[str]:
    """Return the words for about the least factor that fits, if there is one in range."""

    def fits(factor: float) -> bool:
        with contextlib.suppress(AccountantError):
            return watch.admits([(made(factor)[1], count)])
        return False

    factor = least(fits, 1.0, MOST_FACTOR, HALVINGS, geometric=True)
    return [made(factor)[0]] if factor < math.inf else []

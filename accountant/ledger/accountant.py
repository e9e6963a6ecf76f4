"""The accountant: an append-only record of releases, and their ε and δ."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterator, Sequence

from accountant import checks
from accountant.composition import Composition
from accountant.environment import to_nearest
from accountant.errors import BudgetExceeded, DomainError, UnsupportedError
from accountant.ledger import evaluation, plans
from accountant.ledger.budget import Budget
from accountant.ledger.evaluation import Questions
from accountant.ledger.history import Entry, Uncopied, entry
from accountant.ledger.meters import Remaining
from accountant.ledger.plans import Watch
from accountant.ledger.storage import Kept
from accountant.mechanisms.base import Mechanism
from accountant.relations import NeighbouringRelation

_ENDED = "this ledger records no more: its transaction has ended, or it is that of a copied result"
_BUSY = "this ledger is recording: a record within a record is refused"


class Accountant(Uncopied, Questions, Kept):
    """A ledger of releases: it only grows, refuses what its budget forbids, and can be saved.

    Parameters
    ----------
    budget : Budget, optional
        Watches every record from the first on. A release that would overspend it raises
        BudgetExceeded *before* it is recorded; make the release only after ``compose`` returned.

    Notes
    -----
    Safe to use from several threads. Copies are refused: two copies would spend one budget twice.
    Equal consecutive records are one entry with a count: a million take the memory of one.

    Examples
    --------
    >>> from accountant.ledger import Accountant
    >>> ledger = Accountant()
    >>> len(ledger), ledger.epsilon(1e-5)
    (0, 0.0)
    """

    _COPIED = "an Accountant has no copies; merge it into another, or save it"
    _PICKLED = "an Accountant is not pickled; use to_json or save"

    # Planning and recording

    @to_nearest
    def plan(self, mechanism: Mechanism, count: int | None = None, label: str | None = None) -> int:
        """Reserve ``count`` releases of ``mechanism`` before the first release; return the count.

        What is planned is charged by exact composition, in full, whether it is released or not: no
        filter allows more. Afterwards :meth:`compose` records planned releases in any order, and
        when to stop may depend on everything released. What is not planned is charged to the
        budget's filter, beside the whole plan.

        Parameters
        ----------
        mechanism : Mechanism
            ``step``, or a menu of several kinds: ``plan(1000 * step + 3 * query, 1)``.
        count : int, optional
            In [1, 2**53]; None takes as many as the budget allows.
        label : str, optional
            Words for :attr:`planned`. Whoever releases the mechanism uses its plan up.

        Raises
        ------
        BudgetExceeded
            The budget does not allow it.
        UnsupportedError
            A release was recorded already, so that the plan may depend on it; or the relation is
            not that of the plan.

        Notes
        -----
        *Guarantee.* Theorem L12 of docs/theorems_ledger.md.

        Examples
        --------
        >>> import accountant as ac
        >>> ledger = Accountant(Budget(3.0, 1e-5))
        >>> step = ac.PoissonSampled(ac.Gaussian(1.1), 0.01)
        >>> ledger.affordable(step), ledger.plan(step), ledger.affordable(step)
        (2959, 3712, 3712)
        """
        wanted = 1 if count is None else count
        kind = entry(mechanism, wanted, label).mechanism
        parts = kind.parts if isinstance(kind, Composition) else ((kind, 1),)
        menu = tuple(entry(part, times * wanted, label) for part, times in parts)
        with self._changing():
            if self._watch is None:
                raise DomainError("plan needs a budget; this ledger has none")
            if self._history.first is not None:
                raise UnsupportedError("plan comes before the first release: it may depend on it")
            self._history.check_relation((*self._planned, *menu))
            if count is None:
                wanted = max(self._watch.plannable(mechanism), 1)
                menu = tuple(dataclasses.replace(item, count=item.count * wanted) for item in menu)
            self._watch.plan([(item.mechanism, item.count) for item in menu])
            self._planned += menu
        return wanted

    def compose(
        self,
        mechanism: Mechanism,
        count: int = 1,
        label: str | None = None,
        *,
        time: float | None = None,
    ) -> None:
        """Record ``count`` releases of ``mechanism``.

        Parameters
        ----------
        mechanism : Mechanism
            A frozen value.
        count : int
            In [1, 2**53]. Floats and bools are refused.
        label : str, optional
            Words for the history.
        time : float, optional
            Seconds by the caller's clock, for the history; nothing is derived from it.

        Raises
        ------
        BudgetExceeded
            The budget does not allow it.
        UnsupportedError
            The mechanism's neighbouring relation is not that of the ledger, or the budget's filter
            cannot charge it.
        DomainError, ArgumentTypeError
            An argument is outside its domain or of the wrong type.

        Notes
        -----
        Whatever is raised, nothing was recorded.
        """
        self._append((entry(mechanism, count, label, time),))

    def require(self, mechanism: Mechanism, count: int = 1) -> None:
        """Raise what :meth:`compose` would raise now, and record nothing."""
        self._append((entry(mechanism, count),), record=False)

    def step(
        self,
        *,
        noise_multiplier: float,
        sampling_probability: float = 1.0,
        count: int = 1,
        label: str | None = None,
    ) -> None:
        """Record steps of DP-SGD: Gaussian noise on a Poisson sample, add-or-remove.

        Parameters
        ----------
        noise_multiplier : float
            Noise standard deviation over clipping norm, > 0.
        sampling_probability : float
            In [0, 1].
        count, label
            As in :meth:`compose`.
        """
        self.compose(evaluation.dp_sgd_step(noise_multiplier, sampling_probability), count, label)

    def merge(self, other: Accountant) -> None:
        """Append all records of ``other``, which stays as it is.

        Either all are recorded or none. The releases have happened already: a ledger that has to
        record them whatever they cost must have no budget.

        Raises
        ------
        BudgetExceeded, UnsupportedError, DomainError
            As in :meth:`compose`; also when ``other`` is this ledger itself, or this ledger has a
            plan, which must come before every release.
        """
        checks.instance("other", other, Accountant, "an Accountant")
        if other is self:
            raise DomainError("merge needs another ledger; merged with itself it would count twice")
        # Taken before this ledger's lock, so that two merges cannot wait for each other.
        new, deltas = other.history, set(other._deltas)
        self._refuse_forks()
        with self._lock:
            if self._planned and new:
                raise UnsupportedError("merge needs a ledger without a plan, which comes first")
            self._append(new)
            self._deltas |= deltas

    def note_delta(self, delta: float) -> None:
        """Note a δ in (0, 1) at which this ledger is to be stated, and keep it with the ledger."""
        checked = checks.number(checks.TARGET_DELTA, delta)
        with self._lock:
            self._deltas.add(checked)

    # Reading

    @property
    def budget(self) -> Budget | None:
        """The budget that watches over this ledger."""
        return self._budget

    @property
    def deltas(self) -> tuple[float, ...]:
        """The δ at which to state what was spent: the budget's, then those noted, least first.

        ``accountant show`` and ``report`` answer at them; nothing else is derived from them.
        """
        with self._lock:
            budget = self._budget
            own = () if budget is None or budget.level is not None else (budget.delta,)
            return (*own, *sorted(self._deltas.difference(own)))

    @property
    def history(self) -> tuple[Entry, ...]:
        """Every record in order, equal neighbours joined."""
        with self._lock:
            return self._history.entries

    @property
    def planned(self) -> tuple[Entry, ...]:
        """What was planned before the first release; :attr:`counts` says what of it was made."""
        return self._planned

    @property
    def counts(self) -> tuple[tuple[Mechanism, int], ...]:
        """Distinct mechanisms with their total counts, in order of first appearance."""
        with self._lock:
            return self._history.counts

    @property
    def relation(self) -> NeighbouringRelation | None:
        """The neighbouring relation of all records; None before the first."""
        with self._lock:
            first = self._history.first
            return None if first is None else first.relation

    def __len__(self) -> int:
        """Return the number of releases."""
        return sum(count for _, count in self.counts)

    def __repr__(self) -> str:
        watched = "" if self._budget is None else f", budget={self._budget!r}"
        return f"<Accountant of {len(self)} releases of {len(self.counts)} mechanisms{watched}>"

    @to_nearest
    def remaining(self, budget: Budget | None = None) -> Remaining:
        """Return what ``budget``, by default the ledger's own, has left after these records.

        Raises
        ------
        UnsupportedError
            The budget's filter cannot charge a record.
        """
        with self._lock:
            return self._metered(budget, "remaining").remaining()

    @to_nearest
    def affordable(
        self, mechanism: Mechanism, budget: Budget | None = None, *, planned: bool = False
    ) -> int:
        """Return how many more releases of ``mechanism`` the budget allows, at most 2**53 in all.

        So many are admitted now, at once or one by one, and one more is not; but for
        ``filter="non-adaptive"`` it is a lower bound, as brackets of a composition have a width.
        With ``planned=True``, the number that :meth:`plan` would reserve beside what it has: 0
        after the first release.
        """
        checks.flag("planned", planned)
        with self._lock:
            self._history.check_relation((*self._planned, entry(mechanism, 1)))
            watch = self._metered(budget, "affordable")
            if planned:
                return watch.plannable(mechanism) if self._history.first is None else 0
            return min(watch.affordable(mechanism), self._history.remaining_count(mechanism))

    @to_nearest
    def affordable_by_filter(self, mechanism: Mechanism) -> dict[str, int]:
        """Return how many more releases the budget's (ε, δ) would allow, by each filter.

        ``"plan"`` is the exact composition, before the first release. The filters are those of
        :class:`Budget` that hold for mechanisms chosen as one goes, and can charge what the ledger
        holds. The budget's own is what refuses; the others show what a budget with them would do.
        """
        with self._lock:
            self._history.check_relation((*self._planned, entry(mechanism, 1)))
            watch = self._metered(None, "affordable_by_filter")
            return plans.allowances(watch, self._history.counts, mechanism)

    def _refuse_forks(self) -> None:
        """Refuse in a forked process: it has a copy of the budget, and both would spend it."""
        if self._budget is not None and os.getpid() != self._process:
            raise UnsupportedError("a fork copied this Accountant; share a file by transaction")

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        """Hold the lock of a ledger that can still be changed."""
        self._refuse_forks()  # before the lock, which a fork may have copied while it was held
        with self._lock:
            if self._ended or self._busy:
                raise UnsupportedError(_ENDED if self._ended else _BUSY)
            self._busy = True
            try:
                yield
            finally:
                self._busy = False

    @to_nearest
    def _append(self, new: Sequence[Entry], *, record: bool = True) -> None:
        """Record all or nothing, or only ask whether all would be."""
        with self._changing():
            first = self._planned if self._history.first is None else ()
            self._history.check_relation((*first, *new))
            tally = self._history.tally(new)
            charges = [(item.mechanism, item.count) for item in new]
            watch = self._watch
            if watch is not None and not watch.admits(charges):
                raise BudgetExceeded(plans.refusal(watch, self._history.counts, charges))
            if not record:
                return
            # Nothing below can fail for a reason of the caller's.
            if watch is not None:
                watch.add(charges)
            self._history.extend(new, tally)

    def _metered(self, budget: Budget | None, question: str) -> Watch:
        """Return what watches over this ledger, or would with another budget and no plan."""
        if budget is None:
            if self._watch is None:
                raise DomainError(f"{question} needs a budget; this ledger has none of its own")
            return self._watch
        checks.instance("budget", budget, Budget, "a Budget")
        fresh = Watch(budget)
        fresh.add(self._history.counts)
        return fresh

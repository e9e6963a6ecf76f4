"""The privacy statement as plain values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import accountant
from accountant import checks
from accountant._basics import display
from accountant.ledger import Accountant, Budget, Entry
from accountant.ledger.evaluation import ASSUMED_DELTA
from accountant.ledger.history import labels_of
from accountant.mechanisms import Mechanism
from accountant.report import facts, numbers, registry, render
from accountant.report.contents import (
    LONGEST,
    MARK,
    MOST_LABELS,
    BudgetRow,
    Contents,
    Deployment,
    ReleaseRow,
    enclosure,
    sampling_words,
)
from accountant.report.facts import tone

# Parts of the work: the numbers, and the certificate.
STAGES = numbers.STAGES + 1


@dataclass(frozen=True)
class Statement(Contents):
    """A privacy statement: its :class:`~accountant.report.contents.Contents`, in every format."""

    def html(self) -> str:
        """Return the statement as one self-contained page."""
        return render.html(self)

    def markdown(self) -> str:
        """Return the statement as Markdown."""
        return render.markdown(self)

    def json(self) -> str:
        """Return the statement as JSON, numbers unrounded, infinities as strings."""
        return render.to_json(self)

    def registry(self) -> str:
        """Return a draft for the deployments registry (OpenDP, NIST), as YAML.

        Raises
        ------
        DomainError
            The registry requires a field that no ledger knows, and ``deployment.registry`` lacks
            it; the message names all of them.
        """
        return registry.entry(self)


def statement(
    ledger: Accountant,
    delta: float | None = None,
    *,
    title: str | None = None,
    unit: str | None = None,
    deployment: Deployment | None = None,
    checksum: str | None = None,
    certificate: bool = True,
    advance: Callable[[], None] = lambda: None,
) -> Statement:
    """Return the privacy statement of a ledger, for readers who have never seen the code.

    Parameters
    ----------
    ledger : Accountant
        The ledger.
    delta : float, optional
        In [0, 1): the δ of the headline; 0 states pure differential privacy. The default is that of
        the ledger's budget, or else the least δ noted in it
        (:attr:`Accountant.deltas <accountant.Accountant.deltas>`), or 1e-5.
    title, unit : str, optional
        Short for those of ``deployment``.
    deployment : Deployment, optional
        What no ledger knows: the unit of privacy, who is trusted, the number of records, tuning.
    checksum : str, optional
        Of the ledger's file, to be shown.
    certificate : bool
        Whether to enclose a certificate of all releases together. It is left out, with the reason,
        where none can be made or where that would take long.
    advance : callable
        Called after each of STAGES parts of the work.

    Returns
    -------
    Statement
        Publish its ``html()``, ``markdown()`` or ``json()``.

    Notes
    -----
    *Guarantee.* Every ε is an upper bound for parameters fixed in advance (Theorem L1), every bound
    on an attacker holds for all attacks (Theorems C16, C19, C20, R1), and so does μ with its
    regret (R3, R4). Brackets of a ledger of very many different steps are those of rounded
    parameters (Theorem R2).

    Examples
    --------
    >>> import accountant as ac
    >>> from accountant.report import statement
    >>> ledger = ac.Accountant()
    >>> ledger.step(noise_multiplier=1.1, sampling_probability=0.01, count=1000)
    >>> made = statement(ledger)
    >>> made.headline.epsilon == ledger.epsilon(1e-5)
    True
    """
    if delta is None:
        delta = next(iter(ledger.deltas), ASSUMED_DELTA)
    target = checks.number(checks.DELTA.renamed("delta"), delta)
    about = _deployment(deployment, title, unit)
    history, counts, budget = ledger.history, ledger.counts, ledger.budget
    releases = _releases(history, counts, about.records)
    relation = ledger.relation
    spent = numbers.numbers(history, counts, target, about.user_records, advance)
    enclosed = enclosure(ledger, spent["headline"], certificate)
    advance()
    # Several names: mechanisms of one type may contain different ones.
    kinds = {tuple(map(type, facts.inner(found))): found for found, _ in counts}.values()
    used = dict.fromkeys(n for mechanism in kinds for n in facts.theorems(mechanism))
    used |= dict.fromkeys((*facts.of_analysis(spent["analysis"]), *facts.GENERAL))
    used |= dict.fromkeys(n for one in spent["comparisons"] for n in one.theorem.split(", "))
    return Statement(
        deployment=about,
        version=accountant.__version__,
        ledger=checksum,
        budget=None if budget is None else _budget(budget),
        relation="none" if relation is None else relation.words,
        definition="" if relation is None else relation.definition,
        releases=releases,
        total=len(ledger),
        certificate=enclosed,
        tone=tone(spent["headline"].epsilon),
        assumptions=(
            *facts.assumptions(list(kinds), budget),
            *facts.histograms(mechanism for mechanism, _ in counts),
        ),
        theorems=tuple(used),
        attained=_attained(counts),
        not_private=_not_private(history),
        **spent,
    )


def _budget(budget: Budget) -> BudgetRow:
    if budget.level is not None:
        return BudgetRow(None, None, budget.filter, budget.words)
    return BudgetRow(budget.epsilon, budget.delta, budget.filter, budget.words)


def _attained(counts: tuple[tuple[Mechanism, int], ...]) -> bool:
    """Tell whether data sets are known to reach the pairs of everything that was released.

    What is claimed of a release is reached by some mechanism, not by the one that was run.
    """
    released = [mechanism for mechanism, _ in counts]
    parts = (part for mechanism in released for part in facts.inner(mechanism))
    return all(m.attained for m in released) and not any(facts.on_trust(type(p)) for p in parts)


def _not_private(history: tuple[Entry, ...]) -> tuple[str, ...]:
    found = dict.fromkeys(item.label for item in history if item.label and MARK in item.label)
    return tuple(display.shown(label, LONGEST) for label in list(found)[:MOST_LABELS] if label)


def _deployment(given: Deployment | None, title: str | None, unit: str | None) -> Deployment:
    if given is not None:
        checks.instance("deployment", given, Deployment, "a Deployment")
    told = given or Deployment()
    if title is not None:
        told = replace(told, title=title)
    return told if unit is None else replace(told, unit=unit)


def _releases(
    history: tuple[Entry, ...], counts: tuple[tuple[Mechanism, int], ...], records: int | None
) -> tuple[ReleaseRow, ...]:
    labels = labels_of(history, LONGEST)
    return tuple(
        ReleaseRow(
            mechanism=display.shown(repr(mechanism), LONGEST),
            about=facts.about(mechanism),
            count=count,
            sampler=facts.sampler(mechanism),
            labels=labels[mechanism],
            theorems=facts.theorems(mechanism),
            sampling=sampling_words(mechanism, records),
        )
        for mechanism, count in counts
    )

"""The privacy statement as plain values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import accountant
from accountant import checks, safe_text
from accountant.bounds import Bounds
from accountant.report import attack_table, comparison, facts, over_steps, spending
from accountant.report.attack_table import Attack, Guess
from accountant.report.comparison import Comparison

if TYPE_CHECKING:
    from accountant.ledger import Accountant, Entry
    from accountant.mechanisms import Mechanism

__all__ = ["ReleaseRow", "Row", "Statement", "Step", "statement"]

# Rows of the list of releases, and labels of a row, before "and so on".
MOST_ROWS, MOST_LABELS, LONGEST = 50, 5, 200
# The δ if neither the call nor the ledger gives one.
ASSUMED_DELTA = 1e-5
# Points of the trade-off curve.
RATES = 50


@dataclass(frozen=True)
class ReleaseRow:
    """One mechanism and how often it ran; ``labels`` are the caller's words, shortened."""

    mechanism: str
    about: str
    count: int
    sampler: str
    labels: tuple[str, ...]
    theorems: tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """A certified bracket of ε at one δ."""

    delta: float
    epsilon: float
    epsilon_lower: float


@dataclass(frozen=True)
class Step:
    """A certified bracket of ε after the first ``releases`` releases.

    Its ends agree where the composition was exact. Elsewhere the lower end shows how loose the
    upper end may be.
    """

    releases: int
    epsilon: float
    epsilon_lower: float


@dataclass(frozen=True)
class Statement:
    """A privacy statement: the releases, their ε and δ, and the assumptions.

    Attributes
    ----------
    title, unit : str
        The caller's description of the subject and of one record.
    version : str
        Of this library.
    ledger : str or None
        The checksum of the ledger, to tie the statement to it.
    relation, definition : str
        The neighbouring relation.
    releases, omitted_releases
        Mechanisms with counts; how many rows are left out.
    total : int
        The number of releases.
    headline : Row
        The bracket at the δ of the statement.
    analysis, reason : str
        The analysis that answered, and why it was chosen.
    rounded : bool
        Whether parameters of very many different steps were rounded, to the safe side.
    table : tuple of Row
        Brackets at several δ.
    steps : tuple of Step
        ε over releases.
    attacks, curve : tuple of Attack
        Upper bounds on true-positive rates.
    guesses : tuple of Guess
        Bounds on an attacker with a prior probability.
    comparisons : tuple of Comparison
        Looser analyses.
    assumptions, theorems : tuple of str
        What a reviewer must check; where the proofs are.
    """

    title: str
    unit: str
    version: str
    ledger: str | None
    relation: str
    definition: str
    releases: tuple[ReleaseRow, ...]
    omitted_releases: int
    total: int
    headline: Row
    analysis: str
    reason: str
    rounded: bool
    table: tuple[Row, ...]
    steps: tuple[Step, ...]
    attacks: tuple[Attack, ...]
    curve: tuple[Attack, ...]
    guesses: tuple[Guess, ...]
    comparisons: tuple[Comparison, ...]
    assumptions: tuple[str, ...]
    theorems: tuple[str, ...]

    def html(self) -> str:
        """Return the statement as one self-contained page."""
        from accountant.report import render

        return render.html(self)

    def markdown(self) -> str:
        """Return the statement as Markdown."""
        from accountant.report import render

        return render.markdown(self)

    def json(self) -> str:
        """Return the statement as JSON, numbers unrounded, infinities as strings."""
        from accountant.report import render

        return render.to_json(self)

    def values(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return asdict(self)


def statement(
    ledger: Accountant,
    delta: float | None = None,
    *,
    title: str = "Privacy statement",
    unit: str = "one record of the data set",
    checksum: str | None = None,
    advance: Callable[[], None] = lambda: None,
) -> Statement:
    """Return the privacy statement of a ledger, for readers who have never seen the code.

    Parameters
    ----------
    ledger : Accountant
        The ledger.
    delta : float, optional
        In (0, 1): the δ of the headline. The default is that of the ledger's budget, or else the
        least δ noted in it (:attr:`Accountant.deltas <accountant.Accountant.deltas>`), or 1e-5.
    title, unit : str
        Descriptions for the page: of its subject, and of one record.
    checksum : str, optional
        Of the ledger's file, to be shown.
    advance : callable
        Called after each of STAGES parts of the work.

    Returns
    -------
    Statement
        Publish its ``html()``, ``markdown()`` or ``json()``.

    Notes
    -----
    *Guarantee.* Every ε is an upper bound for parameters fixed in advance (Theorem L1), every bound
    on an attacker holds for all attacks (Theorems C16, C19, C20, R1). Brackets of a ledger of very
    many different steps are those of rounded parameters (Theorem R2).

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
    target = checks.number(checks.TARGET_DELTA, delta)
    for name, words in (("title", title), ("unit", unit)):
        checks.instance(name, words, str, "a str")
    history, counts = ledger.history, ledger.counts
    releases, omitted = _releases(history, counts)
    relation = ledger.relation
    spent = _spending(history, counts, target, advance)
    # Several names: mechanisms of one type may contain different ones.
    kinds = {tuple(map(type, facts.inner(found))): found for found, _ in counts}.values()
    used = dict.fromkeys(n for mechanism in kinds for n in facts.theorems(mechanism))
    used |= dict.fromkeys((*facts.of_name(spent["analysis"]), *facts.GENERAL))
    used |= dict.fromkeys(n for one in spent["comparisons"] for n in one.theorem.split(", "))
    return Statement(
        title=safe_text.shown(title),
        unit=safe_text.shown(unit),
        version=accountant.__version__,
        ledger=checksum,
        relation="none" if relation is None else relation.words,
        definition="" if relation is None else relation.definition,
        releases=releases,
        omitted_releases=omitted,
        total=len(ledger),
        assumptions=facts.assumptions(list(kinds), ledger.budget),
        theorems=tuple(used),
        **spent,
    )


STAGES = 5


def _spending(
    history: tuple[Entry, ...],
    counts: tuple[tuple[Mechanism, int], ...],
    delta: float,
    advance: Callable[[], None],
) -> dict[str, Any]:
    """Return everything that is computed."""
    if not counts:
        return _nothing(delta)
    once, often = spending.Spending(counts), spending.Spending(counts, spending.MOST_OFTEN)
    headline = _row(once, delta)
    advance()
    # ε at δ is at least that at a larger δ, and the headline's bracket may be sharper.
    table = tuple(_row(once if often.above is once.above else often, d) for d in often.deltas)
    advance()
    known = [(row.epsilon, row.delta) for row in (*table, headline)]
    profile = attack_table.SampledProfile([*known, *often.points()])
    advance()
    compared = comparison.comparisons(often.above, delta)
    advance()
    ends = Bounds(headline.epsilon_lower, headline.epsilon)
    steps = over_steps.over_steps(history, counts, ends, delta)
    analysis, reason = once.analysis
    advance()
    return {
        "headline": headline,
        "analysis": analysis,
        "reason": reason,
        "rounded": often.rounded,
        "table": table,
        "steps": tuple(Step(length, high, low) for length, low, high in steps),
        **_attacker(profile),
        "comparisons": compared,
    }


def _nothing(delta: float) -> dict[str, Any]:
    """Return the numbers of an empty ledger."""
    profile = attack_table.SampledProfile([(0.0, 0.0)])
    return {
        "headline": Row(delta, 0.0, 0.0),
        "analysis": "nothing",
        "reason": "nothing was released",
        "rounded": False,
        "table": tuple(Row(d, 0.0, 0.0) for d in spending.DELTAS),
        "steps": (),
        **_attacker(profile),
        "comparisons": (),
    }


def _attacker(profile: attack_table.SampledProfile) -> dict[str, Any]:
    """Return what an attacker can achieve."""
    return {
        "attacks": attack_table.attacks(profile, attack_table.FPRS),
        "curve": attack_table.attacks(profile, [(k / RATES) ** 2 for k in range(RATES + 1)]),
        "guesses": attack_table.guesses(profile),
    }


def _row(spent: spending.Spending, delta: float) -> Row:
    bounds = spent.epsilon_bounds(delta)
    return Row(delta, float(bounds.upper), float(bounds.lower))


def _releases(
    history: tuple[Entry, ...], counts: tuple[tuple[Mechanism, int], ...]
) -> tuple[tuple[ReleaseRow, ...], int]:
    shown = counts[:MOST_ROWS]
    labels: dict[Mechanism, dict[str, None]] = {mechanism: {} for mechanism, _ in shown}
    # By identity first: hashing a million records would take longer than all the rest.
    known: dict[int, dict[str, None] | None] = {}
    for item in history:
        key = id(item.mechanism)
        if key not in known:
            known[key] = labels.get(item.mechanism)
        found = known[key]
        if item.label and found is not None and len(found) <= MOST_LABELS:
            found[safe_text.shown(item.label, LONGEST)] = None
    rows = []
    for mechanism, count in shown:
        words = tuple(labels[mechanism])
        words = (*words[:MOST_LABELS], "…") if len(words) > MOST_LABELS else words
        rows.append(
            ReleaseRow(
                mechanism=safe_text.shown(repr(mechanism), LONGEST),
                about=facts.about(mechanism),
                count=count,
                sampler=facts.sampler(mechanism),
                labels=words,
                theorems=facts.theorems(mechanism),
            )
        )
    return tuple(rows), len(counts) - len(shown)

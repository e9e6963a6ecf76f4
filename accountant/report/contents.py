"""The values that a privacy statement is made of."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from accountant import checks
from accountant._basics import display
from accountant.certificates import certificate
from accountant.errors import AccountantError, DomainError
from accountant.ledger import Accountant
from accountant.mechanisms import Mechanism
from accountant.report.facts import Tone
from accountant.report.gaussian_summary import GaussianSummary
from accountant.report.numbers import Attack, Comparison, Guess, Row, Step, User

UNSTATED = "Not stated."
MODELS = {
    "central": (
        "central: one party holds the records and runs the mechanisms. It must be trusted; whoever"
        " sees only what was released need not be."
    ),
    "local": (
        "local: each person's own device runs the mechanism before anything is sent, so nobody else"
        " need be trusted with the records."
    ),
    "shuffle": (
        "shuffled: each person's own device adds noise, and a trusted party mixes the messages"
        " before anybody sees them."
    ),
    "federated": (
        "federated: records stay where they are, and a trusted server (or a protocol in its place)"
        " sees sums of updates and adds the noise."
    ),
}

_COUNTS = {
    "records": checks.integers("records", 1, 2**53, "It is the public number of records"),
    "user_records": checks.USER_RECORDS,
    "owners": checks.USER_RECORDS.renamed("owners"),
}


@dataclass(frozen=True)
class Deployment:
    """What no ledger knows: whom the numbers are about, and how they came to be.

    Parameters
    ----------
    title, unit : str
        The subject of the statement, and what one record is ("one visit").
    records : int, optional
        The number of records, *only where it is public*: δ is compared with one over it.
    user_records : int, optional
        The largest number of records of one person; above 1 the statement adds a person's ε.
    owners : int, optional
        Where a record may belong to several people: the largest number of kept records of one of
        them, as of :func:`accountant.statistics.bound_owners`.
    model : {"central", "local", "shuffle", "federated"}
        Who must be trusted. "central", the weakest claim, unless another one is stated.
    tuning : str
        What was chosen on private data, and how it was paid for.
    outside : str
        What else was published about these records that this ledger does not cover.
    documentation : str
        Address of the published theorem pages, ending in "/"; the theorems become links.
    registry : mapping
        Fields of the deployments registry that no ledger knows; see
        :meth:`Statement.registry <accountant.report.Statement.registry>`.
    """

    title: str = "Privacy statement"
    unit: str = "one record of the data set"
    records: int | None = None
    user_records: int | None = None
    owners: int | None = None
    model: str = "central"
    tuning: str = ""
    outside: str = ""
    documentation: str = ""
    registry: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("title", "unit", "tuning", "outside", "documentation"):
            words = checks.instance(name, getattr(self, name), str, "a str")
            object.__setattr__(self, name, display.shown(words))
        checks.choice("model", self.model, tuple(MODELS))
        for name, argument in _COUNTS.items():
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, checks.whole(argument, value))
        checks.instance("registry", self.registry, (Mapping,), "a mapping of fields")
        if self.documentation and not self.documentation.startswith(("https://", "http://")):
            raise DomainError(
                "documentation must be an address that begins with https://; got"
                f" {self.documentation!r:.100}"
            )

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Deployment:
        """Make one from the keys of a file, and name the key that is unknown."""
        for key in values:
            if key not in cls.__dataclass_fields__:
                known = ", ".join(cls.__dataclass_fields__)
                raise DomainError(f"{key!r} is no key of a deployment; the keys are {known}")
        return cls(**values)

    def delta_words(self, delta: float) -> str:
        """Say how δ compares with one over the number of records."""
        if delta == 0.0:
            return "δ is 0: the bound on ε holds without exception (pure differential privacy)."
        if self.records is None:
            return (
                "The number of records was not stated as public; δ should be far below one over it."
            )
        most = delta * self.records
        share = f"δ times the {self.records:,} records is {most:.2g}"
        if most >= 1.0:
            return (
                f"Too large: {share}. A mechanism that publishes one record in full could satisfy"
                " this δ."
            )
        if most > 0.1:
            return f"Not small: {share}; far below 1 is usual."
        return f"Small enough: {share}, far below 1."

    def user_words(self) -> str:
        """Say what the numbers mean for a person with several records."""
        if self.owners is not None:
            return (
                "A record may belong to several people; who owns which record is public, and is not"
                f" protected. At most {self.owners:,} of the records that were kept are of one"
                " person; what the ε above is of a person, it is for the contents of all of them"
                " only where each mechanism was stated for such a group."
            )
        if self.user_records is None:
            return (
                "Not stated how many records one person can have. With more than one, the"
                " guarantee of a person is weaker than the ε above."
            )
        if self.user_records == 1:
            return "A person has at most one record, so the ε above is that of a person."
        return f"A person has at most {self.user_records:,} records."


def sampling_words(mechanism: Mechanism, records: int | None) -> str:
    """Say in words what the sampling probability of a mechanism means."""
    q = getattr(mechanism, "sampling_probability", None)
    if q is None:
        size, whole = (getattr(mechanism, name, None) for name in ("batch_size", "dataset_size"))
        if size is None or whole is None:
            return ""
        return f"each step uses {size:,} of {whole:,} records"
    expected = "" if records is None else f", some {q * records:,.0f} of the {records:,} records"
    return f"q = {q:g}: a step uses each record with probability {q:g}{expected}"


# The certificate of more kinds of releases than this would take over a second: none is made.
MOST_KINDS = 50
# A page encloses no certificate of more bytes.
MOST_BYTES = 50_000
# The reason for a missing certificate is cut after this many characters.
LONGEST_REASON = 400


@dataclass(frozen=True)
class Enclosure:
    """The certificate of all releases together, or why there is none.

    Attributes
    ----------
    text : str or None
        The certificate: the JSON document that ``dp-verify`` reads.
    epsilon : float or None
        The ε that it claims, at the δ of the statement.
    larger : float
        By how much that is larger than the ε of the statement, relatively (of an ε of 0, in all).
    digest : str or None
        The SHA-256 of ``text``, in hexadecimal.
    reason : str
        Why there is no certificate; empty where there is one.
    """

    text: str | None = None
    epsilon: float | None = None
    larger: float = 0.0
    digest: str | None = None
    reason: str = ""

    @property
    def address(self) -> str:
        """The document as an address from which a browser saves a file."""
        encoded = base64.b64encode((self.text or "").encode()).decode()
        return f"data:application/json;base64,{encoded}"


def enclosure(ledger: Accountant, headline: Row, wanted: bool) -> Enclosure:
    """Return the certificate of a ledger at the δ of its statement, or the reason for none.

    No ledger makes this fail: a statement holds without a certificate.
    """
    if reason := _reason(ledger, headline, wanted):
        return Enclosure(reason=reason)
    try:
        made = certificate(ledger, headline.delta)
    except (AccountantError, ArithmeticError) as error:
        return Enclosure(reason=display.shown(str(error), LONGEST_REASON))
    size = len(made.text.encode())
    if size > MOST_BYTES:
        return Enclosure(reason=f"it has {size:,} bytes, and a page at most {MOST_BYTES:,}")
    digest = hashlib.sha256(made.text.encode()).hexdigest()
    # An ε on a grid has digits that depend on what was asked before: compare with the one shown.
    larger = max(made.epsilon - headline.epsilon, 0.0) / (headline.epsilon or 1.0)
    return Enclosure(made.text, made.epsilon, larger, digest)


def _reason(ledger: Accountant, headline: Row, wanted: bool) -> str:
    """Return why none is tried; nothing if one is."""
    if not wanted:
        return "none was asked for"
    if not len(ledger):
        return "nothing was released"
    if headline.delta == 0.0:
        return "a certificate is for a δ above 0"
    if not headline.epsilon < math.inf:
        return "no finite ε is known at this δ"
    if (kinds := len(ledger.counts)) > MOST_KINDS:
        return f"there are {kinds:,} kinds of releases, and a page certifies at most {MOST_KINDS}"
    return ""


# Rows of the list of releases on a page, before "and so on"; as data they are all there.
MOST_ROWS = 50
# Characters of a label.
LONGEST = 200
# Labels of a row on a page, which says how many more there are; as data they are all there.
MOST_LABELS = 100
# What the labels of releases whose noise can be recomputed hold: SecureGenerator.why_not_private.
MARK = "not private: "


@dataclass(frozen=True)
class ReleaseRow:
    """One mechanism and how often it ran; ``labels`` are all of the caller's words, each shortened.

    ``sampling`` says what its sampling probability or batch size means.
    """

    mechanism: str
    about: str
    count: int
    sampler: str
    labels: tuple[str, ...]
    theorems: tuple[str, ...]
    sampling: str = ""

    @property
    def listed_labels(self) -> tuple[str, ...]:
        """What a page shows of the labels: the first ones, and how many more there are."""
        more = len(self.labels) - MOST_LABELS
        return (*self.labels[:MOST_LABELS], *([f"and {more:,} more"] if more > 0 else []))


@dataclass(frozen=True)
class BudgetRow:
    """The limit that the ledger enforces, and by which filter; ε and δ are None for ρ or μ."""

    epsilon: float | None
    delta: float | None
    filter: str
    limit: str


@dataclass(frozen=True)
class Contents:
    """What a privacy statement says: the releases, their ε and δ, and the assumptions.

    Attributes
    ----------
    deployment : Deployment
        What the caller says and no ledger knows: title, unit, records, who is trusted, tuning.
    version : str
        Of this library.
    ledger : str or None
        The checksum of the ledger, to tie the statement to it.
    budget : BudgetRow or None
        What the ledger enforces.
    relation, definition : str
        The neighbouring relation.
    releases : tuple of ReleaseRow
        All mechanisms with counts. A page shows ``listed_releases``, the first of them.
    total : int
        The number of releases.
    headline : Row
        The bracket at the δ of the statement.
    tone : Tone
        How large that ε is, in words.
    pure : Row or None
        The bracket at δ = 0, where it is finite.
    gaussian : GaussianSummary or None
        μ, the δ down to which it holds, and its regret.
    user : User or None
        The bracket for a person with several records.
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
    certificate : Enclosure
        The document from which another program checks ε, or why there is none.
    assumptions, theorems : tuple of str
        What a reviewer must check; where the proofs are.
    attained : bool
        Whether data sets are known to reach the dominating pairs, so that a narrow bracket is exact
        and not only a bracket of what the theorems state.
    not_private : tuple of str
        Labels that say of releases that they are not private, as of a generator with a seed.
    """

    deployment: Deployment
    version: str
    ledger: str | None
    budget: BudgetRow | None
    relation: str
    definition: str
    releases: tuple[ReleaseRow, ...]
    total: int
    headline: Row
    tone: Tone
    pure: Row | None
    gaussian: GaussianSummary | None
    user: User | None
    analysis: str
    reason: str
    rounded: bool
    table: tuple[Row, ...]
    steps: tuple[Step, ...]
    attacks: tuple[Attack, ...]
    curve: tuple[Attack, ...]
    guesses: tuple[Guess, ...]
    comparisons: tuple[Comparison, ...]
    certificate: Enclosure
    assumptions: tuple[str, ...]
    theorems: tuple[str, ...]
    attained: bool = False
    not_private: tuple[str, ...] = ()

    @property
    def listed_releases(self) -> tuple[ReleaseRow, ...]:
        """What a page shows of the releases."""
        return self.releases[:MOST_ROWS]

    @property
    def omitted_releases(self) -> int:
        """How many rows a page leaves out."""
        return len(self.releases) - len(self.listed_releases)

    @property
    def title(self) -> str:
        """The caller's description of the subject."""
        return self.deployment.title

    @property
    def unit(self) -> str:
        """The caller's description of one record."""
        return self.deployment.unit

    def values(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return asdict(self)

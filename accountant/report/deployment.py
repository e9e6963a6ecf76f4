"""What a ledger cannot know about a deployment, in the caller's words, and what it amounts to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from accountant import checks
from accountant._basics import display
from accountant.errors import DomainError
from accountant.mechanisms import Mechanism

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

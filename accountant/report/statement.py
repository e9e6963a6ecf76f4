"""The privacy statement as plain values."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import accountant
from accountant import checks
from accountant._basics import display
from accountant._basics.display import text_up
from accountant.errors import DomainError
from accountant.ledger import Accountant, Budget, Entry
from accountant.ledger.evaluation import ASSUMED_DELTA
from accountant.ledger.history import labels_of
from accountant.mechanisms import Mechanism
from accountant.report import contents, facts, numbers, render
from accountant.report.contents import LONGEST, MARK, MOST_LABELS, Contents, Deployment
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
        return entry(self)


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
    enclosed = contents.enclosure(ledger, spent["headline"], certificate)
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


def _budget(budget: Budget) -> contents.BudgetRow:
    if budget.level is not None:
        return contents.BudgetRow(None, None, budget.filter, budget.words)
    return contents.BudgetRow(budget.epsilon, budget.delta, budget.filter, budget.words)


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
) -> tuple[contents.ReleaseRow, ...]:
    labels = labels_of(history, LONGEST)
    return tuple(
        contents.ReleaseRow(
            mechanism=display.shown(repr(mechanism), LONGEST),
            about=facts.about(mechanism),
            count=count,
            sampler=facts.sampler(mechanism),
            labels=labels[mechanism],
            theorems=facts.theorems(mechanism),
            sampling=contents.sampling_words(mechanism, records),
        )
        for mechanism, count in counts
    )


# What the registry asks for and no ledger knows.
REQUIRED = {
    "basic": (
        "data_curators",
        "intended_use",
        "data_product_type",
        "data_product_region",
        "description",
        "publication_date",
    ),
    "administrative": ("registry_authors",),
}
# In the order of the registry's template; what is left out there is refused here.
SECTIONS = {
    "basic": ("name", *REQUIRED["basic"], "data_product_sector"),
    "dp_variant": ("variant_name", "data_domain", "unprotected_quantities"),
    "privacy_loss": (
        "privacy_unit",
        "privacy_unit_details",
        "privacy_parameters",
        "privacy_parameters_details",
    ),
    "deployment_model": (
        *("model_name", "model_name_details", "actors", "release_type", "release_type_details"),
        *("data_source_type", "data_source_type_details", "access_type", "access_type_details"),
    ),
    "accounting": ("post_processing", "composition"),
    "implementation": ("preprocessing_and_hyperparameter_tuning", "mechanisms", "justification"),
    "administrative": ("sources", "notes", "registry_authors"),
}
TIER = 3
# The words of the registry for the models.
_NAMES = {"shuffle": "Shuffle"}
_DATE = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])")


def entry(statement: Contents) -> str:
    """Return a draft for the deployments registry as YAML, every text in the quotes of JSON.

    Its fields are those of that registry's schema. A ledger knows some of them; the others come
    from ``Deployment.registry``, which also may replace what is computed.
    """
    given = statement.deployment.registry
    computed = _computed(statement)
    slug, tier = given.get("url_slug"), given.get("tier", TIER)
    _check(given)
    sections = {}
    for section, names in SECTIONS.items():
        values = computed.get(section, {}) | dict(given.get(section, {}))
        sections[section] = {name: values[name] for name in names if name in values}
    title = re.sub(r"[^a-z0-9]+", "-", statement.title.lower()).strip("-")
    document = {
        "url_slug": slug or title or "deployment",
        "status": "Draft",
        "tier": tier,
        "deployment": sections,
    }
    return "\n".join(_yaml(document)) + "\n"


def _check(given: Mapping[str, Any]) -> None:
    """Refuse unknown fields, and name all that are missing at once."""
    for section, values in given.items():
        if section in ("url_slug", "tier"):
            continue
        if section not in SECTIONS or not isinstance(values, Mapping):
            raise DomainError(
                f"registry must have the tables {', '.join(SECTIONS)}; got {section!r:.60}"
            )
        for name in values:
            if name not in SECTIONS[section]:
                raise DomainError(
                    f"registry.{section} has the fields {', '.join(SECTIONS[section])}; got"
                    f" {name!r:.60}"
                )
    missing = [
        f"{section}.{name}"
        for section, names in REQUIRED.items()
        for name in names
        if not given.get(section, {}).get(name)
    ]
    if missing:
        raise DomainError(
            "the registry needs what no ledger knows: give " + ", ".join(missing) + " under"
            " [registry.basic] and [registry.administrative] of the deployment"
        )
    for section, name in (("basic", "data_curators"), ("administrative", "registry_authors")):
        if not isinstance(given[section][name], (list, tuple)):
            raise DomainError(f"registry.{section}.{name} must be a list of names")
    date = str(given["basic"]["publication_date"])
    if not _DATE.fullmatch(date):
        raise DomainError(f"registry.basic.publication_date must be YYYY-MM-DD; got {date!r:.60}")


def _computed(statement: Contents) -> dict[str, dict[str, Any]]:
    """Return the fields that follow from the ledger and the deployment."""
    told, headline = statement.deployment, statement.headline
    parameters: dict[str, float] = {}
    if headline.epsilon < math.inf:
        parameters["epsilon"] = float(text_up(headline.epsilon))
    if headline.delta > 0.0:
        parameters["delta"] = headline.delta
    central = told.model if told.model in _NAMES else told.model.capitalize()
    return {
        "basic": {"name": statement.title},
        "dp_variant": {
            "variant_name": "Approximate DP" if headline.delta > 0.0 else "Pure DP",
            "unprotected_quantities": told.outside or contents.UNSTATED,
        },
        "privacy_loss": {
            "privacy_unit": told.unit,
            "privacy_unit_details": f"{statement.relation}: {statement.definition}"
            f" {told.user_words()}",
            "privacy_parameters": parameters,
            "privacy_parameters_details": _details(statement),
        },
        "deployment_model": {
            "model_name": _NAMES.get(told.model, central),
            "model_name_details": contents.MODELS[told.model],
        },
        "accounting": {
            "composition": f"Certified composition of {statement.total} releases by accountant"
            f" {statement.version} ({statement.analysis}: {statement.reason})."
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": told.tuning or contents.UNSTATED,
            "mechanisms": "; ".join(
                f"{row.count} x {row.mechanism} ({row.sampler})"
                for row in statement.listed_releases
            )
            + ("" if not statement.omitted_releases else f"; {statement.omitted_releases} more"),
        },
        "administrative": {
            "notes": "" if statement.ledger is None else f"Ledger {statement.ledger}"
        },
    }


def _details(statement: Contents) -> str:
    words = [f"Epsilon is a certified upper bound. {statement.tone.word.capitalize()}."]
    if (found := statement.gaussian) is not None:
        words.append(
            f"mu-GDP with mu = {text_up(found.mu)} for every delta >= {found.delta:g}, regret at"
            f" most {text_up(found.regret, 2)}."
        )
    if statement.budget is not None:
        words.append(f"Enforced budget: {statement.budget.limit}.")
    return " ".join(words)


def _yaml(value: Mapping[str, Any], depth: int = 0) -> Iterator[str]:
    """Write nested tables as YAML: texts, numbers and lists in JSON, which is YAML too."""
    for name, item in value.items():
        if isinstance(item, Mapping):
            if item:
                yield f"{'  ' * depth}{name}:"
                yield from _yaml(item, depth + 1)
        elif isinstance(item, (list, tuple)):
            yield f"{'  ' * depth}{name}:"
            yield from (f"{'  ' * depth}  - {_scalar(each)}" for each in item)
        else:
            yield f"{'  ' * depth}{name}: {_scalar(item)}"


def _scalar(item: object) -> str:
    if isinstance(item, float) and "." not in repr(item):
        return repr(item).replace("e", ".0e")  # YAML 1.1 reads 1e-05 as a word
    if isinstance(item, (bool, int, float)):
        return json.dumps(item)
    return json.dumps(str(item), ensure_ascii=False)

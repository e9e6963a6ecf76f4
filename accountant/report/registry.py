"""A statement as a draft for the deployments registry of OpenDP and NIST.

The fields are those of its deployments-schema.yaml. A ledger knows some of them; the others come
from ``Deployment.registry``, which also may replace what is computed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from accountant._basics.display import text_up
from accountant.errors import DomainError
from accountant.report.contents import MODELS, UNSTATED, Contents

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
    """Return the draft as YAML, every text in the quotes of JSON."""
    given = statement.deployment.registry
    computed = _computed(statement)
    slug, tier = given.get("url_slug"), given.get("tier", TIER)
    _check(given)
    sections = {}
    for section, names in SECTIONS.items():
        values = computed.get(section, {}) | dict(given.get(section, {}))
        sections[section] = {name: values[name] for name in names if name in values}
    document = {
        "url_slug": slug or _slug(statement.title),
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
            "unprotected_quantities": told.outside or UNSTATED,
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
            "model_name_details": MODELS[told.model],
        },
        "accounting": {
            "composition": f"Certified composition of {statement.total} releases by accountant"
            f" {statement.version} ({statement.analysis}: {statement.reason})."
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": told.tuning or UNSTATED,
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


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "deployment"


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

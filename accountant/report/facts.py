"""Texts about mechanisms and samplers: descriptions, theorems, and what a reviewer must check."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from accountant.composition import AdaptiveParallel, Composition, Parallel
from accountant.mechanisms import Mechanism

__all__ = [
    "GENERAL",
    "PROTECTED",
    "QUESTIONS",
    "about",
    "assumptions",
    "of_name",
    "sampler",
    "theorems",
]

# Theorems of mechanisms whose docstring names none, and of the analyses.
_THEOREMS = {
    "AdaptiveParallel": ("M18",),
    "GDP": ("M11",),
    "LossDistribution": ("M2",),
    "Parallel": ("M18",),
    "RenyiCurve": ("M12",),
    "TruncatedCDP": ("M12", "C15"),
    "ZCDP": ("M12", "C15"),
    "nothing": (),
    "profile": ("G9",),
    "gaussian": ("M3",),
    "contour": ("1", "2", "14", "16"),
    "mixture contour": (
        *("1", "2", "14", "16"),
        *(f"D{number}" for number in range(1, 10)),
        *("D13", "D14"),
    ),
    "exchange contour": ("1", "2", "D21", "D22", "E7"),
    "overflow contour": ("1", "2", "14", "16", "S13", "S21", "S25"),
    "grid": ("G1", "G2", "G7", "G9", "G12", "G13", "G14", "G15", "M20"),
    "replacement game": ("1", "2", "S17", "S18", "S19", "S20", "S22", "E1", "G1", "G2", "G4"),
    "renyi": ("M12", "C7"),
    "combined": ("G1", "G2", "G7", "M12", "C7", "P7", "C1", "M20"),
}
# Every statement uses these: composition, fixed parameters, prefixes, attacks, chords, the μ.
GENERAL = ("M1", "L1", "L8", "C8", "C16", "C19", "C20", "R1", "R2", "R3", "R4")
_NUMBER = re.compile(r"\b[A-Z]\d{1,2}\b")


class SamplerFacts(NamedTuple):
    """How records are chosen, and what a reviewer must find in the code."""

    name: str
    check: str


SAMPLERS = {
    "PoissonSampled": SamplerFacts(
        "Poisson: each record independently with probability q",
        "Batches are drawn by an independent coin for every record and every step, so that their"
        " sizes vary and empty batches still release noise. Shuffling the data and cutting it into"
        " batches is not Poisson sampling, and costs more.",
    ),
    "TruncatedPoissonSampled": SamplerFacts(
        "Poisson, cut down to a cap",
        "Batches are drawn by independent coins; only what exceeds the cap is dropped, uniformly.",
    ),
    "FixedSizeSampled": SamplerFacts(
        "a uniform batch of fixed size, without replacement",
        "Every step draws a fresh uniform subset of the stated size from all records; the number of"
        " records is public.",
    ),
    "WithReplacementSampled": SamplerFacts(
        "a batch of fixed size, with replacement",
        "Every step draws each member of its batch independently and uniformly from all records;"
        " a record drawn twice counts twice.",
    ),
    "SeparatedParticipations": SamplerFacts(
        "Poisson with a pause: a record that took part waits a stated number of steps",
        "Every record that is not waiting is drawn by an independent coin; the strategy that"
        " correlates the noise has at most as many bands as the pause has steps.",
    ),
    "Allocated": SamplerFacts(
        "random allocation: each record in one step of an epoch, picked uniformly",
        "Each record picks its step independently and uniformly, afresh in every epoch; batch sizes"
        " vary.",
    ),
}
SAMPLERS["AllocatedMechanism"] = SAMPLERS["Allocated"]
SAMPLERS["SampledReplacement"] = SamplerFacts(
    "a random sample: each record is in it with probability at most q",
    "Every step draws a fresh sample, by independent coins or as a uniform subset of fixed size;"
    " where records are blanked, blanks are drawn like records.",
)
ALL_RECORDS = "all records"

PROTECTED = {
    "add-or-remove": "the presence of one record",
    "replace-one": "the contents of one record",
    "zero-out": "the contribution of one record",
}
QUESTIONS = {
    "add-or-remove": "whether one record was in the data (was used)",
    "replace-one": "which of two given contents one record had (call one of them used)",
    "zero-out": "whether one record contributed (was used) or was replaced by a blank",
}

_ALWAYS = (
    (
        "One record is what is to be protected (say, one person). If a person contributes several"
        " records, the guarantee of a person is weaker than the one stated here."
    ),
    (
        "Each record's contribution is bounded as the mechanisms state (clipping is applied to each"
        " record before the sum), for every possible record."
    ),
    (
        "Noise was drawn afresh for every release, from a secure generator, with at least the"
        " stated scale, and neither the noise nor its seed was published."
    ),
    (
        "Nothing else was published that depends on the data: no metric without noise, early"
        " stopping on private data, preprocessing, vocabulary or hyper-parameter found from the"
        " data that this ledger does not record."
    ),
    (
        "The privacy parameters (noise, sampling, number of releases) were fixed in advance, not"
        " chosen from earlier outputs (L1); stopping early is allowed."
    ),
)
_BUDGET = (
    "The budget {budget!r} limited the ledger, and each release was recorded before it was made."
)
_CLAIMS = {
    "RenyiCurve": "a Rényi curve",
    "DominatingPMFs": "a dominating pair",
    "LossDistribution": "a loss distribution",
    "PureDP": "a pure ε",
    "ApproximateDP": "an (ε, δ)",
    "ZCDP": "a ρ",
    "TruncatedCDP": "a (ρ, ω)",
    "GDP": "a μ",
}


def about(mechanism: Mechanism) -> str:
    """Return one sentence that says what the mechanism is."""
    document = (type(mechanism).__doc__ or type(mechanism).__name__).strip()
    return document.split("\n\n")[0].replace("\n", " ").replace("``", "").strip()


def inner(mechanism: Mechanism) -> Iterator[Mechanism]:
    """Yield the mechanism and the mechanisms it is made of."""
    yield mechanism
    if isinstance(mechanism, Composition):
        for part, _ in mechanism.parts:
            yield from inner(part)
    elif isinstance(mechanism, (AdaptiveParallel, Parallel)):
        for branch in mechanism.branches:
            yield from inner(branch)
    for name in ("mechanism", "base"):
        if isinstance(wrapped := getattr(mechanism, name, None), Mechanism):
            yield from inner(wrapped)


def sampler(mechanism: Mechanism) -> str:
    """Return how the mechanism chooses records."""
    for part in inner(mechanism):
        if (found := SAMPLERS.get(type(part).__name__)) is not None:
            return found.name
    return ALL_RECORDS


def theorems(mechanism: Mechanism) -> tuple[str, ...]:
    """Return the numbers of the theorems that bound the mechanism."""
    found: dict[str, None] = {}
    for part in inner(mechanism):
        found |= dict.fromkeys(of_name(type(part).__name__, type(part).__doc__))
    return tuple(found)


def of_name(name: str, document: str | None = None) -> tuple[str, ...]:
    """Return the theorems of a mechanism or an analysis by its name."""
    return _THEOREMS.get(name) or tuple(dict.fromkeys(_NUMBER.findall(document or "")))


def assumptions(mechanisms: list[Mechanism], budget: object) -> tuple[str, ...]:
    """Return the assumptions behind the numbers, for a reviewer to check."""
    found = list(_ALWAYS)
    parts = [part for mechanism in mechanisms for part in inner(mechanism)]
    for name in dict.fromkeys(type(part).__name__ for part in parts):
        if name in SAMPLERS:
            found.append(SAMPLERS[name].check)
        if name in _CLAIMS:
            found.append(
                f"{name} takes {_CLAIMS[name]} on trust: somebody must have proved it for the"
                " mechanism that was run."
            )
    relations = {mechanism.relation for mechanism in mechanisms}
    found += [f"Neighbouring data sets: {relation.definition}" for relation in relations]
    if budget is not None:
        found.append(_BUDGET.format(budget=budget))
    return tuple(found)

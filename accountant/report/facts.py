"""Texts about mechanisms and samplers: descriptions, theorems, and what a reviewer must check."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from accountant.composition import AdaptiveParallel, Composition, Parallel
from accountant.mechanisms import Mechanism, SparseHistogram


@dataclass(frozen=True)
class Tone:
    """A grade of a privacy loss.

    Attributes
    ----------
    grade : int
        From 0, no loss, to 4, no protection worth the name.
    word : str
        One word for it.
    sentence : str
        What it says, and for whom it is enough.
    """

    grade: int
    word: str
    sentence: str


# Ponomareva et al. 2023 (How to DP-fy ML) call ε <= 1 strong, <= 10 reasonable, and more weak.
_TONES = (
    (0.0, Tone(0, "no loss", "Nothing about any record was revealed.")),
    (1.0, Tone(1, "strong", "A formal guarantee that hardly depends on who the attacker is.")),
    (
        10.0,
        Tone(
            2,
            "moderate",
            "A real guarantee, weaker than the strong one of ε ≤ 1. Read the table of attacks"
            " before relying on it.",
        ),
    ),
    (
        20.0,
        Tone(
            3,
            "weak",
            "The proof excludes few attacks. Protection in practice, if any, rests on attackers"
            " being weaker than the proof allows.",
        ),
    ),
)
_FAILED = Tone(
    4,
    "no meaningful protection",
    "An ε of this size excludes almost no attack. Do not publish it as a guarantee of privacy.",
)


def tone(epsilon: float) -> Tone:
    """Return the grade of an upper bound on ε; infinite ones have the last."""
    return next((found for most, found in _TONES if epsilon <= most), _FAILED)


# Theorems of the analyses.
_THEOREMS = {
    "nothing": (),
    "profile": ("G9",),
    "gaussian": ("M3",),
    "contour": ("1", "2", "14", "16"),
    "smoothed line": ("2", "5", "21"),
    "mixture contour": (
        *("1", "2", "14", "16"),
        *(f"D{number}" for number in range(1, 10)),
        *("D13", "D14"),
    ),
    "exchange contour": ("1", "2", "D21", "D22", "E7"),
    "overflow contour": ("1", "2", "14", "16", "S13", "S21", "S25"),
    "hidden keys": ("N1", "N2", "N3", "N6", "N10", "N11", "N12", "N15"),
    "laplace": ("N15",),
    "grid": ("G1", "G2", "G7", "M20"),
    "replacement game": ("1", "2", "S17", "S18", "S19", "S20", "S22", "E1", "G1", "G2", "G4"),
    "renyi": ("M12", "C7"),
    "combined": ("G1", "G2", "G7", "M12", "C7", "P7", "C1", "M20"),
}
# Every statement uses these: composition, fixed parameters, prefixes, attacks, chords, the μ.
GENERAL = ("M1", "L1", "L8", "C8", "C16", "C19", "C20", "R1", "R2", "R3", "R4")
# Also of epochs that shuffle or cut the records in order, which are charged as one release each.
NO_SAMPLING = "in any way, once a release: the bound counts on no sampling"

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
# Of different histograms, the first are described.
MOST_TOLD = 20
_HISTOGRAMS = (
    (
        "Contributions to histograms were bounded before anything was counted, by a choice among"
        " each unit's own rows alone (N13), and only keys that some unit has were given noise."
    ),
    (
        "The histograms of one release (one line of the releases) were all fixed before the first"
        " of them was made (N10). Lines of the releases may depend on those before: if there are"
        " several, each histogram is charged at its worst (N11)."
    ),
)
_BUDGET = (
    "The budget {budget!r} limited the ledger, and each release was recorded before it was made."
)


def about(mechanism: Mechanism) -> str:
    """Return one sentence that says what the mechanism is."""
    kind = type(mechanism)
    return str(vars(kind).get("about") or f"{kind.__name__}, defined by the caller.")


def inner(mechanism: Mechanism) -> Iterator[Mechanism]:
    """Yield the mechanism and the mechanisms it is made of."""
    yield mechanism
    if isinstance(mechanism, Composition):
        for part, _ in mechanism.parts:
            yield from inner(part)
    elif isinstance(mechanism, (AdaptiveParallel, Parallel)):
        for branch in mechanism.branches:
            yield from inner(branch)
    for name in ("mechanism", "base", "noise", "beside"):
        if isinstance(wrapped := getattr(mechanism, name, None), Mechanism):
            yield from inner(wrapped)


def sampler(mechanism: Mechanism) -> str:
    """Return how the mechanism chooses records."""
    found = (part.selection for part in inner(mechanism) if part.selection is not None)
    return next((each.words for each in found), NO_SAMPLING)


def theorems(mechanism: Mechanism) -> tuple[str, ...]:
    """Return the numbers of the theorems that bound the mechanism."""
    found: dict[str, None] = {}
    for part in inner(mechanism):
        # Of the class itself: those of its base are not about the pairs of what derives from it.
        found |= dict.fromkeys(vars(type(part)).get("theorems", ()))
    return tuple(found)


def on_trust(kind: type[Mechanism]) -> str:
    """Return what a class of mechanisms takes on trust; empty where a theorem proves it."""
    return kind.claim or ("" if "about" in vars(kind) else "its pairs")


def of_analysis(name: str) -> tuple[str, ...]:
    """Return the theorems of an analysis by its name."""
    return _THEOREMS.get(name, ())


def assumptions(mechanisms: list[Mechanism], budget: object) -> tuple[str, ...]:
    """Return the assumptions behind the numbers, for a reviewer to check."""
    found = list(_ALWAYS)
    parts = [part for mechanism in mechanisms for part in inner(mechanism)]
    kinds: dict[type[Mechanism], None] = dict.fromkeys(type(part) for part in parts)
    for kind in kinds:
        if kind.selection is not None:
            found.append(kind.selection.check)
        if taken := on_trust(kind):
            found.append(
                f"{kind.__name__} takes {taken} on trust: somebody must have proved it for the"
                " mechanism that was run."
            )
    relations = {mechanism.relation for mechanism in mechanisms}
    found += [f"Neighbouring data sets: {relation.definition}" for relation in relations]
    if budget is not None:
        found.append(_BUDGET.format(budget=budget))
    return tuple(found)


def histograms(mechanisms: Iterable[Mechanism]) -> tuple[str, ...]:
    """Return what was assumed of the users of histograms, and what became of other keys."""
    parts = (part for mechanism in mechanisms for part in inner(mechanism))
    found = dict.fromkeys(part for part in parts if isinstance(part, SparseHistogram))
    if not found:
        return ()
    told = [f"{part!r}: {part.in_words()}" for part in list(found)[:MOST_TOLD]]
    return (*told, *_HISTOGRAMS)


@dataclass(frozen=True)
class Proof:
    """A theorem: its number, title, page of the documentation, and address if one is known."""

    number: str
    title: str
    page: str
    address: str


def proofs(numbers: tuple[str, ...], documentation: str) -> tuple[Proof, ...]:
    """Return the theorems called ``numbers``; ``documentation`` is the address of the pages."""
    known = _titles()
    found = []
    for number in numbers:
        page, title = known.get(number, ("theorems", ""))
        base = documentation.rstrip("/")
        address = f"{base}/{page}.html#{_anchor(number, title)}" if base else ""
        found.append(Proof(number, title, page, address))
    return tuple(found)


@lru_cache(maxsize=1)
def _titles() -> dict[str, tuple[str, str]]:
    text = (files("accountant.report") / "templates" / "theorems.json").read_text(encoding="utf-8")
    return {number: (page, title) for number, (page, title) in json.loads(text).items()}


def _anchor(number: str, title: str) -> str:
    """Return the identifier that Sphinx gives to the heading "M3. Title"."""
    words = re.sub(r"[^a-z0-9]+", "-", f"{number}. {title}".lower().replace("é", "e"))
    return re.sub(r"^[-0-9]+|-+$", "", words)

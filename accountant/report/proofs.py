"""Theorems by their titles, and where to read them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files


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

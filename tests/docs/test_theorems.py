"""Theorems number their assumptions; the checkers cite theorems and assumptions that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
CHECKERS = [
    *sorted((ROOT / "verifier").rglob("*.py")),
    *sorted((ROOT / "verifier").rglob("*.c")),
    DOCS / "theorems_certificates.md",
]
NUMBER = r"[A-Z]?\d+"
ONE = re.compile(rf"(?:Theorem ({NUMBER})|\b(K\d+)), (\d+|[a-d])\b")
LISTED = re.compile(rf"Theorem\s+{NUMBER}|Theorems\s+{NUMBER}(?:(?:,? and |, | to ){NUMBER})*")


def theorems():
    """The text of every theorem, by its number."""
    found = {}
    for page in sorted(DOCS.glob("theorems*.md")):
        parts = re.split(rf"^## ({NUMBER})\. ", page.read_text(), flags=re.M)
        found |= dict(zip(parts[1::2], parts[2::2], strict=True))
        if parts[2::2]:  # what follows the last theorem under another heading is not its text
            found[parts[-2]] = found[parts[-2]].split("\n## ")[0]
    return found


THEOREMS = theorems()


def assumptions(text):
    """The numbers of the list of assumptions, which come before the statement and the proof."""
    head = re.search(r"^\*Assumptions.*$\n\n((?:(?:\d+\. |   ).*\n)+)", text, re.M)
    if head is None or "*Proof" in text[: head.start()]:
        return []
    return [int(each) for each in re.findall(r"^(\d+)\. ", head[1], re.M)]


def wrong(text):
    """What a text cites that is not there: theorems, and assumptions or parts of them."""
    text = re.sub(r"\s*\n\s*(?:[*#] )?", " ", text)
    for plain, certified, item in ONE.findall(text):
        number = plain or certified
        whole = THEOREMS.get(number, "")
        known = int(item) in assumptions(whole) if item.isdigit() else f"({item})" in whole
        if not known:
            yield f"{number}, {item}"
    for listed in LISTED.findall(text):
        yield from (each for each in re.findall(rf"\b{NUMBER}", listed) if each not in THEOREMS)


@pytest.mark.parametrize("number", [n for n in THEOREMS if n.isdigit() or n.startswith("K")])
def test_assumptions_are_numbered_from_one(number):
    found = assumptions(THEOREMS[number])
    assert found, f"Theorem {number} has no list of assumptions before its proof"
    assert found == list(range(1, len(found) + 1))


@pytest.mark.parametrize("path", CHECKERS, ids=lambda path: path.name)
def test_cited_assumptions_exist(path):
    assert list(wrong(path.read_text())) == []

"""Fails where a sentence of a page is too long to be read once.

    python .ci/sentences.py [PAGE ...]

Counted are the words between full stops, question marks and exclamation marks. Code blocks, tables,
displayed formulas, directives and comments are left out. A formula or a piece of code within a line
is one word, and a link is its text. Pages of theorems may have longer sentences.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MOST = 40
MOST_OF_THEOREMS = 60
# A statement's template is a program, and not a page.
NOT_PAGES = "accountant/report/templates/"
# Blocks that hold sentences; all others are code or instructions.
PROSE = re.compile(r"^```\{(glossary|note|warning|tip|important)\}\n(.*?)^```$", re.S | re.M)
# What is no text: front matter, comments, code, examples and their answers, formulas, tables.
LEFT_OUT = (
    r"\A---\n.*?^---$",
    r"<!--.*?-->",
    r"^( *)(```|~~~).*?^\1\2$",
    r"^>>> .*?(?=^$)",
    r"^ *\$\$.*?\$\$",
    r"^ *\|.*?$",
)
# Short forms that hold a full stop, and what counts as one word.
WITHIN = ((r"\b(e\.g|i\.e|cf|vs|no)\.", "x"), (r"`[^`]+`|\$[^$]+\$", "x"), (r"\]\([^)]*\)", "]"))
BEGINS = r"\n\s*\n|\n(?=\s*(?:[-*+] |\d+\. |#|>))"


def blanked(found: re.Match[str]) -> str:
    """Return the line ends of what is left out, so that lines keep their numbers."""
    return "\n" * found.group().count("\n")


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """Yield each sentence of a page with the number of its line."""
    text = PROSE.sub(r"\n\2\n", text)
    for pattern in LEFT_OUT:
        text = re.sub(pattern, blanked, text, flags=re.S | re.M)
    place = 0
    for block in re.split(f"({BEGINS})", text):
        line = text.count("\n", 0, place) + 1
        place += len(block)
        for old, new in WITHIN:
            block = re.sub(old, new, block)
        for sentence in re.split(r"(?<=[.!?])[\"')*_\]]*\s+", block):
            yield line, " ".join(sentence.split())


def main(names: list[str]) -> int:
    """Print the sentences of these pages, or of all, that are too long."""
    if not names:
        listed = ["git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard", "*.md"]
        names = subprocess.run(listed, check=True, capture_output=True, text=True).stdout.split()
    found = 0
    for name in names:
        most = MOST_OF_THEOREMS if Path(name).name.startswith("theorems") else MOST
        if not name.startswith(NOT_PAGES) and (ROOT / name).exists():
            for line, sentence in sentences((ROOT / name).read_text(encoding="utf-8")):
                words = re.findall(r"[^\W_][\w'’-]*", sentence)
                if len(words) > most:
                    found += 1
                    print(f"{name}:{line}: {len(words)} words, {most} allowed: {sentence[:90]}")
    return min(found, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Prints how large the project is: files, lines of code, words and tuned numbers.

    python .ci/size.py

A line of code is one that holds anything but comments, docstrings and blanks. A number is a numeric
literal other than -1, 0, 1/2, 1 and 2, wherever it stands: in a name's value, a default or a body.
Not counted are tables of coefficients: brackets of any kind, nested or not, that hold at least six
literals and nothing else but signs, commas and ellipses (nodes and weights of a quadrature, series,
the knots of a fit). Lists of settings are mostly shorter, and a call's arguments have names.
"""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLAIN = {0.0, 0.5, 1.0, 2.0}
LEAST_TABLE = 6

NUMBER = r"""0[xX][\da-fA-F.]+(?:[pP][+-]?\d+)?[uUlL]*
    | (?:\d[\d_]*\.?[\d_]*|\.\d+)(?:[eE][+-]?\d+)?[jJuUlLfF]*"""
STRING = r""" [rbfuRBFU]{0,2}(?:\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''
    | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*')"""
TOKEN = r"""(?P<comment>{comment}) | (?P<string>{string}) | (?P<number>{number})
    | (?P<word>[^\W\d]\w*) | (?P<end>\n) | (?P<blank>[^\S\n]+|\\\n) | (?P<sign>\.\.\.|.)"""


def pattern(comment: str) -> re.Pattern[str]:
    """Return the tokens of a language by how it writes comments."""
    text = TOKEN.format(comment=comment, string=STRING, number=NUMBER)
    return re.compile(text, re.VERBOSE | re.DOTALL)


PYTHON = pattern(r"\#[^\n]*")
C = pattern(r"/\*(?:[^*]|\*(?!/))*\*/ | //[^\n]*")
LANGUAGES = {".py": PYTHON, ".pyx": PYTHON, ".pxi": PYTHON, ".pxd": PYTHON, ".c": C, ".h": C}


def tokens(path: Path) -> Iterator[tuple[str, str, int]]:
    """Yield kind, text and line of all code: no comments, blanks or docstrings."""
    text = path.read_text()
    line, depth, begins = 1, 0, True
    for found in LANGUAGES[path.suffix].finditer(text):
        kind, value = str(found.lastgroup), found.group()
        docstring = kind == "string" and begins and value.endswith(('"""', "'''"))
        if kind == "end":
            begins = depth == 0
        elif kind not in ("comment", "blank") and not docstring:
            yield kind, value, line
            depth += value in "([{" if kind == "sign" else 0
            depth -= value in ")]}" if kind == "sign" else 0
            begins = False
        line += value.count("\n")


def code_lines(path: Path) -> int:
    """Return the number of lines with code."""
    lines: set[int] = set()
    for _, value, line in tokens(path):
        lines.update(range(line, line + value.count("\n") + 1))
    return len(lines)


def is_plain(literal: str) -> bool:
    """Return whether a literal is one of those that need no reason."""
    text = literal.replace("_", "")
    if text[:2] in ("0x", "0X"):
        return float.fromhex(text.rstrip("uUlL")) in PLAIN
    return float(text.rstrip("jJuUlLfF")) in PLAIN


def numbers(path: Path) -> int:
    """Return how many literals need a reason."""
    counted = 0
    opened: list[tuple[bool, int, int]] = [(False, 0, 0)]  # may be a table; literals; to count
    for kind, value, _ in tokens(path):
        pure, literals, some = opened[-1]
        if kind == "number":
            opened[-1] = pure, literals + 1, some + (not is_plain(value))
        elif kind == "sign" and value in "([{":
            opened.append((True, 0, 0))
        elif kind == "sign" and value in ")]}" and len(opened) > 1:
            opened.pop()
            above = opened[-1]
            opened[-1] = above[0] and pure, above[1] + literals, above[2] + some
            if pure and literals >= LEAST_TABLE and not above[0]:
                opened[-1] = False, above[1], above[2]
        elif not (kind == "sign" and value in ("+", "-", ",", "...")):
            opened[-1] = False, literals, some
        if len(opened) == 1:
            counted += opened[0][2]
            opened[0] = False, 0, 0
    return counted


def main() -> None:
    """Print the table."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True)
    paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    paths = [path for path in paths if path.is_file()]
    code = [p for p in paths if p.suffix in LANGUAGES and p.is_relative_to(ROOT / "accountant")]
    python = [p for p in code if p.suffix == ".py"]
    native = [p for p in code if p.suffix != ".py"]
    tests = [p for p in paths if p.suffix == ".py" and p.is_relative_to(ROOT / "tests")]
    for name, files in (("Python", python), ("C, headers and Cython", native), ("tests", tests)):
        lines = sum(map(code_lines, files))
        found = f", {sum(map(numbers, files))} numbers" if files is not tests else ""
        print(f"{name}: {lines} lines of code in {len(files)} files{found}")
    pages = [p for p in paths if p.suffix == ".md"]
    print(f"pages: {sum(len(p.read_text().split()) for p in pages)} words in {len(pages)} files")


if __name__ == "__main__":
    main()

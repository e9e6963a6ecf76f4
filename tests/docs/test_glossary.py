"""The glossary defines every word of a public name, a command's option or a message's text.

A word counts as defined if it stands in a term of docs/glossary.md, or is emphasised or set as code
in a definition. Words of plain English, statistics and programming are in
support/data/plain_words.txt.
"""

import ast
import importlib
import inspect
import re
import unicodedata
from pathlib import Path

import pytest

import accountant
from accountant.cli import main
from support.public_packages import PACKAGES

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "glossary.md"
PLAIN = ROOT / "tests" / "support" / "data" / "plain_words.txt"
WORD = re.compile(r"DP(?=[A-Z])|[A-Z]+s(?![a-z])|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")
# What Python gives every exception, enumeration and estimator.
INHERITED = {"add_note", "with_traceback", "args", "set_params", "get_metadata_routing"}


def words(text):
    """Return the words of a name or a sentence in lower case, without accents."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return {word.lower() for word in WORD.findall(plain) if len(word) > 2}


def forms(word):
    """Return a word and the singular or plural of it."""
    singular = re.sub("ies$", "y", word), re.sub("es$", "", word), re.sub("s$", "", word)
    return {word, *singular, f"{word}s"}


def defined():
    found = set()
    for block in re.findall(r"```\{glossary\}\n(.*?)```", PAGE.read_text(), re.DOTALL):
        for line in block.splitlines():
            if line.startswith(" "):
                marked = re.findall(r"\*([^*]+)\*|`([^`]+)`", line)
                found |= set().union(*(words(" ".join(pair)) for pair in marked))
            else:
                found |= words(line) | words(line.lower())
    return found


def plain():
    return set(PLAIN.read_text().split())


def arguments(value, place):
    try:
        parameters = inspect.signature(value).parameters
    except (TypeError, ValueError):
        return
    yield from ((name, f"{place}({name})") for name in parameters)


def public_names():
    """Yield every public name, attribute, parameter and option, and where it stands."""
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            value, place = getattr(module, name), f"{package}.{name}"
            yield name, place
            if callable(value):
                yield from arguments(value, place)
            if inspect.isclass(value):
                for attribute in sorted(set(dir(value)) - INHERITED):
                    yield attribute, f"{place}.{attribute}"
                    member = inspect.getattr_static(value, attribute)
                    if inspect.isfunction(member) and not attribute.startswith("_"):
                        yield from arguments(member, f"{place}.{attribute}")
    for name, command in main.commands.items():
        yield name, f"accountant {name}"
        for option in command.params:
            yield from ((text.lstrip("-"), f"accountant {name} {text}") for text in option.opts)


def messages():
    """Yield the fixed text of every error that the package raises, and its file."""
    for file in sorted(Path(accountant.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Raise) and node.exc is not None:
                for part in ast.walk(node.exc):
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        yield part.value, f"{file.relative_to(ROOT)}:{node.lineno}"


@pytest.fixture(scope="module")
def known():
    return defined() | plain()


def undefined(texts, known):
    missing = {}
    for text, place in texts:
        if not text.startswith("_"):
            for word in words(text):
                if not forms(word) & known:
                    missing.setdefault(word, place)
    return missing


def test_every_public_name_is_made_of_known_words(known):
    assert not undefined(public_names(), known)


@pytest.mark.long
def test_every_message_is_made_of_known_words(known):
    assert not undefined(messages(), known)


def test_a_word_that_nobody_defined_is_noticed(known):
    assert undefined([("epsilonFrobnicated", "here")], known) == {"frobnicated": "here"}
    assert "odometer" not in plain()
    assert {"odometer", "dominating", "poisson", "zcdp", "fpr"} <= defined()


def test_no_plain_word_is_a_term():
    assert not plain() & defined()


def test_no_term_is_defined_twice():
    blocks = re.findall(r"```\{glossary\}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    terms = [line for block in blocks for line in block.splitlines() if line[:1].strip()]
    assert len(terms) > 100
    assert len(terms) == len(set(terms))

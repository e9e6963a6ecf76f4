"""Reads a certificate: JSON of bounded size whose numbers are the decimals that are written.

``FORMAT`` is the whole format: the keys of each object, with a question mark if it may be left
out, and what stands there: ``1..9`` a number in [1, 9], ``#1..9`` a whole one, ``a|b`` one of some
words, ``[...]`` a list of them, ``*`` anything, otherwise an object of that name. Whatever is not
of the format is refused.
"""

import json
import re
from fractions import Fraction
from types import SimpleNamespace

LARGEST_DOCUMENT, LONGEST_LIST = 200_000, 2_000  # bytes, elements
DECIMAL = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?")
# A part is known by the key that only its kind has, evidence by its "kind". (K5, 1; K6, 1)
FORMAT = (
    """\
document format:dp-certificate version:#1..1 claim:claim evidence:* note?:*
claim relation:add-or-remove|replace-one|zero-out direction:both|remove|add \
epsilon:0..1e18 delta:0..1 parts:[part]
part count:#1..1e15
part-sigma sigma:1e-9..1e9 shifts:[1e-9..1e9] weights:[0..1] lost?:0..1
part-laplace laplace:1e-9..700 sampled?:RATE
part-randomised_response randomised_response:0..700 categories:#2..1e9 infinite?:0..1 sampled?:RATE
part-discrete_laplace discrete_laplace:1e-3..1e4 sensitivity:#1..1e4 sampled?:RATE
part-discrete_gaussian discrete_gaussian:1e-3..1e4 sensitivity:#1..1e4 sampled?:RATE
part-p p:[0..1] q:[0..1] sampled?:RATE
both remove:evidence add:evidence
remove remove:evidence
add add:evidence
evidence kind:*
evidence-never_moved
evidence-plain
evidence-one_step threshold:PLACE
evidence-grid spacing:1e-30..1e6 low:#-3e5..0 high:#0..3e5 bits:#0..2000
evidence-chernoff distance:SIZE rules:[rule]
evidence-line distance:SIZE rules:[rule] step:SIZE orders:#1..1e5 small?:SIZE reverse?:SIZE
rule rise:SIZE spacing:SIZE first:PLACE nodes:#1..1e4 decay?:[PLACE] labels?:labels
labels width:SIZE upper:PLACE lower?:PLACE
""".replace("SIZE", "1e-30..1e12")
    .replace("PLACE", "-1e15..1e15")
    .replace("RATE", "1e-12..1")
)
KEYS = {line.split()[0]: line.split()[1:] for line in FORMAT.splitlines()}


class Refused(Exception):  # noqa: N818 (what happened to the document)
    """The document is not a certificate, or its evidence does not show the claim."""


class Number(str):
    """A decimal as it is written in the document."""


def need(holds, requirement):
    """Refuse the document unless a condition certainly holds."""
    if not holds:
        raise Refused(requirement)


def read(text):
    """Return the objects, lists, strings and numbers of a document."""
    need(len(text.encode(errors="replace")) <= LARGEST_DOCUMENT, "the document is too long")
    try:
        return json.loads(text, parse_float=Number, parse_int=Number, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise Refused("the document is not JSON") from error


def _once(pairs):
    need(len(dict(pairs)) == len(pairs), "a key stands twice")
    return dict(pairs)


def checked(value, kind, name):
    """Return what stands there: numbers exact, objects with None for what is left out."""
    if kind == "*" or (kind == "rule" and value is None):
        return value
    if kind.startswith("["):
        need(isinstance(value, list) and 1 <= len(value) <= LONGEST_LIST, f"{name}: its length")
        return [checked(each, kind[1:-1], name) for each in value]
    if ".." in kind:
        return _number(value, kind, name)
    if kind in KEYS:
        return _object(value, kind, name)
    need(type(value) is str and value in kind.split("|"), f"{name} must be {kind}")
    return value


def _number(value, kind, name):
    need(isinstance(value, Number) and DECIMAL.fullmatch(value), f"{name} must be a number")
    exact, (low, high) = Fraction(value), map(Fraction, kind.lstrip("#").split(".."))
    need(low <= exact <= high, f"{name} must be in {kind}, not {value}")
    need(kind[0] != "#" or exact.denominator == 1, f"{name} must be a whole number, not {value}")
    return int(exact) if kind[0] == "#" else exact


def _object(value, kind, name):
    need(isinstance(value, dict), f"{name} must be an object")
    variant = kind
    if kind == "part":
        variant = next((f"part-{key}" for key in value if f"part-{key}" in KEYS), "")
    if kind == "evidence":
        variant = f"evidence-{value.get('kind')}"
    need(variant in KEYS, f"{name}: unknown kind")
    kinds = dict(each.split(":") for each in [*KEYS[kind], *KEYS[variant]])
    known = {key.rstrip("?"): each for key, each in kinds.items()}
    required = kinds.keys() & known.keys()
    need(required <= value.keys() <= known.keys(), f"{name}: the keys must be {[*kinds]}")
    found = {key: checked(value[key], known[key], key) for key in value}
    return SimpleNamespace(**(dict.fromkeys(known) | found))

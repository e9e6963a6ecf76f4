"""Reads a certificate: JSON of bounded size whose numbers are the decimals that are written.

Everything here refuses: a document with an unknown key, a number out of range or a list that is
too long is no certificate. Nothing that was not read by these functions reaches the checks.
"""

import json
import re
from fractions import Fraction

LARGEST_DOCUMENT = 200_000  # bytes
LARGEST_LIST = 2_000
MOST_PARTS = 100
_NUMBER = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?")


class Refused(Exception):  # noqa: N818 (what happened to the document)
    """The document is not a certificate, or its evidence is outside what is checked."""


class Number(str):
    """A decimal as it is written in the document."""

    __slots__ = ()


def read(text):
    """Return the objects, lists, strings and numbers of a document."""
    if len(text) > LARGEST_DOCUMENT:
        raise Refused(f"the document has more than {LARGEST_DOCUMENT} bytes")
    try:
        return json.loads(
            text, parse_float=Number, parse_int=Number, parse_constant=_no, object_pairs_hook=_dict
        )
    except (ValueError, RecursionError) as error:
        raise Refused("the document is not JSON") from error


def _no(name):
    raise Refused(f"{name} is not a number")


def _dict(pairs):
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Refused("a key stands twice")
    return found


def fields(value, name, required, optional=()):
    """Return the object, with the required keys and no unknown one."""
    if not isinstance(value, dict):
        raise Refused(f"{name} must be an object")
    missing = [key for key in required if key not in value]
    unknown = [key for key in value if key not in required and key not in optional]
    if missing or unknown:
        raise Refused(f"{name}: missing {missing}, unknown {unknown[:3]}")
    return value


def number(value, name, low, high):
    """Return the decimal as an exact fraction of [low, high]."""
    if not isinstance(value, Number) or not _NUMBER.fullmatch(value):
        raise Refused(f"{name} must be a number of at most 40 digits")
    exact = Fraction(value)
    if not Fraction(low) <= exact <= Fraction(high):
        raise Refused(f"{name} must be in [{low}, {high}], not {value}")
    return exact


def count(value, name, most, least=1):
    """Return a whole number in [least, most]."""
    exact = number(value, name, least, most)
    if exact.denominator != 1:
        raise Refused(f"{name} must be a whole number, not {value}")
    return int(exact)


def items(value, name, most=LARGEST_LIST):
    """Return a list of at least one and at most so many elements."""
    if not isinstance(value, list) or not 1 <= len(value) <= most:
        raise Refused(f"{name} must be a list of 1 to {most} elements")
    return value


def numbers(value, name, low, high):
    """Return a list of numbers."""
    return [number(each, name, low, high) for each in items(value, name)]


def word(value, name, allowed):
    """Return one of the allowed words."""
    if type(value) is not str or value not in allowed:
        raise Refused(f"{name} must be one of {sorted(allowed)}")
    return value

"""Values as text: numbers shortened on the safe side, and the shortest call that makes a value."""

import math
import unicodedata
from dataclasses import MISSING, fields
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context
from functools import cache
from typing import Any, NamedTuple


def text_up(value: float, digits: int = 6) -> str:
    """Write ``value`` with at most ``digits`` significant digits, rounded up: never below it."""
    return _text(value, digits, ROUND_CEILING)


def text_down(value: float, digits: int = 6) -> str:
    """Write ``value`` with at most ``digits`` significant digits, rounded down."""
    return _text(value, digits, ROUND_FLOOR)


def json_value(value: object) -> Any:
    """Return a value for JSON, which has no infinities: they are written as strings."""
    if isinstance(value, dict):
        return {name: json_value(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_value(item) for item in value]
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value


def plain(value: float) -> str:
    """Write a given number with the fewest digits that restore it, as in 1e-5."""
    return repr(value).replace("e-0", "e-").removesuffix(".0")


def percent(value: float) -> str:
    """Write a share as per cent, rounded up."""
    return f"{text_up(min(100.0 * value * (1.0 + 2.0**-50), 100.0), 3)} %"


def _text(value: float, digits: int, rounding: str) -> str:
    # create_decimal takes the double's exact value, so this rounds once. The exponents' range must
    # hold every double, subnormals and all, or the rounding would be to the range's edge.
    context = Context(prec=digits, rounding=rounding, Emin=MIN_EMIN, Emax=MAX_EMAX)
    number = context.create_decimal(value)
    if not number.is_finite():
        return str(float(value))
    if number == 0:
        return "0"
    if -5 <= number.adjusted() < max(digits, 6):
        text = f"{number:f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    mantissa, exponent = f"{number:e}".split("e")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return f"{mantissa}e{int(exponent):+03d}"


# Characters that turn the direction of what follows, and so can hide it.
_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
# Controls (escape sequences of a terminal begin with one), lone surrogates, line separators.
_HIDDEN = frozenset(("Cc", "Cs", "Zl", "Zp"))


def shown(text: str, longest: int | None = None) -> str:
    r"""Return ``text`` on one line, with what must not reach a page or a terminal replaced.

    Parameters
    ----------
    text : str
        Anything.
    longest : int, optional
        More characters than this are cut off, and an ellipsis says so.

    Returns
    -------
    str
        Printable, and encodable as UTF-8.

    Examples
    --------
    >>> shown("two\nlines"), shown("abcdef", 4)
    ('two lines', 'abc…')
    """
    if longest is not None and len(text) > longest:
        text = text[: longest - 1] + "…"
    line = " ".join(text.split())
    return "".join(
        "\ufffd" if unicodedata.category(c) in _HIDDEN or c in _TURNING else c for c in line
    )


class Described:
    """A dataclass whose ``repr`` is the shortest constructor call."""

    def parameters(self) -> dict[str, Any]:
        """Return the keyword arguments of the shortest constructor call that makes this value."""
        found: dict[str, Any] = {}
        for name, argument, default, _ in _parts(type(self)):  # type: ignore[arg-type]
            value = getattr(self, name)
            if default is MISSING or value != default:
                found[argument] = value
        return found

    def __repr__(self) -> str:
        """Return the shortest constructor call."""
        shown = []
        for name, argument, default, by_name in _parts(type(self)):  # type: ignore[arg-type]
            value = getattr(self, name)
            if default is MISSING and not by_name:
                shown.append(repr(value))
            elif value is not default and (default is MISSING or value != default):
                shown.append(f"{argument}={value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"


@cache
def _parts(kind: Any) -> tuple[tuple[str, str, Any, bool], ...]:
    """Return name, argument, default of each field, and whether it is keyword-only."""
    # A field cannot have the name of a question (epsilon, delta, mu, rho), an argument can.
    return tuple(
        (
            part.name,
            str(part.metadata.get("argument", part.name)),
            part.default,
            part.kw_only is True,
        )
        for part in fields(kind)
    )


class Selection(NamedTuple):
    """How a mechanism chooses records, in words, and what a reviewer must find in the code."""

    words: str
    check: str

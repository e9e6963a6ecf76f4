"""Values as text: numbers shortened on the safe side, and the shortest call that makes a value."""

import math
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

"""The stored enclosures of tests/support/data are those of the oracles, computed again."""

import json
from decimal import Decimal
from importlib.resources import files

import pytest

pytest.importorskip("flint")
import mpmath
from flint import arb, ctx

from support.oracle import exchange, moments, psg, shift_compositions, shift_mixture
from support.oracle.shift_mixture_renyi import divergence
from support.oracle_checks import stored


def profile(row):
    """By the other contour than what is stored: they share neither a path nor a step."""
    asked = [row[name] for name in ("q", "sigma", "steps", "epsilon", "direction")]
    others = {"line": ("bent",), "bent": ("line", "bent")}
    return psg.profile(*asked, methods=others.get(row["method"], ("line", "bent")))[0]


def mixture(row):
    laws, remove = (row["sigma"], row["shifts"], row["weights"]), row["direction"] == "remove"
    if row["family"] == "two":
        return shift_mixture.two_steps(*laws, row["epsilon"], remove, 18)
    return shift_mixture.line(*laws, row["steps"], row["epsilon"], remove)


ORACLES = {
    "psg_profile": profile,
    "psg_renyi": lambda row: moments.renyi(*(row[x] for x in ("q", "sigma", "alpha", "direction"))),
    "exchange": lambda row: exchange.profile(
        *(row[x] for x in ("distance", "q", "steps", "epsilon"))
    ),
    "shift_mixture": mixture,
    "shift_compositions": lambda row: shift_compositions.line(
        row["parts"], row["epsilon"], row["direction"] == "remove"
    ),
    "shift_mixture_renyi": lambda row: divergence(
        row["sigma"], row["shifts"], row["weights"], row["order"], row["direction"] == "add"
    ),
}


def ends(found):
    if isinstance(found, tuple):
        with mpmath.workdps(40):
            return [Decimal(mpmath.nstr(end, 30)) for end in found]
    return map(Decimal, moments.enclosing_decimals(found))


@pytest.mark.slow
@pytest.mark.parametrize("name", ORACLES)
def test_rows_are_enclosed_again(name):
    judged, rows = 0, stored(f"{name}.jsonl")
    for row in rows[::20]:
        ctx.prec = 200
        try:
            low, high = ends(ORACLES[name](row))
        except ArithmeticError:  # the other contour serves other problems
            continue
        judged += 1
        assert low <= Decimal(row["upper"]), row
        assert high >= Decimal(row["lower"]), row
    assert judged >= 0.3 * len(rows[::20])


ELEMENTARY = {
    name: getattr(arb, name)
    for name in ("exp", "expm1", "log", "log1p", "sin", "cos", "erf", "erfc", "atan2")
}
ELEMENTARY |= {"pow": lambda x, y: x**y, "ndtr": lambda x: (-x / arb(2).sqrt()).erfc() / 2}


def test_elementary_functions_are_those_of_balls():
    """A row has the arguments, the double next to the truth, and the rest in units of roundoff."""
    ctx.prec = 400
    rows = json.loads((files("accountant.selftest") / "elementary.json").read_text())
    assert set(rows) == set(ELEMENTARY)
    for name, function in ELEMENTARY.items():
        for *arguments, nearest, rest in rows[name]:
            at = float.fromhex(nearest)
            truth = function(*map(arb, map(float.fromhex, arguments)))
            apart = (truth - arb(at)) / (arb(2) ** -53 * abs(arb(at)))
            assert abs(apart - arb(rest)) <= 6e-5, (name, arguments)

"""The doctor's elementary functions: stored truths are true, a failure names its function."""

import mpmath
import numpy as np
import pytest

from accountant._core import tools
from accountant.selftest import numerics

U = 2.0**-53


def exact(name, values):
    """What mpmath says, which had no part in the stored truths."""
    if name == "ndtr":
        return mpmath.ncdf(values[0])
    if name == "pow":
        return mpmath.power(*values)
    return getattr(mpmath, name)(*values)


def test_the_stored_truths():
    """Every tenth of them, to the digits stored."""
    for name, truths in numerics._elementary().items():
        rows = list(zip(*truths.arguments, truths.nearest, truths.rest, strict=True))
        assert len(rows) >= 60
        for *values, nearest, rest in rows[::10]:
            with mpmath.workdps(60):
                truth = exact(name, [mpmath.mpf(float(x)) for x in values])
                stored = mpmath.mpf(float(nearest))
                found = (truth - stored) / (abs(stored) * mpmath.mpf(2) ** -53)
                assert abs(found - float(rest)) <= 6e-5, (name, values)


def faults(cases):
    return [fault for fault in cases if fault is not None]


@pytest.mark.parametrize("name", tools.LIBM)
def test_a_failure_says_which_function(name, monkeypatch):
    """One function that errs by 10 units more than it may, at one argument."""
    true = tools.libm

    def broken(which, *arguments):
        values = true(which, *arguments)
        if which == name:
            values[7] *= 1.0 + 30.0 * U
        return values

    monkeypatch.setattr(tools, "libm", broken)
    found = faults(numerics.libm())
    assert len(found) == 1
    assert found[0].startswith(f"the C library's {name} errs by ")
    assert numerics._elementary()[name].arguments[0][7].hex() in found[0]


def test_an_answer_that_is_no_number_is_a_fault(monkeypatch):
    monkeypatch.setattr(tools, "vmath", lambda name, x: np.full_like(x, np.nan))
    assert len(faults(numerics.own())) == len(list(numerics.own()))


def test_the_worst_that_is_known_is_among_the_arguments():
    """Where an erfc in use errs by 7 units, which a budget of 5 would refuse."""
    assert numerics._elementary()["erfc"].rest.size > 300
    worst = float.fromhex("0x1.3fafa066d0f45p+0")
    assert worst in numerics._elementary()["erfc"].arguments[0]


def test_values_of_two_arguments():
    x, y = np.array([1.0, -2.0]), np.array([3.0, 0.5])
    assert tools.libm("atan2", x, y).tolist() == np.arctan2(x, y).tolist()
    assert tools.libm("exp", x).tolist() == pytest.approx(np.exp(x).tolist(), rel=1e-15)
    assert tools.libm("log", np.empty(0)).size == 0
    with pytest.raises(ValueError, match="do not fit"):
        tools.libm("pow", x, y[:1])
    with pytest.raises(KeyError):
        tools.vmath("tan", x)

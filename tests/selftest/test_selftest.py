"""accountant doctor: quiet on a sound installation, loud on every broken one."""

import json
from decimal import Decimal

import mpmath
import numpy as np
import pytest
from click.testing import CliRunner

from accountant import selftest
from accountant._core import answers, tools, training
from accountant.analyses import mixed
from accountant.cli import main
from accountant.ledger import Accountant
from accountant.mechanisms import Gaussian, Laplace
from support import oracle_checks


def run(*arguments):
    return CliRunner().invoke(main, ["doctor", *arguments])


def test_this_installation_is_sound():
    done = run("--json")
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert answer["sound"] is True
    assert [check["faults"] for check in answer["checks"]] == [[]] * 12
    assert sum(check["cases"] for check in answer["checks"]) > 5000
    assert {"accountant", "python", "numpy", "scipy"} <= set(answer["versions"])


def test_the_table(monkeypatch):
    monkeypatch.setattr(selftest, "_ALL", selftest._ALL[6:])
    done = run()
    assert done.exit_code == 0
    assert "agree with the stored enclosures" in done.output
    assert "CPython" in done.output or "PyPy" in done.output


def faults(name):
    """What one check alone finds."""
    return [fault for fault in dict(selftest._ALL)[name]() if fault is not None]


def smaller(function):
    """A bound a hair too small: unsafe, and invisible to a tolerance."""

    def broken(*arguments):
        _, upper = function(*arguments)
        return upper * (1 - 2e-7), upper * (1 - 1e-7)

    return broken


def off(function, units):
    """A function that errs by so many units of roundoff more."""
    return lambda *arguments: function(*arguments) * (1.0 + units * 2.0**-53)


CORE = answers
BREAKAGES = {
    "the C library's functions": (tools, "libm", off(tools.libm, 30.0)),
    "the core's own functions": (tools, "vmath", off(tools.vmath, 10.0)),
    "NumPy's functions and the normal distribution": (np, "expm1", lambda x: np.exp(x) - 1.0),
    "DP-SGD: privacy profiles": (CORE, "delta_bounds", smaller(CORE.delta_bounds)),
    "DP-SGD: inverted for ε": (CORE, "epsilon_bounds", smaller(CORE.epsilon_bounds)),
    "Rényi divergences": (CORE, "renyi_bounds", smaller(CORE.renyi_bounds)),
    "Gaussian noise, closed form": (Gaussian, "delta_bounds", smaller(Gaussian.delta_bounds)),
    "different Gaussians, on a contour": (mixed, "delta_bounds", smaller(mixed.delta_bounds)),
    "other mechanisms, on a grid": (selftest, "Laplace", lambda b: Laplace(b * 1.001)),
    "the noise generator's cipher": (training, "chacha20", lambda key, counter, out: None),
    "ledger files and locks": (Accountant, "__len__", lambda self: 0),
}


@pytest.mark.parametrize("name", BREAKAGES)
def test_every_breakage_is_found(name, monkeypatch):
    home, attribute, broken = BREAKAGES[name]
    monkeypatch.setattr(home, attribute, broken)
    assert faults(name)


def test_every_numeric_check_has_its_breakage():
    assert set(BREAKAGES) | {"floating-point arithmetic"} == set(dict(selftest._ALL))


def test_a_fault_is_told_in_words(monkeypatch):
    monkeypatch.setattr(CORE, "renyi_bounds", smaller(CORE.renyi_bounds))
    monkeypatch.setattr(selftest, "_ALL", selftest._ALL[6:7])
    assert json.loads(run("--json").stdout)["sound"] is False
    done = run()
    assert done.exit_code == 1
    assert "misses the truth at q = " in done.output
    assert "do not trust" in done.stderr


def test_brackets_that_say_nothing_are_faults(monkeypatch):
    monkeypatch.setattr(mixed, "delta_bounds", lambda *_: (0.0, 1.0))
    assert "is wide" in faults("different Gaussians, on a contour")[0]


def test_flushed_subnormals_are_found(monkeypatch):
    class Info:
        min = 0.0

    monkeypatch.setattr(selftest.sys, "float_info", Info)
    assert "subnormal" in "".join(filter(None, selftest.arithmetic()))


def test_the_stored_rows_are_the_oracles():
    pytest.importorskip("flint")
    from support.oracle.composed import ball, gaussian, laplace, randomized_response

    def agrees(row, value):
        # Ball arithmetic encloses: the two enclosures of one truth must overlap.
        from support.oracle.moments import enclosing_decimals

        low, high = map(Decimal, enclosing_decimals(value))
        return low <= Decimal(row["upper"]) and Decimal(row["lower"]) <= high

    for row in selftest.rows("gaussian"):
        assert agrees(row, gaussian(ball(1.0) / ball(row["sigma"]), row["epsilon"]))
    for row in selftest.rows("laplace"):
        assert agrees(row, laplace(row["scale"], row["count"], row["epsilon"]))
    for row in selftest.rows("response"):
        assert agrees(row, randomized_response(row["pure"], row["count"], row["epsilon"]))
    for name, kind in (("psg_profile", "profile"), ("psg_renyi", "renyi")):
        with (oracle_checks.DATA / f"{name}.jsonl").open() as lines:
            known = {(r["lower"], r["upper"], r["q"]) for r in map(json.loads, lines)}
        for row in selftest.rows(kind):
            assert (row["lower"], row["upper"], row["q"]) in known


def exact(name, values):
    """What mpmath says, which had no part in the stored truths."""
    if name == "ndtr":
        return mpmath.ncdf(values[0])
    if name == "pow":
        return mpmath.power(*values)
    return getattr(mpmath, name)(*values)


def test_the_stored_truths():
    """Every tenth of them, to the digits stored."""
    for name, truths in selftest._elementary().items():
        rows = list(zip(*truths.arguments, truths.nearest, truths.rest, strict=True))
        assert len(rows) >= 60
        for *values, nearest, rest in rows[::10]:
            with mpmath.workdps(60):
                truth = exact(name, [mpmath.mpf(float(x)) for x in values])
                stored = mpmath.mpf(float(nearest))
                found = (truth - stored) / (abs(stored) * mpmath.mpf(2) ** -53)
                assert abs(found - float(rest)) <= 6e-5, (name, values)


@pytest.mark.parametrize("name", tools.LIBM)
def test_a_failure_says_which_function(name, monkeypatch):
    """One function that errs by 10 units more than it may, at one argument."""
    true = tools.libm

    def broken(which, *arguments):
        values = true(which, *arguments)
        if which == name:
            values[7] *= 1.0 + 30.0 * 2.0**-53
        return values

    monkeypatch.setattr(tools, "libm", broken)
    found = faults("the C library's functions")
    assert len(found) == 1
    assert found[0].startswith(f"the C library's {name} errs by ")
    assert selftest._elementary()[name].arguments[0][7].hex() in found[0]


def test_an_answer_that_is_no_number_is_a_fault(monkeypatch):
    monkeypatch.setattr(tools, "vmath", lambda name, x: np.full_like(x, np.nan))
    assert len(faults("the core's own functions")) == len(list(selftest.own()))


def test_the_worst_that_is_known_is_among_the_arguments():
    """Where an erfc in use errs by 7 units, which a budget of 5 would refuse."""
    assert selftest._elementary()["erfc"].rest.size > 300
    worst = float.fromhex("0x1.3fafa066d0f45p+0")
    assert worst in selftest._elementary()["erfc"].arguments[0]


def test_values_of_two_arguments():
    x, y = np.array([1.0, -2.0]), np.array([3.0, 0.5])
    assert tools.libm("atan2", x, y).tolist() == np.arctan2(x, y).tolist()
    assert tools.libm("exp", x).tolist() == pytest.approx(np.exp(x).tolist(), rel=1e-15)
    assert tools.libm("log", np.empty(0)).size == 0
    with pytest.raises(ValueError, match="do not fit"):
        tools.libm("pow", x, y[:1])
    with pytest.raises(KeyError):
        tools.vmath("tan", x)

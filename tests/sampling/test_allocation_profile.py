"""The profile of random allocation by its transform: against many digits, and at the extremes."""

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

import accountant as ac
from accountant import sampling
from accountant.sampling import allocation_line, allocation_plan, allocation_profile
from accountant.sampling.allocation_profile import AllocationProfile
from support.oracle.allocation import allocation_delta, put_of_few
from support.oracle.samplers import allocation_profile as quadrature

# Digits of support/oracle/allocation.py, which takes seconds for each.
CASES = [
    (1.0, 1000, 0.87, False, "1.046757511901749033171e-12"),
    (1.0, 1000, 0.3, True, "5.830245984130728899976e-17"),
    (2.0, 30, 0.4, False, "8.232176854373425081155e-7"),
    (5.0, 50, 0.0, True, "0.01139472183183205778266"),
    (1.0, 10**6, 0.004, False, "4.237704425997504026856e-7"),
    (1.0, 100, 0.3, True, "0.0003523752100544303112457"),
    (1.0, 100, 0.3, False, "0.0009688358636665722651696"),
    (1.0, 100, 1.0, False, "3.015774481403926805890e-7"),
]
TRUTHS = {case[:4]: Fraction(case[4]) for case in CASES}


@pytest.mark.parametrize("case", CASES)
def test_many_digits_lie_inside(case):
    noise, steps, epsilon, add, digits = case
    found = AllocationProfile(noise, steps).delta_bounds(epsilon, add)
    assert found.lower <= Fraction(digits) <= found.upper
    assert found.upper <= found.lower * (1.0 + 1e-8)


@pytest.mark.long
def test_the_stored_digits():
    assert abs(allocation_delta(1.0, 100, 0.3, True) - arb(CASES[5][4])) < 1e-24


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.6, 1.0, 3.0])
@pytest.mark.parametrize("steps", [10, 100, 5000])
@pytest.mark.parametrize("at", [0.2, 2.0, 5.0])
@pytest.mark.parametrize("add", [False, True])
def test_many_digits_over_a_sweep(noise, steps, at, add):
    epsilon = at * math.sqrt(math.expm1(noise**-2) / steps)
    truth = allocation_delta(noise, steps, epsilon, add)
    found = AllocationProfile(noise, steps).delta_bounds(epsilon, add)
    assert found.lower <= truth <= found.upper


@pytest.mark.long(keep=10)
@pytest.mark.parametrize("noise", [0.7, 1.0, 4.0])
@pytest.mark.parametrize("epsilon", [-1.0, -0.1, 0.0, 0.4, 1.5])
@pytest.mark.parametrize("add", [False, True])
def test_two_steps_and_either_sign(noise, epsilon, add):
    truth = quadrature(noise, 2, epsilon, add, 80_000)
    found = AllocationProfile(noise, 2).delta_bounds(epsilon, add)
    # The oracle works in doubles.
    assert found.lower <= truth * (1.0 + 1e-11) + 1e-14
    assert found.upper >= truth * (1.0 - 1e-11) - 1e-14


@pytest.mark.long(keep=6)
@pytest.mark.parametrize("noise", [1e-3, 0.1, 30.0, 1e5, 1e9])
@pytest.mark.parametrize("steps", [2, 1000, 10**9])
def test_extremes_stay_in_order(noise, steps):
    one = AllocationProfile(noise, steps)
    plain = ac.Gaussian(noise)
    for add in (False, True):
        last = 1.0
        for epsilon in (0.0, 1e-9, 0.1, 40.0, 700.0):
            found = one.delta_bounds(epsilon, add)
            assert 0.0 <= found.lower <= found.upper <= plain.delta(epsilon) * (1.0 + 1e-9) + 2e-290
            assert found.lower <= last
            last = float(found.upper)


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("add", [False, True])
def test_the_inverse_is_one(delta, add):
    one = AllocationProfile(1.0, 300)
    found = one.epsilon_bounds(delta, add)
    assert found.upper <= found.lower * (1.0 + 1e-8)
    # A line of its own gives other last digits, and its bracket meets this one.
    assert AllocationProfile(1.0, 300).delta_bounds(found.upper, add).lower <= delta
    assert AllocationProfile(1.0, 300).delta_bounds(found.lower, add).upper >= delta


def test_no_epsilon_where_delta_is_large():
    assert AllocationProfile(1.0, 300).epsilon_bounds(0.5, False).upper == 0.0


def test_a_release_alone_is_answered_by_its_profile():
    assert "profile" in str(sampling.Allocated(1.0, steps=50).explain(1e-5))


# Few steps -------------------------------------------------------------------------------------

# δ of removal at ε by put_of_few of support/oracle/allocation.py, which takes ten seconds for each,
# the δ of a question whose ε is near, and how wide that was when lines and laws answered it.
FEW = [
    (1.0, 2, 3.6973852, "1.00000005448885249993043396624e-5", 1e-5, 6.7e-5),
    (0.4, 30, 9.80557, "9.99996898629760703173381931040e-6", 1e-5, 1.5e-4),
    (0.4, 30, 4.05247, "0.0220000149016431457567504398807", 0.022, 3.9e-4),
]


@pytest.mark.parametrize("case", FEW)
def test_few_steps_are_bracketed(case):
    noise, steps, epsilon, digits, delta, width = case
    one = AllocationProfile(noise, steps)
    found = one.delta_bounds(epsilon, False)
    assert found.lower <= Fraction(digits) <= found.upper
    inverse = one.epsilon_bounds(delta, False)
    assert inverse.upper <= inverse.lower * (1.0 + 0.1 * width)
    # δ falls: an end is on the side of ε on which the δ asked for is.
    assert inverse.upper >= epsilon if Fraction(digits) >= delta else inverse.lower <= epsilon


@pytest.mark.parametrize("case", FEW)
def test_a_line_is_not_asked_where_it_is_long(case, monkeypatch):
    """Lines took .1 s each, some dozens of them for one question."""
    lines = []
    contour = allocation_profile.contour

    def counted(*arguments, **options):
        lines.append(contour(*arguments, **options))
        return lines[-1]

    monkeypatch.setattr(allocation_profile, "contour", counted)
    AllocationProfile(*case[:2]).epsilon_bounds(case[4], False)
    assert not any(lines)


@pytest.mark.parametrize("case", FEW)
def test_a_first_answer_takes_few_puts(case, monkeypatch):
    """It took 20 of 1 to 3 ms each: a search from next to nothing, and the same for addition."""
    puts = []
    put = allocation_profile.put

    def counted(*arguments):
        puts.append(arguments)
        return put(*arguments)

    monkeypatch.setattr(allocation_profile, "put", counted)
    allocation_profile.profile_of.cache_clear()
    epsilon = sampling.Allocated(case[0], steps=case[1]).epsilon(case[4] * (1.0 + 1e-9))
    assert len(puts) <= 7
    assert epsilon == pytest.approx(case[2], rel=1e-4)
    # The direction of addition, asked at that ε alone, has less than δ there.
    assert AllocationProfile(*case[:2]).delta_bounds(epsilon, True).upper <= case[4]


@pytest.mark.parametrize(
    ("noise", "steps", "kappa", "digits"),
    [
        (1.0, 2, -0.95, "8.148593470933769475792548738e-7"),
        (0.4, 30, -0.96, "4.929033620964002965888962998e-7"),
        (0.15, 2, 1e6, "1000000.840412402384366095221"),
        (0.15, 40, 10.0, "10.98747090639167436818871731"),
        (4.0, 3, 0.125, "0.14334029581386483866"),
        (0.2, 2, -0.9375, "0.05846187849470711181699102168"),
        (0.338, 165, 5.016622908273264, "5.156314965615263311613041793"),
    ],
)
def test_bent_paths_enclose_many_digits(noise, steps, kappa, digits):
    lower, upper = allocation_profile.put(1.0 / noise, steps, kappa)
    assert lower <= Fraction(digits) <= upper <= lower * (1.0 + 1e-11)


@pytest.mark.long
def test_the_stored_digits_of_few_steps():
    ctx.prec = 200
    noise, steps, epsilon, digits = FEW[0][:4]
    kappa = arb(epsilon).exp() - 1
    # With a fineness of 8 in place of 5 the twentieth digit is another.
    assert abs(put_of_few(noise, steps, kappa, 5) - kappa - arb(digits)) < 1e-19


def test_a_step_too_long_for_the_path_would_be_noticed(monkeypatch):
    digits = Fraction("39.34001000181118763175565372")
    monkeypatch.setattr(allocation_profile, "STEPS", np.array([0.6]))
    lower, upper = allocation_profile.put(1.0, 2, 39.34)
    assert lower <= digits <= upper
    assert upper > lower * (1.0 + 1e-9)
    nothing = lambda *arguments: 0.0 * arguments[5]  # noqa: E731
    monkeypatch.setattr(allocation_profile, "_around", nothing)
    lower, upper = allocation_profile.put(1.0, 2, 39.34)
    assert not lower <= digits <= upper


# Faults that the enclosure must notice ---------------------------------------------------------


def _brackets(noise, steps, epsilon, add):
    truth = TRUTHS[noise, steps, epsilon, add]
    found = AllocationProfile(noise, steps).delta_bounds(epsilon, add)
    return bool(found.lower <= truth <= found.upper)


def test_aliases_left_out_would_be_noticed(monkeypatch):
    plan = allocation_plan.make_plan

    def coarse(*arguments):
        found = plan(*arguments)
        return found._replace(step=8.0 * found.step)

    monkeypatch.setattr(allocation_line, "make_plan", coarse)
    assert _brackets(1.0, 100, 0.3, True)
    monkeypatch.setattr(allocation_line.Contour, "_aliases", lambda self, kappa: 0.0 * kappa)
    assert not _brackets(1.0, 100, 0.3, True)


def test_a_cut_line_would_be_noticed(monkeypatch):
    plan = allocation_plan.make_plan

    def short(*arguments):
        found = plan(*arguments)
        return found._replace(terms=max(found.terms // 6, 2))

    monkeypatch.setattr(allocation_line, "make_plan", short)
    assert _brackets(1.0, 100, 0.3, False)
    monkeypatch.setattr(allocation_line, "_log_beyond", lambda *arguments: -800.0)
    assert not _brackets(1.0, 100, 0.3, False)


def test_steps_beyond_the_window_would_be_noticed(monkeypatch):
    assert _brackets(1.0, 100, 1.0, False)
    contour = allocation_line.Contour.__init__

    def forgetful(self, part, *others):
        contour(self, part._replace(mass_above=0.0, mean_above=0.0), *others)

    monkeypatch.setattr(allocation_line.Contour, "__init__", forgetful)
    assert not _brackets(1.0, 100, 1.0, False)


@pytest.mark.long
def test_lines_that_resolve_nothing_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sampling.Allocated(0.3, steps=10**6).epsilon_bounds(1e-6)

"""What mutation testing (support/hardening) found nobody watching where grids are composed."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from accountant.analyses import pld
from accountant.analyses.pld import composed_law, fft, loss_grid
from accountant.analyses.pld.composed_law import ComposedLaw
from accountant.analyses.pld.loss_grid import GridPart, GridPlan, discretise
from accountant.analyses.pld.saddle_point import coarse_law, reach, saddle_at_epsilon
from support.grid_pairs import Atoms, Gaussian, Laplace, randomized_response

mp = mpmath.mpf
U = mp(2) ** -53


pytestmark = pytest.mark.usefixtures("sixty_digits")


class Moved(Laplace):
    loss_error = 2.0**-20


def leaky():
    return Atoms([0.25, 0.5, 0.25], [0.5, 0.5, 0.0], (-math.log(2.0), math.log(2.0)))


MIXES = {
    "laplace and gaussian": [(Laplace(2.0), 3, -0.5), (Gaussian(0.7), 2, None)],
    "atoms": [(randomized_response(1.0), 5, -1.0)],
    "moved": [(Moved(3.0), 4, None), (Gaussian(0.3), 1, None)],
    "leaky": [(leaky(), 2, 0.0), (Gaussian(1.0), 1, None)],
}


class Built:
    """A composition, with what went into it, recorded on the way."""

    def __init__(
        self, monkeypatch, mix, epsilon=1.0, spacing=2.0**-6, log_loss=-30.0, log_tail=None
    ):
        self.parts = [
            GridPart(pair, n, coarse_law(pair, n), offset, False) for pair, n, offset in MIXES[mix]
        ]
        laws = [part.law for part in self.parts]
        tail = log_loss if log_tail is None else log_tail
        self.plan = GridPlan(saddle_at_epsilon(laws, epsilon), spacing, tail, log_loss)
        self.laws, self.sides = [], []

        def recorded_law(*given):
            self.laws.append(discretise(*given))
            return self.laws[-1]

        def recorded_side(tilted, first, size, outside):
            self.sides.append((tilted, first, size, outside))
            return fft.compose(tilted, first, size, outside)

        monkeypatch.setattr(loss_grid, "discretise", recorded_law)
        monkeypatch.setattr(composed_law, "compose", recorded_side)
        self.one = ComposedLaw(self.parts, self.plan, 2**30)
        assert self.one._lower.total.size == self.one._upper.total.size
        self.tilt = self.plan.saddle.tilt
        self.counts = [part.times for part in self.parts]


@pytest.fixture(params=MIXES)
def built(request, monkeypatch):
    return Built(monkeypatch, request.param)


def weigh(values, counts):
    return sum(k * mp(v) for k, v in zip(counts, values, strict=True))


def test_errors_of_losses_are_added_up(built):
    one, spacing = built.one, built.plan.spacing
    steps = abs(mp(one._offset)) + (abs(one._last) + one.size) * mp(spacing)
    own = sum(
        n * mp(part.pair.loss_error) for n, part in zip(built.counts, built.parts, strict=True)
    )
    truth = weigh([law.loss_error for law in built.laws], built.counts) + own + 16 * U * steps
    assert truth <= one._shift <= truth * (1 + mp("3e-9"))
    assert one._offset == sum(
        n * law.knots.offset for n, law in zip(built.counts, built.laws, strict=True)
    )
    assert one._last == sum(
        n * law.knots.last for n, law in zip(built.counts, built.laws, strict=True)
    )
    top = sum(
        n * (Fraction(part.pair.support[1]) + Fraction(part.pair.loss_error))
        if part.pair.support[1] < math.inf else math.inf
        for n, part in zip(built.counts, built.parts, strict=True)
    )  # fmt: skip
    largest = loss_grid.largest_loss(built.parts)
    if top == math.inf:
        assert largest == one._top == math.inf
    else:
        assert top <= Fraction(largest) <= top * (1 + Fraction(1, 2**48))
        assert Fraction(largest) + Fraction(one._shift) <= Fraction(one._top)
        assert one._top <= (largest + one._shift) * (1 + 2**-51)


def test_scales_make_laws_of_one(built):
    one = built.one
    scales, size = [], mp(0)
    for law, part, k in zip(built.laws, built.parts, built.counts, strict=True):
        centre = mp(part.law.cumulants(built.tilt)[1])
        t = law.knots.losses()
        scale = mpmath.log(
            sum(
                mp(m) * mpmath.exp(built.tilt * (mp(x) - centre))
                for m, x in zip(law.upper, t, strict=True)
            )
        )
        scales.append(scale)
        size += k * (abs(scale) + built.tilt * abs(centre))
        assert abs(scale - one._log_scales[len(scales) - 1]) <= 1e-12
    assert abs(weigh(scales, built.counts) - one._log_scale) <= 1e-11
    centres = [part.law.cumulants(built.tilt)[1] for part in built.parts]
    assert abs(weigh(centres, built.counts) - one._centre) <= 1e-13
    truth = mp("1e-12") + 16 * U * size
    assert abs(one._rounding / truth - 1) <= 1e-9


def test_tilted_weights_are_rounded_outwards(built):
    one = built.one
    for side, upper in zip(built.sides, (True, False), strict=True):
        for i, (law, tilted) in enumerate(zip(built.laws, side[0], strict=True)):
            assert (tilted.first, tilted.times) == (law.knots.first, built.counts[i])
            masses, t = law.upper if upper else law.lower, law.knots.losses()
            scale, centre = mp(one._log_scales[i]), mp(one._centres[i])
            for j in range(0, t.size, 7):
                distance = mp(t[j]) - centre
                truth = mp(masses[j]) * mpmath.exp(built.tilt * distance - scale)
                error = U * (
                    24 + 8 * abs(scale) + 8 * built.tilt * (abs(distance) + 2 * abs(centre))
                )
                expected = truth * (1 + error if upper else 1 - error)
                # The stated error, and the rounding it is there for.
                assert abs(tilted.weights[j] - expected) <= truth * error * mp("0.15")
                plain = masses[j] * np.exp(built.tilt * (t[j] - one._centres[i]) - float(scale))
                if plain > 1e-300:
                    stated = mp(tilted.weights[j]) / mp(plain) - 1
                    assert abs(stated - (error if upper else -error)) <= 3 * U


def test_mass_at_infinity_is_composed_outwards(built):
    for side, upper in ((built.one._upper, True), (built.one._lower, False)):
        kept = mp(1)
        for law, k in zip(built.laws, built.counts, strict=True):
            kept *= (1 - mp(law.infinite_upper if upper else law.infinite_lower)) ** k
        truth = 1 - kept
        assert (
            abs(side.infinite - truth * (1 + mp("4e-15") * (1 if upper else -1))) <= truth * 1e-15
        )


@pytest.mark.parametrize("mix", ["laplace and gaussian", "moved"])
@pytest.mark.parametrize("log_loss", [-3.0, -8.0])
def test_what_lies_outside_the_window_is_bounded(monkeypatch, mix, log_loss):
    built = Built(monkeypatch, mix, spacing=2.0**-4, log_loss=log_loss, log_tail=-300.0)
    for tilted, first, size, outside in built.sides:
        low = sum(t.first * t.times for t in tilted)
        weights = np.ones(1)
        for part in tilted:
            for _ in range(part.times):
                weights = np.convolve(weights, part.weights)
        index = low + np.arange(weights.size)
        truth = weights[(index < first) | (index >= first + size)].sum()
        assert truth <= outside
        # Theorem G6 at the orders that were chosen for the two ends.
        orders = reach([part.law for part in built.parts], built.tilt, log_loss)[2:]
        one, expected = built.one, mp(0)
        start = mp(one._offset) + first * mp(one._spacing) - mp(one._centre)
        stop = start + size * mp(one._spacing)
        for cut, order, end in ((first > low, orders[0], start),
                                (first + size <= one._last, orders[1], stop)):  # fmt: skip
            if not cut:
                continue
            moment, rare, whole = mp(1), mp(0), mp(1)
            for part, law, centre in zip(tilted, built.laws, one._centres, strict=True):
                sums = [mp(w) * mpmath.exp(order * (mp(t) - centre))
                        for w, t in zip(part.weights, law.knots.losses(), strict=True)]  # fmt: skip
                lowest = part.times * part.weights[0]
                if order < 0 and lowest <= math.exp(log_loss):
                    rare, sums = rare + lowest, sums[1:]
                moment *= sum(sums) ** part.times
                whole *= max(sum(map(mp, part.weights)), mp(1)) ** part.times
            expected += moment * mpmath.exp(-order * end) + rare * whole
        assert expected <= outside <= expected * (1 + mp("1e-5"))


def test_what_lands_a_period_farther_up_is_next_to_nothing(monkeypatch):
    """Theorem G6: what lies below the window weighs e^-period of its mass where it lands."""
    built = Built(monkeypatch, "laplace and gaussian", epsilon=2.0, spacing=2.0**-4, log_loss=-4.0)
    one = built.one
    assert one._skips
    for side, (tilted, first, size, _) in zip((one._upper, one._lower), built.sides, strict=True):
        weights = np.ones(1)
        for part in tilted:
            for _ in range(part.times):
                weights = np.convolve(weights, part.weights)
        index = sum(t.first * t.times for t in tilted) + np.arange(weights.size)
        below, gone = index < first, mp(0)
        assert below.any()
        for knot, weight in zip(index[below].tolist(), weights[below].tolist(), strict=True):
            landed = first + (knot - first) % size
            at = mp(one._offset) + landed * mp(one._spacing)
            # Without the factor 1 - e^-v, at an ε of 0.
            gone += mp(weight) * mpmath.exp(
                mp(one._log_scale) - mp(built.tilt) * (at - mp(one._centre))
            )
        assert 0 < gone <= side.alias <= 1e-2


def profile(side, built, epsilon):
    """S(ε)·Σ of Theorem G7, from the weights, with the error that is stated for it."""
    one, total = built.one, side.total
    value, error, nearest = fft.total_sums(
        total, one._offset, one._spacing, built.tilt, epsilon, one._last
    )
    at = mp(one._log_scale) - mp(built.tilt) * (mp(epsilon) + nearest - mp(one._centre))
    factor = mpmath.exp(at)
    size = abs(at) + mp(built.tilt) * (abs(mp(epsilon)) + nearest + mp(one._steps))
    rounding = mp(one._rounding) + 16 * U * size
    return factor * value, factor * (error + (value + error) * 2 * rounding)


def test_the_profile_is_read_with_its_errors(built):
    one = built.one
    for epsilon in (0.0, 0.3, 1.0, 1.4):
        shifted = epsilon - one._shift
        value, error = profile(one._upper, built, shifted)
        found = one._evaluate(one._upper, shifted)
        for got, expected in zip(found, (value, error), strict=True):
            assert abs(got - expected) <= 1e-12 * abs(expected)
        assert abs(found[1] - error) <= 1e-9 * error
        expected = min(value + error + mp(one._upper.infinite), 1)
        assert expected <= one.delta_upper(epsilon) * (1 + mp("1e-14"))
        assert one.delta_upper(epsilon) <= expected * (1 + mp("1e-14"))
        value, error = profile(one._lower, built, epsilon + one._shift)
        expected = max(value - error, 0) + mp(one._lower.infinite)
        assert abs(one.delta_lower(epsilon) - expected) <= expected * mp("1e-14")
        assert one.delta_lower(epsilon) <= one.delta_upper(epsilon)


def test_the_profile_far_away(built):
    one = built.one
    beyond = one.high + 1.0
    assert one.delta_lower(beyond) == one._lower.infinite * (1.0 - 1e-15)
    assert one.delta_upper(beyond) == one.delta_upper(one.high + one._shift)
    assert one.delta_lower(one.high - one._shift) == one._lower.infinite * (1.0 - 1e-15)


def test_below_its_window_nothing_is_known_above(monkeypatch):
    built = Built(monkeypatch, "laplace and gaussian", epsilon=3.0, log_loss=-3.0)
    one = built.one
    assert not one._upper.total.whole
    edge = one._low + one._shift
    assert one._low == pytest.approx(one._offset + (one._begin + 1) * one._spacing, rel=1e-14)
    assert one.delta_upper(edge - 1e-9) == 1.0
    assert one.delta_upper(edge + 1e-9) < 1.0
    assert one.covers(one._low + 2 * one._shift + 1e-9)
    assert not one.covers(one._low + 2 * one._shift - 1e-9)
    assert one.delta_lower(one._low - 0.5) == one.delta_lower(one._low - one._shift) > 0.0


def test_epsilons_are_certified_by_the_profile_without_a_walk(built):
    one, asked = built.one, []
    evaluate = one._evaluate
    one._evaluate = lambda *given: asked.append(given) or evaluate(*given)
    for delta in (0.3, 0.1, 0.03):
        asked.clear()
        upper, lower = one.epsilon_upper(delta, 1e-9), one.epsilon_lower(delta, 1e-9)
        assert len(asked) <= 60
        if delta < one._upper.infinite:
            assert upper == math.inf
        else:
            assert one.delta_upper(upper) <= delta
            # A little further on neither holds.
            assert upper < 1e-6 or one.delta_upper(upper - 1e-6) > delta
            assert upper == 0.0 or one.delta_upper(upper * (1.0 - 1e-7)) > delta
        if delta < one._lower.infinite:
            assert lower == math.inf
        elif lower > 0.0:
            assert one.delta_lower(lower) > delta
        assert one.delta_lower(lower * (1.0 + 1e-7) + 1e-9) <= delta or lower == math.inf
        assert 0.0 <= lower <= upper
    assert one.epsilon_upper(1.0, 1e-9) == one.epsilon_lower(1.0, 1e-9) == 0.0


def test_log_moments_are_bounded_above():
    weights = np.array([0.1, 0.0, 0.7, 2.0])
    for exponent in ([-1.0, 5.0, 0.25, -3.0], [700.0, 0.0, 800.0, -900.0], [-800.0] * 4):
        found = composed_law._log_moment(weights, np.array(exponent))
        truth = mpmath.log(
            sum(mp(w) * mpmath.exp(x) for w, x in zip(weights.tolist(), exponent, strict=True))
        )
        room = mp("1e-12") * (1 + abs(max(exponent)))
        assert truth + room * mp("0.99") <= found <= truth + room * mp("1.01")
    assert composed_law._log_moment(np.zeros(0), np.zeros(0)) == -math.inf
    assert composed_law._exp(699.0) == math.exp(699.0)
    assert composed_law._exp(710.0) == math.inf


@pytest.mark.parametrize("log_mass", [-3.0, -12.0, -60.0])
def test_knots_reach_as_far_as_the_mass(log_mass):
    for pair, offset in (
        (Gaussian(0.7), None),
        (Laplace(2.0), -0.5),
        (randomized_response(1.0), -1.0),
    ):
        part = GridPart(pair, 4, coarse_law(pair, 4), offset, False)
        plan = GridPlan(saddle_at_epsilon([part.law], 1.0), 2.0**-6, log_mass, log_mass)
        knots = loss_grid.place(part, plan, 3)
        rare = math.exp(log_mass) / 12
        p = pair.masses(np.array([knots.losses()[0], knots.losses()[-1]])).p
        assert p[2] <= rare * 1.01 + 1e-14
        closer = pair.masses(np.array([knots.losses()[-1] * 0.9 - 2 * plan.spacing])).p[1]
        assert closer > rare * 0.5 or knots.losses()[-1] <= pair.support[1] + plan.spacing
        # Moved up to the first knot, what lies below weighs next to nothing under the tilt.
        k, tilt = part.law.cumulants(plan.saddle.tilt)[0], plan.saddle.tilt
        moved = p[0] * math.exp(tilt * knots.losses()[0] - k)
        assert moved <= 1.2 * rare or knots.losses()[0] <= part.law.low[0] + 1e-9
        assert knots.offset == (offset or 0.0)
        assert knots.last > knots.first


def test_factors_that_leave_the_doubles(built):
    one, side = built.one, built.one._upper
    value, error = one._evaluate(side, 0.9)
    inner = fft.total_sums(side.total, one._offset, one._spacing, built.tilt, 0.9, one._last)
    usual = one._log_scale
    for shift in (500.0, -600.0):
        one._log_scale = usual + shift
        found = one._evaluate(side, 0.9)
        scaled = mpmath.exp(mp(shift))
        assert abs(found[0] / (value * scaled) - 1) <= 1e-9
        assert error * scaled * (1 - mp("1e-9")) <= found[1]
    one._log_scale = usual + 700.0
    assert one._evaluate(side, 0.9) == (0.0, math.inf)
    one._log_scale = usual - 800.0
    zero, bound = one._evaluate(side, 0.9)
    assert zero == 0.0
    expected = mp("1.01") * mpmath.exp(-708) * (mp(inner[0]) + mp(inner[1]))
    assert abs(bound / expected - 1) <= 1e-9


def test_the_window_is_read_up_to_its_last_knot(monkeypatch):
    for log_loss in (-3.0, -40.0):
        built = Built(monkeypatch, "laplace and gaussian", log_loss=log_loss)
        one = built.one
        end = one._upper.total.first + one._upper.total.weights.size - 1
        knot = end - 0.5 if end < one._last else one._last + 0.5
        assert one.high == one._offset + knot * one._spacing


@pytest.mark.parametrize("kept", [1e-17, 1e-9, 0.25])
def test_what_is_public_all_but_certainly(kept):
    parts = [(Atoms([kept, 1.0 - kept], [1.0, 0.0], loss=[math.log(kept), math.inf]), 1)]
    lower, upper = pld.delta_bounds([*parts, (Gaussian(1.0), 1)], 0.5, tolerance=1e-3)
    assert 1 - mp(kept) <= upper <= 1.0
    assert 1 - mp(kept) - mp("1e-13") <= lower <= 1.0


class Blurred(Laplace):
    loss_error = 2.0**-4


def test_windows_leave_room_for_the_errors_of_losses(monkeypatch):
    monkeypatch.setitem(MIXES, "blurred", [(Blurred(3.0), 4, None), (Gaussian(0.3), 9, None)])
    built = Built(monkeypatch, "blurred", epsilon=3.0, log_loss=-1.0)
    one, saddle, room = built.one, built.plan.saddle, 4 * 2.0**-4
    assert not one._upper.total.whole
    # Both ways by as much as the losses may be off, and the profile by four of its scales.
    assert one.covers(saddle.epsilon - 4.0 / saddle.tilt - room)
    assert one.high >= saddle.epsilon + 2 * room


def test_a_hopeless_search_ends(monkeypatch):
    one, asked = Built(monkeypatch, "laplace and gaussian").one, []
    for name, answer in (("delta_upper", 1.0), ("delta_lower", 0.0)):
        asked.clear()
        monkeypatch.setattr(one, name, lambda at, value=answer: asked.append(at) or value)
        ask = one.epsilon_upper if name == "delta_upper" else one.epsilon_lower
        assert ask(0.1, 1e-3) == (one._top if name == "delta_upper" else 0.0)
        assert len(asked) <= 120

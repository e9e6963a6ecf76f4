"""Theorem 21 and its code against ball arithmetic, which shares nothing with them."""

import math
import re
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import accountant as ac
from accountant._core import answers as core
from accountant.analyses.line_laws import Laws, rows_of
from accountant.analyses.smoothed_line import SmoothedLine, covers_line
from accountant.analyses.solver import Question
from accountant.analyses.solvers import Grid

flint = pytest.importorskip("flint")
arb, acb, ctx = flint.arb, flint.acb, flint.ctx


@pytest.fixture(autouse=True)
def _many_digits():
    before, ctx.prec = ctx.prec, 160
    yield
    ctx.prec = before


def parts_of(*mechanisms):
    merged = {}
    for mechanism, count in mechanisms:
        (pair,) = mechanism.pairs() if len(mechanism.pairs()) == 1 else mechanism.pairs()[:1]
        merged[pair] = merged.get(pair, 0) + count
    return tuple(merged.items())


def line_of(parts):
    def never(_):
        raise AssertionError("another analysis was asked")

    return SmoothedLine(parts, never)


def ball(fraction):
    fraction = Fraction(fraction)
    return arb(fraction.numerator) / arb(fraction.denominator)


# The laws of the losses in ball arithmetic: {loss: mass under P}, and the mass that is left out.


def gaussian_law(sigma, shift=1):
    s2 = ball(sigma) ** 2
    reach = math.ceil(14 * sigma + shift)
    total = arb(0)
    weights = {x: (-arb(x * x) / (2 * s2)).exp() for x in range(-reach, reach + 1)}
    total = sum(weights.values(), arb(0))
    law = {}
    for x in range(-reach, reach + 1):
        loss = arb(shift * (2 * x + shift)) / (2 * s2)  # x is the distance from P's centre
        law[x] = (loss, weights[x] / total)
    return list(law.values())


def laplace_law(scale, shift=1):
    b = ball(scale)
    e = (-1 / b).exp()
    law = []
    for x in range(shift + 1):
        low = (-arb(shift - x) / b).exp() * (1 - e) / (1 + e)
        if x == 0:
            low = (-arb(shift) / b).exp() / (1 + e)
        elif x == shift:
            low = 1 / (1 + e)
        law.append((arb(2 * x - shift) / b, low))
    return law


def response_law(epsilon):
    e = ball(epsilon)
    return [(e, 1 / (1 + (-e).exp())), (-e, 1 / (1 + e.exp()))]


def product(laws):
    found = [(arb(0), arb(1))]
    for law in laws:
        found = [(x + y, p * w) for x, p in found for y, w in law if float((p * w).mid()) > 1e-40]
    return found


def profile(laws, epsilon, tail=None):
    """Enclose H(ε) of a product of laws, beside one Laplace release of reach ``tail``."""
    e, total = ball(epsilon), arb(0)
    for loss, mass in product(laws):
        x = e - loss
        if tail is None:
            value = 1 - x.exp()
            total += mass * value if float(x.mid()) < 0 else arb(0)
            continue
        a = ball(tail)
        if float(x.mid()) >= float(a.mid()):
            continue
        total += mass * (1 - x.exp() if x < -a else 1 - ((x - a) / 2).exp())
    return total


def holds(bounds, truth, left_out=1e-30):
    low, high = float(truth.mid() - truth.rad()), float(truth.mid() + truth.rad())
    # the doubles nearest to the ends of the enclosure, moved by what was left out of it
    assert bounds.upper >= low * (1 - 1e-15)
    assert bounds.lower <= high * (1 + 1e-15) + left_out


REFERENCE = [  # the design's table: exact enumeration
    ([1, 2, 3], 3.0, 2.368695872806e-2),
    ([Fraction("1.3"), Fraction("2.7"), Fraction("5.1")], 2.0, 4.674826953851e-2),
    ([Fraction("0.5"), Fraction("0.8")], 4.0, 4.628292429092e-2),
    ([4, 9], 1.5, 2.479228372408e-3),
    ([Fraction("0.7"), Fraction("1.9"), Fraction("6.3")], 4.0, 7.666432780606e-3),
    ([Fraction("0.09"), Fraction("0.5")], 6.0, 4.426136345051e-1),
]


@pytest.mark.parametrize(("squares", "epsilon", "delta"), REFERENCE)
def test_enumerated_discrete_gaussians(squares, epsilon, delta):
    mechanisms = [(ac.DiscreteGaussian(math.sqrt(each)), 1) for each in squares]
    found = line_of(parts_of(*mechanisms)).delta_bounds(epsilon)
    assert found.lower <= delta * (1 + 2e-12)
    assert found.upper >= delta * (1 - 2e-12)
    assert found.upper - found.lower <= 1e-6 * delta


def random_problem(rng):
    """Return mechanisms with counts, their laws, and the reach of a Laplace release among them."""
    mechanisms, laws, tail = [], [], None
    for _ in range(int(rng.integers(2, 4))):
        kind = rng.integers(0, 4)
        count = int(rng.integers(1, 3)) if kind else 1
        if kind == 0:
            sigma = float(np.round(rng.uniform(0.3, 3.0), 3))
            shift = int(rng.integers(1, 4))
            mechanisms.append((ac.DiscreteGaussian(sigma, sensitivity=shift), count))
            laws += [gaussian_law(sigma, shift)] * count
        elif kind == 1:
            scale = float(np.round(rng.uniform(0.4, 8.0), 3))
            shift = int(rng.integers(1, 4))
            mechanisms.append((ac.DiscreteLaplace(scale, sensitivity=shift), count))
            laws += [laplace_law(scale, shift)] * count
        elif kind == 2 or tail is not None:
            epsilon = float(np.round(rng.uniform(0.05, 3.0), 3))
            mechanisms.append((ac.RandomizedResponse(epsilon), count))
            laws += [response_law(epsilon)] * count
        else:
            scale = float(2.0 ** rng.integers(-1, 4))
            mechanisms.append((ac.Laplace(scale), 1))
            tail = Fraction(1) / Fraction(scale)
    return mechanisms, laws, tail


def size(laws):
    return math.prod(len(law) for law in laws)


@pytest.mark.long(keep=12)
@pytest.mark.parametrize("seed", range(2000))
def test_random_small_mixes_hold_their_truth(seed):
    rng = np.random.default_rng([17, seed])
    mechanisms, laws, tail = random_problem(rng)
    while size(laws) > 20_000 or len(parts_of(*mechanisms)) < 2:
        mechanisms, laws, tail = random_problem(rng)
    parts = parts_of(*mechanisms)
    solver = line_of(parts)
    most = sum(float(max(loss.mid() for loss, _ in law)) for law in laws) + float(tail or 0)
    epsilon = float(rng.uniform(0.02, 0.8)) * min(most, 12.0)
    truth = profile(laws, epsilon, tail)
    delta = float(truth.mid())
    try:
        found = solver._line_delta(epsilon)
    except ac.PrecisionError:
        assert delta > 0.3  # the line is long where δ is large
        return
    holds(found, truth)
    if 1e-12 < delta < 0.9:
        try:
            bounds = solver._line_epsilon(delta)
        except ac.PrecisionError:
            assert delta > 0.3
            return
        # H falls in ε, so that H(upper) <= δ <= H(lower)
        at_upper = profile(laws, bounds.upper, tail)
        assert float(at_upper.mid() - at_upper.rad()) <= delta
        at_lower = profile(laws, bounds.lower, tail)
        assert float(at_lower.mid() + at_lower.rad()) + 1e-30 >= delta


def transform(law_pair, z):
    """Return F(z) of one pair in ball arithmetic."""
    kind, first, second = law_pair
    if kind == "lattice":
        sigma, shift = ball(first), second
        total, at = arb(0), acb(0)
        for x in range(-math.ceil(30 * first) - 60 * shift, math.ceil(30 * first) + 60 * shift):
            q = (-arb(x * x) / (2 * sigma**2)).exp()
            total += q
            at += acb(q) * (z * acb(arb(shift * (2 * x - shift)) / (2 * sigma**2))).exp()
        return at / acb(total)
    if kind == "laplace":
        v = acb(1 / ball(first))
        t = 1 / (2 * z - 1)
        return (((z - 1) * v).exp() * (1 + t) + (-z * v).exp() * (1 - t)) / 2
    if kind == "gaussian":
        return (z * (z - 1) / acb(2 * ball(first) ** 2)).exp()
    e = acb(ball(first))
    return (((z - 1) * e).exp() + (-z * e).exp()) / (1 + (-e).exp())


@pytest.mark.long(keep=8)
@pytest.mark.parametrize("seed", range(300))
def test_nodes_are_off_by_less_than_they_say(seed):
    rng = np.random.default_rng([18, seed])
    known, mechanisms = [], []
    for _ in range(int(rng.integers(1, 4))):
        kind = ("lattice", "laplace", "response", "gaussian")[rng.integers(0, 4)]
        first = float(rng.uniform(0.3, 4.0))
        shift = int(rng.integers(1, 4))
        count = int(rng.choice([1, 1, 2, 7, 100]))
        mechanisms.append(
            {
                "lattice": lambda f=first, d=shift: ac.DiscreteGaussian(f, sensitivity=d),
                "laplace": lambda f=first: ac.Laplace(f),
                "response": lambda f=first: ac.RandomizedResponse(f),
                "gaussian": lambda f=first: ac.Gaussian(f),
            }[kind]()
        )
        known.append(((kind, first, shift), count))
    parts = tuple(
        (mechanism.pairs()[0], count)
        for mechanism, (_, count) in zip(mechanisms, known, strict=True)
    )
    laws = Laws(parts, -30.0)
    c, s = 1.0 + float(2.0 ** rng.uniform(-6, 4)), float(2.0 ** rng.uniform(-14, -6))
    b = c - 1.0  # exactly: a line's order is 1 + b
    step = float(2.0 ** rng.integers(-6, 2))
    nodes = np.empty((5, 4000))
    rows, losses, weights = rows_of(laws, b, s)
    kept, _ = core.fill_line_nodes(rows, losses, weights, c, step, 3999, nodes)
    scale, doubt = laws.log_transform(np.array([b]))
    at_c = acb(1)
    for which, count in known:
        at_c *= transform(which, acb(ball(c))) ** count
    exact = at_c.real.log()
    assert abs(float((exact - ball(float(scale[0]))).mid())) <= float(doubt[0])
    for k in {0, min(1, kept - 1), kept // 3, kept - 1} | set(rng.integers(0, kept, 3).tolist()):
        y = nodes[0, k]
        z = acb(ball(c), ball(y))
        value = (acb(ball(s) ** 2) * (z * (z - 1) - acb(ball(c) * ball(b))) / 2).exp() / at_c
        for which, count in known:
            value *= transform(which, z) ** count
        off = abs(value - acb(ball(nodes[1, k]), ball(nodes[2, k])))
        assert float(off.mid() + off.rad()) <= nodes[3, k]
        assert nodes[3, k] <= 1e-8
        most = abs(value)
        assert float(most.mid() - most.rad()) <= nodes[4, k]


def sampled_transform(q, sigma, z, add, deviations):
    """Return F(z) of one sampled step in ball arithmetic: an integral over its window."""
    p, s2 = acb(ball(q)), acb(ball(sigma) ** 2)
    power = 1 - z if add else z

    def density(x, analytic):
        mixed = (1 - p + p * ((x - 0.5) / s2).exp()).log(analytic=analytic)
        return (power * mixed - x * x / (2 * s2)).exp()

    reach = (deviations or 16) * sigma
    far = 0.0 if add else 1.0 if deviations else float(z.real.mid())
    value = acb.integral(density, acb(-reach), acb(far + reach), eval_limit=400_000)
    return value / (2 * acb.pi() * s2).sqrt()


@pytest.mark.long(keep=24)
@pytest.mark.parametrize("direct", [False, True])
@pytest.mark.parametrize("seed", range(200))
def test_sampled_steps_are_off_by_less_than_they_say(seed, direct):
    rng = np.random.default_rng([19, seed])
    steps = [
        (float(10.0 ** rng.uniform(-4, -0.05)), float(rng.uniform(0.4, 3.0)), n)
        for n in rng.choice([1, 3, 40, 1000], int(rng.integers(1, 3)))
    ]
    add = bool(rng.integers(0, 2))
    b = (1.0 + float(2.0 ** rng.uniform(-4, 4))) - 1.0
    orders = b, (1.0 + 1.5 * b) - 1.0, (1.0 + 0.5 * b) - 1.0
    columns = np.array(steps, dtype=float).T.copy()
    step, table = float(2.0 ** rng.integers(-5, 3)), np.empty((4, 3000))
    direction = core.ADD if add else core.REMOVE
    # beyond them, outcomes have a mass of their own in every bound
    deviations = 0.0 if direct else math.sqrt(2 * (math.log(columns[2].sum()) + 63.0))
    try:
        kept, _, logs = core.sampled_line(
            *columns, direction, direct, -30.0, b, orders[1:], step, -35.0, table
        )
    except ac.PrecisionError:
        assert not direct  # a line without windows has room for any few steps
        return

    def of_all(z):
        value = acb(1)
        for q, sigma, n in steps:
            value *= sampled_transform(q, sigma, z, add, deviations) ** int(n)
        return value

    at = [of_all(acb(ball(1.0 + order))).real for order in orders]
    # The ends of windows are rounded; without them there is nothing that the oracle leaves open.
    # A node below the cut is counted in full, and may underflow.
    window, cut = (0.0, 1e-300) if direct else (1e-12, 1e-17)
    for i, exact in enumerate(at):
        off = exact.log() - ball(logs[2 * i])
        assert abs(float(off.mid())) <= logs[2 * i + 1] + window
    # What windows leave out of P, whose masses in them are the transform at 1.
    left_out = 0.0 if direct else float((1 - of_all(acb(1)).real).mid())
    assert left_out <= logs[6] * (1.0 + 1e-9)
    nodes = {0, 1, kept // 3, kept - 1} | set(rng.integers(0, kept, 2).tolist())
    for k in sorted(nodes):
        value = of_all(acb(ball(1.0 + b), ball(k * step))) / acb(at[0])
        off = abs(value - acb(ball(table[0, k]), ball(table[1, k])))
        assert float(off.mid() - off.rad()) <= table[2, k] + cut
        assert table[2, k] <= 1e-7
        assert float(abs(value).mid()) <= table[3, k] * (1 + window) + cut


def test_nodes_beyond_a_table_are_counted_as_left_out():
    table, nodes = np.zeros((4, 10)), np.empty((5, 100))
    table[[0, 3]] = 1.0
    smoothing = np.array([(0.0, 1.0, 1e-12, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)])
    given = smoothing, np.zeros(1), np.zeros(1), 2.0, 0.5, 99, nodes
    assert core.fill_line_nodes(*given) == (100, 0)
    assert core.fill_line_nodes(*given, table) == (10, 90)


def gaussian_profile(epsilon, mu):
    """H of one Gaussian release of distance μ, at a complex ε near the real line."""
    root = arb(2).sqrt()
    upper = ((epsilon / mu - mu / 2) / root).erfc() / 2
    return upper - epsilon.exp() * ((epsilon / mu + mu / 2) / root).erfc() / 2


def mixed_profile(q, sigma, add, noise, laws, epsilon):
    """Enclose H(ε) of one sampled step, one Gaussian release and laws of few atoms."""
    p, s2, mu = acb(ball(q)), acb(ball(sigma) ** 2), acb(1 / ball(noise))
    atoms = product(laws)

    def density(x, analytic):
        loss = (1 - p + p * ((x - 0.5) / s2).exp()).log(analytic=analytic)
        base = (-x * x / (2 * s2)).exp()
        if not add:
            base *= loss.exp()
        total = acb(0)
        for known, mass in atoms:
            rest = acb(ball(epsilon)) - acb(known) - (-loss if add else loss)
            total += acb(mass) * gaussian_profile(rest, mu)
        return total * base

    value = acb.integral(
        density, acb(-13 * sigma), acb(1 + 13 * sigma), rel_tol=arb(2) ** -60, abs_tol=arb(2) ** -90
    )
    return (value / (2 * acb.pi() * s2).sqrt()).real


@pytest.mark.long(keep=8)
@pytest.mark.parametrize("seed", range(300))
def test_one_sampled_step_beside_others_holds_its_truth(seed):
    rng = np.random.default_rng([20, seed])
    q, sigma = float(10.0 ** rng.uniform(-3, -0.1)), float(rng.uniform(0.5, 3.0))
    noise, add = float(rng.uniform(0.7, 4.0)), bool(rng.integers(0, 2))
    pair = ac.PoissonSampled(ac.Gaussian(sigma), q).pairs()[int(add)]
    assert pair.gaussian_part.add is add
    first, second = float(rng.uniform(0.1, 1.0)), float(rng.uniform(0.1, 1.0))
    others = parts_of((ac.Gaussian(noise), 1), (ac.RandomizedResponse(first), 1))
    laws = [response_law(first)]
    if seed % 2:
        others += parts_of((ac.PureDP(second), 1))
        laws.append(response_law(second))
    solver = line_of(((pair, 1), *others))
    epsilon = float(rng.uniform(0.3, 4.0))
    ctx.prec = 100
    truth = mixed_profile(q, sigma, add, noise, laws, epsilon)
    found = solver._tried(Question("delta", epsilon))
    holds(found, truth)
    delta = float(truth.mid())
    assert found.upper - found.lower <= 1e-3 * found.upper
    if delta > 1e-12:
        bounds = solver._tried(Question("epsilon", delta))
        slack = 1e-12 * epsilon  # δ is rounded
        assert bounds.lower <= epsilon + slack
        assert bounds.upper >= epsilon - slack
        assert bounds.upper - bounds.lower <= 1e-6 * bounds.upper


WANTED = [
    ([ac.DiscreteGaussian(float(s)) for s in range(1, 61)], 1e-10, 8.573734255, 8.573734315),
    ([ac.DiscreteGaussian(3 + 0.37 * i) for i in range(200)], 1e-9, 5.9089943, 5.9090014),
    ([ac.Laplace(float(s)) for s in range(1, 61)], 1e-10, 4.1453057, 4.1453299),
    ([ac.DiscreteLaplace(float(s)) for s in range(1, 61)], 1e-10, 4.1981819, 4.1982073),
    (
        [ac.DiscreteGaussian(math.sqrt(9 + i)) for i in range(10)]
        + [ac.Laplace(6.0 + i) for i in range(10)]
        + [ac.DiscreteLaplace(7.0 + i) for i in range(10)],
        1e-6,
        4.8090058,
        4.8090115,
    ),
]


@pytest.mark.parametrize(("mechanisms", "delta", "lower", "upper"), WANTED)
def test_many_kinds_within_a_millionth(mechanisms, delta, lower, upper):
    found = sum(mechanisms[1:], mechanisms[0]).epsilon_bounds(delta)
    assert lower <= found.lower <= found.upper <= upper
    assert found.upper - found.lower <= 1e-6 * found.upper


def common_lattice(counts, spacing):
    """Return exact masses of a sum on one lattice: polynomials of balls."""
    total, offset = flint.arb_poly([arb(1)]), Fraction(0)
    for (square, shift), n in counts:
        reach = 14 * math.isqrt(math.ceil(square)) + 20
        weights = [(-arb(x * x) / (2 * ball(square))).exp() for x in range(-reach, reach + 1)]
        whole = sum(weights, arb(0))
        stride = Fraction(shift) / Fraction(square) / spacing
        assert stride.denominator == 1
        one = [arb(0)] * (2 * reach * int(stride) + 1)
        for i, w in enumerate(weights):
            one[i * int(stride)] = w / whole
        total *= flint.arb_poly(one) ** n
        offset += n * Fraction(shift) * (-2 * reach + shift) / (2 * Fraction(square))
    return total, offset


@cache
def on_one_lattice():
    # σ² = 1, 2, 4, each several times: losses are multiples of a quarter and an eighth
    counts = (((1, 1), 3), ((2, 1), 5), ((4, 1), 8))
    return counts, common_lattice(counts, Fraction(1, 4))


@pytest.mark.parametrize("epsilon", [2.03, 5.11, 9.77, 15.3, 21.9])
def test_many_runs_against_polynomials_of_balls(epsilon):
    counts, (masses, offset) = on_one_lattice()
    truth = arb(0)
    for k, p in enumerate(masses.coeffs()):
        loss = offset + Fraction(k, 4)
        if loss > Fraction(epsilon):
            truth += p * (1 - (ball(epsilon) - ball(loss)).exp())
    parts = parts_of(*((ac.DiscreteGaussian(math.sqrt(sq)), n) for (sq, _), n in counts))
    found = line_of(parts)._line_delta(epsilon)
    # √2² is not 2 to all digits
    slack = 1e-13 * float(truth.mid())
    assert found.upper >= float(truth.mid() - truth.rad()) - slack
    assert found.lower <= float(truth.mid() + truth.rad()) + slack
    assert found.upper - found.lower < 1e-4 * found.upper


def random_on_a_lattice(rng, spacing):
    """Return 2 to 100 different releases whose losses are multiples, exact laws, and a reach."""
    mechanisms, laws, tail = [], [], None
    for _ in range(int(rng.integers(2, 101))):
        kind, times = int(rng.integers(0, 4)), int(rng.integers(1, 65))
        rate = times * spacing
        if kind == 0:
            mechanisms.append((ac.DiscreteGaussian(math.sqrt(1 / rate)), 1))
            laws.append(gaussian_law_on(rate))
        elif kind == 1:
            mechanisms.append((ac.DiscreteLaplace(float(1 / rate)), 1))
            e = (-ball(rate)).exp()
            laws.append((-rate, [e / (1 + e), 1 / (1 + e)], 2 * rate))
        elif kind == 2 or tail is not None:
            mechanisms.append((ac.RandomizedResponse(float(rate)), 1))
            e = (-ball(rate)).exp()
            laws.append((-rate, [e / (1 + e), 1 / (1 + e)], 2 * rate))
        else:
            tail = Fraction(1, 2 ** int(rng.integers(0, 5)))
            mechanisms.append((ac.Laplace(float(1 / tail)), 1))
    return mechanisms, laws, tail


def gaussian_law_on(rate):
    """Return first loss, masses and spacing of a discrete Gaussian with 1/σ² = rate."""
    reach = math.ceil(12 / math.sqrt(rate)) + 2
    weights = [(-arb(x * x) * ball(rate) / 2).exp() for x in range(-reach, reach + 1)]
    whole = sum(weights, arb(0))
    return rate * Fraction(1 - 2 * reach, 2), [w / whole for w in weights], rate


@pytest.mark.long(keep=4)
@pytest.mark.parametrize("seed", range(300))
def test_sweep_of_many_kinds_against_polynomials_of_balls(seed):
    rng = np.random.default_rng([21, seed])
    ctx.prec = 120
    spacing = Fraction(1, 32)
    mechanisms, laws, tail = random_on_a_lattice(rng, spacing)
    total, offset, mean, variance = flint.arb_poly([arb(1)]), Fraction(0), 0.0, 0.0
    polynomials = []
    for first, masses, gap in laws:
        stride = int(gap / spacing)
        one = [arb(0)] * (stride * (len(masses) - 1) + 1)
        one[::stride] = masses
        polynomials.append(flint.arb_poly(one))
        offset += first
        at = [float(first + i * gap) for i in range(len(masses))]
        p = [float(mass.mid()) for mass in masses]
        centre = sum(x * w for x, w in zip(at, p, strict=True))
        mean += centre
        variance += sum((x - centre) ** 2 * w for x, w in zip(at, p, strict=True))
    for one in sorted(polynomials, key=lambda each: each.degree()):
        total *= one
    epsilon = max(mean + float(rng.uniform(0.0, 4.0)) * math.sqrt(variance), 0.01)
    e, truth, reach = ball(epsilon), arb(0), ball(tail or 0)
    for k, mass in enumerate(total.coeffs()):
        x = e - ball(offset + k * spacing)
        if tail is not None and abs(float(x.mid())) < float(tail):
            truth += mass * (1 - ((x - reach) / 2).exp())
        elif float(x.mid()) < 0:
            truth += mass * (1 - x.exp())
    delta = float(truth.mid())
    solver = line_of(parts_of(*mechanisms))
    found = solver._tried(Question("delta", epsilon))
    slack = 1e-13 * len(mechanisms) * delta + 1e-28  # parameters are rounded; tails left out
    assert found.upper >= delta - slack
    assert found.lower <= delta + slack
    if 1e-13 < delta < 0.3:
        assert found.upper - found.lower <= 1e-3 * found.upper
        bounds = solver._tried(Question("epsilon", delta))
        assert bounds.upper >= epsilon * (1 - 1e-11)
        assert bounds.lower <= epsilon * (1 + 1e-11)


@pytest.mark.long(keep=10)
@pytest.mark.parametrize("seed", range(1000))
def test_few_sums_are_exact(seed):
    rng = np.random.default_rng([22, seed])
    ctx.prec = 500
    parts, laws = [], []
    for _ in range(int(rng.integers(1, 4))):
        outcomes, n = int(rng.integers(2, 5)), int(rng.integers(1, 6))
        # powers of ten far apart, and as far as they go
        p, q = (10.0 ** -rng.uniform(0, 3 if seed % 2 else 100, outcomes) for _ in range(2))
        p[rng.integers(outcomes)] = q[rng.integers(outcomes)] = 1.0
        p, q = p / math.fsum(p), q / math.fsum(q)
        parts.append((ac.DominatingPMFs(p.tolist(), q.tolist()), n))
        laws += [[((ball(x) / ball(y)).log(), ball(x)) for x, y in zip(p, q, strict=True)]] * n
    if sum(n for _, n in parts) < 2 or size(laws) > 5_000:
        return
    found = [(arb(0), arb(1))]
    for law in laws:
        found = [(x + y, p * w) for x, p in found for y, w in law]
    solver = line_of(parts_of(*parts))
    assert solver.name == "sums"
    largest = max(float(loss.mid()) for loss, _ in found)
    for share in (0.0, 0.3, 0.9):
        epsilon = max(share * largest, 0.0)
        e = ball(epsilon)
        above = [(x, p) for x, p in found if float(x.mid()) > epsilon]
        truth = sum((p * (1 - (e - x).exp()) for x, p in above), arb(0))
        delta = float(truth.mid())
        bounds = solver.delta_bounds(epsilon)
        assert bounds.lower <= delta * (1 + 1e-15)
        assert bounds.upper >= delta * (1 - 1e-15)
        assert bounds.upper - bounds.lower <= 1e-8 * bounds.upper + 1e-11
        if 1e-280 < delta < 1:
            inverse = solver.epsilon_bounds(delta)
            assert inverse.lower <= epsilon * (1 + 1e-14)
            assert inverse.upper >= epsilon * (1 - 1e-14)


def test_a_common_lattice_is_left_to_the_lattice():
    assert not covers_line(
        parts_of((ac.RandomizedResponse(1.0), 1), (ac.RandomizedResponse(2.0), 3))
    )
    assert covers_line(parts_of((ac.RandomizedResponse(1.0), 1), (ac.RandomizedResponse(1.7), 3)))
    assert not covers_line(parts_of((ac.DiscreteGaussian(1.0), 5)))
    sampled = ac.PoissonSampled(ac.Gaussian(1.0), 0.1).pairs()[0]
    laplace = ac.Laplace(2.0).pairs()[0]
    assert covers_line(((sampled, 2), (laplace, 1)))
    added = ac.PoissonSampled(ac.Gaussian(1.0), 0.1).pairs()[1]
    assert not covers_line(((sampled, 2), (added, 2), (laplace, 1)))


@pytest.mark.parametrize("epsilon", [0.3, 1.1, 2.6])
def test_infinite_losses_are_added(epsilon):
    parts = parts_of(
        (ac.ApproximateDP(0.7, delta=1e-4), 2), (ac.Laplace(1.7), 2), (ac.PureDP(0.31), 3)
    )
    found = line_of(parts)._line_delta(epsilon)
    grid = Grid(parts).delta_bounds(epsilon)
    assert found.lower <= grid.upper
    assert grid.lower <= found.upper
    assert found.upper >= 1.9999e-4


def test_it_agrees_with_the_grid():
    parts = parts_of((ac.DiscreteGaussian(2.3), 4), (ac.Laplace(3.1), 3), (ac.Gaussian(4.0), 2))
    line, grid = line_of(parts), Grid(parts)
    for delta in (1e-3, 1e-6, 1e-12):
        one, other = line._line_epsilon(delta), grid.epsilon_bounds(delta)
        assert one.lower <= other.upper
        assert other.lower <= one.upper
        assert one.upper - one.lower <= 1e-6 * one.upper


def test_the_census_as_its_page_says():
    page = (Path(__file__).parents[2] / "docs" / "census.md").read_text()
    code = page.split("```python\n")[1].split("```")[0].replace("print(", "answer = (")
    names = {}
    exec(code, names)
    found, census = names["answer"], names["census"]
    assert 16.46515535719 <= found.lower <= found.upper <= 16.46515539491
    # The last digit may differ between libraries of elementary functions.
    said = [float(number) for number in re.findall(r"Bounds\(([\d.]+), ([\d.]+)\)", page)[0]]
    assert said == pytest.approx([found.lower, found.upper], rel=1e-13)
    assert len(names["releases"]) == 65
    for delta, epsilon in ((1e-5, 11.6404991), (1e-6, 12.7679335), (1e-12, 18.0082684)):
        assert census.epsilon(delta) == pytest.approx(epsilon, rel=1e-8)


def of_binomial(runs, epsilon, at):
    """Enclose H(at) of randomised response many times: tails of two binomial laws."""
    e = ball(epsilon)
    p = 1 / (1 + (-e).exp())
    # k of the runs have the loss ε, the others -ε
    least = math.floor((runs * Fraction(epsilon) + Fraction(at)) / (2 * Fraction(epsilon))) + 1

    def tail(x):
        return x.beta_lower(arb(least), arb(runs - least + 1), regularized=True)

    return tail(p) - ball(at).exp() * tail(1 - p)


@pytest.mark.parametrize("runs", [10**9, 10**10, 10**12])
@pytest.mark.parametrize("spent", [0.01, 0.1])
def test_very_many_randomised_responses(runs, spent):
    epsilon = math.sqrt(spent / runs)
    parts = parts_of((ac.RandomizedResponse(epsilon), runs))
    assert covers_line(parts)
    at = 3.0 * math.sqrt(spent)
    ctx.prec = 400
    truth = of_binomial(runs, epsilon, at)
    assert float(truth.rad()) < 1e-20
    holds(line_of(parts)._line_delta(at), truth, 0.0)
    found = (runs * ac.RandomizedResponse(epsilon)).epsilon_bounds(float(truth.mid()))
    slack = 1e-13 * at  # δ is rounded
    assert found.lower <= at + slack
    assert found.upper >= at - slack
    assert found.upper - found.lower <= 1e-6 * at


def test_a_million_billion_responses_are_nearly_gaussian():
    found = (10**15 * ac.RandomizedResponse(1e-8)).epsilon_bounds(1e-3)
    assert found.upper - found.lower <= 1e-6 * found.upper
    # Its limit is Gaussian: the lattice of the losses is 2e-8 wide.
    assert found.upper == pytest.approx(ac.GDP(math.sqrt(0.1)).epsilon(1e-3), rel=1e-6)

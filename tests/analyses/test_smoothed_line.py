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
from accountant.analyses.line_laws import Laws, line_laws, rows_of
from accountant.analyses.smoothed_line import covers_line
from accountant.analyses.solver import Question
from accountant.analyses.solvers import Grid

pytest.importorskip("flint")
from flint import acb, arb, arb_poly, ctx

from support.oracle.lines import (
    ball,
    gaussian_law,
    holds,
    laplace_law,
    line_of,
    parts_of,
    profile,
    response_law,
    size,
)


@pytest.fixture(autouse=True)
def _many_digits():
    with ctx.workprec(160):
        yield


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
    laws = Laws(parts, line_laws(parts), -30.0)
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


LEAST_MASS = arb("1e-45")


def on_lattice(laws, spacing):
    """Return the masses of a sum on one lattice, its first loss, and the mass that is left out."""
    offset, lost, polynomials = sum(first for first, _, _ in laws), arb(0), []
    for _, masses, gap in laws:
        stride = int(gap / spacing)
        one = [arb(0)] * (stride * (len(masses) - 1) + 1)
        one[::stride] = masses
        polynomials.append(arb_poly(one))
    while len(polynomials) > 1:
        polynomials.sort(key=lambda each: -each.degree())
        masses = (polynomials.pop() * polynomials.pop()).coeffs()
        kept = [k for k, mass in enumerate(masses) if mass > LEAST_MASS]
        first, last = kept[0], kept[-1] + 1
        polynomials.append(arb_poly(masses[first:last]))
        offset += first * spacing
        lost = sum((abs(mass).upper() for mass in masses[:first] + masses[last:]), lost)
    return polynomials[0].coeffs(), offset, lost


def profile_on(masses, offset, lost, spacing, epsilon, tail=None):
    """Enclose H(ε) of a sum on a lattice, beside one Laplace release of reach ``tail``."""
    e, truth, reach = ball(epsilon), arb(lost / 2, lost / 2), ball(tail or 0)
    for k, mass in enumerate(masses):
        x = e - ball(offset + k * spacing)
        if tail is not None and abs(float(x.mid())) < float(tail):
            truth += mass * (1 - ((x - reach) / 2).exp())
        elif float(x.mid()) < 0:
            truth += mass * (1 - x.exp())
    return truth


# σ² = 1, 2, 4, each several times: losses are multiples of a quarter and an eighth
SEVERAL = {1: 3, 2: 5, 4: 8}


@cache
def on_one_lattice():
    laws = [gaussian_law_on(Fraction(1, square)) for square, n in SEVERAL.items() for _ in range(n)]
    return on_lattice(laws, Fraction(1, 4))


@pytest.mark.parametrize("epsilon", [2.03, 5.11, 9.77, 15.3, 21.9])
def test_many_runs_against_polynomials_of_balls(epsilon):
    truth = profile_on(*on_one_lattice(), Fraction(1, 4), epsilon)
    parts = parts_of(*((ac.DiscreteGaussian(math.sqrt(s)), n) for s, n in SEVERAL.items()))
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
    masses, offset, lost = on_lattice(laws, spacing)
    p = np.array([float(mass.mid()) for mass in masses])
    at = float(offset) + float(spacing) * np.arange(p.size)
    mean = p @ at
    deviation = math.sqrt(p @ (at - mean) ** 2)
    epsilon = max(float(mean + rng.uniform(0.0, 4.0) * deviation), 0.01)
    truth = profile_on(masses, offset, lost, spacing, epsilon, tail)
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

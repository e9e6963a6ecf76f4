"""Sampled steps on a smoothed line against integrals in ball arithmetic (Theorem 21)."""

import math

import numpy as np
import pytest
from flint import acb, arb, ctx

import accountant as ac
from accountant._core import answers as core
from accountant.analyses.solver import Question
from support.oracle.lines import ball, holds, line_of, parts_of, product, response_law, size


@pytest.fixture(autouse=True)
def _many_digits():
    with ctx.workprec(160):
        yield


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


def one_step_beside_others(seed):
    """Return a solver, ε and what the oracle takes for the parts."""
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
    return solver, float(rng.uniform(0.3, 4.0)), (q, sigma, add, noise, laws)


@pytest.mark.long(keep=8)
@pytest.mark.parametrize("seed", range(300))
def test_one_sampled_step_beside_others_holds_its_truth(seed):
    solver, epsilon, parts = one_step_beside_others(seed)
    ctx.prec = 100
    truth = mixed_profile(*parts, epsilon)
    holds(solver._tried(Question("delta", epsilon)), truth)
    delta = float(truth.mid())
    if delta > 1e-12:
        bounds = solver._tried(Question("epsilon", delta))
        slack = 1e-12 * epsilon  # δ is rounded
        assert bounds.lower <= epsilon + slack
        assert bounds.upper >= epsilon - slack


@pytest.mark.long
def test_lines_of_one_sampled_step_beside_others_are_narrow_but_for_a_few():
    wide = far = 0
    for seed in range(300):
        solver, epsilon, _ = one_step_beside_others(seed)
        found = solver._tried(Question("delta", epsilon))
        wide += found.upper - found.lower > 1e-3 * found.upper
        if found.upper > 1e-12:
            bounds = solver._tried(Question("epsilon", float(found.upper)))
            far += bounds.upper - bounds.lower > 1e-6 * bounds.upper
    # The aliases of three lines are no small share of δ; another analysis answers beside them.
    assert wide <= 3
    assert far <= 3


def at(outcomes, epsilon):
    """Enclose the profile of listed losses and masses."""
    above = [(x, p) for x, p in outcomes if float(x.mid()) > epsilon]
    return sum((p * (1 - (ball(epsilon) - x).exp()) for x, p in above), arb(0))


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
        truth, bounds = at(found, epsilon), solver.delta_bounds(epsilon)
        assert not arb(bounds.lower) > truth
        # Doubles that should add up to 1 may have a little more.
        assert bounds.upper == 1.0 or not arb(bounds.upper) < truth
        assert bounds.upper - bounds.lower <= 1e-8 * bounds.upper + 1e-11
        delta = float(truth.mid())
        if 1e-280 < delta < 1:
            inverse = solver.epsilon_bounds(delta)
            assert not at(found, inverse.upper) > arb(delta)
            assert inverse.lower == 0.0 or not at(found, inverse.lower) < arb(delta)

"""The convex loss variable: its closed forms against quadrature, its calibrations against peers."""

import math
import tracemalloc

import mpmath as mp
import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import accountant as ac
from accountant.errors import DomainError
from accountant.learn.convex.dominating import (
    BLOCK,
    ConvexNormalPair,
    concave_majorant,
)
from accountant.learn.convex.losses import BoundedPoisson, Huber, HuberHinge, Logistic, Softmax
from accountant.learn.convex.mechanism import (
    ObjectivePerturbation,
    calibrate_objective,
    dominating_pair,
    pure_epsilon_for_noise,
)
from accountant.learn.convex.perturbation import perturb_objective
from accountant.ledger import Accountant
from support.published_objectives import (
    chaudhuri_monteleoni_sarwate,
    kifer_smith_thakurta,
    normal_profile,
    redberg_koskela_wang,
    redberg_koskela_wang_delta,
)

SETTINGS = [(0.3, 0.2), (0.3, 3.0), (1.5, 0.5), (1.5, 20.0), (0.05, 1.0), (4.0, 9.0)]


def density(z):
    return math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)


def tied_loss(z, m, k):
    """max(0, max_s …) by brute force: a lower bound, to 1e-9."""
    s = np.linspace(0, 1, 2001)
    values = s * m * z + 0.5 * (s * m) ** 2 + np.log1p(k * s * (1 - s))
    best = s[int(values.argmax())]
    result = minimize_scalar(
        lambda s: -(s * m * z + 0.5 * (s * m) ** 2 + math.log1p(k * s * (1 - s))),
        bounds=(max(best - 1e-3, 0), min(best + 1e-3, 1)),
        options={"xatol": 1e-12},
        method="bounded",
    )
    return max(0.0, float(values.max()), -float(result.fun))


@pytest.mark.long
@pytest.mark.parametrize(("m", "k"), SETTINGS)
@pytest.mark.parametrize("epsilon", [-0.5, 0.0, 0.1, 1.0, 3.0])
def test_the_tied_profile_is_the_integral(m, k, epsilon):
    pair = dominating_pair(Logistic(), m, k)
    if epsilon < 0 and k <= m * m / 2:
        # The Gaussian mechanism itself, which is below the maximum with zero.
        assert pair.profile(epsilon).upper == pytest.approx(normal_profile(epsilon, m), rel=1e-9)
        return

    def integrand(z):
        return density(z) * max(-math.expm1(epsilon - tied_loss(z, m, k)), 0.0)

    z = np.linspace(-9, 9, 2401)
    values = np.array([integrand(t) for t in z])
    # The trapezoid rule on a kinked integrand: 1e-4 relative.
    reference = float(((values[1:] + values[:-1]) / 2 * np.diff(z)).sum())
    bounds = pair.profile(epsilon)
    assert bounds.lower <= bounds.upper
    assert bounds.upper >= reference * (1 - 3e-4) - 1e-12
    assert bounds.upper <= reference * (1 + 3e-4) + 1e-9


@pytest.mark.parametrize(("m", "k"), SETTINGS)
def test_the_lines_lie_above_the_tied_loss_and_close_to_it(m, k):
    pair = dominating_pair(Logistic(), m, k)
    z = np.linspace(-12, 12, 97)
    lines = pair._loss(z)
    for zz, value in zip(z, lines, strict=True):
        exact = tied_loss(zz, m, k)
        # Where the noise alone hides the curvature the pair is the Gaussian's, negative losses too.
        assert value >= (exact if k > m * m / 2 or exact > 0 else value) - 1e-12
        assert value <= exact + 2e-4 * (1 + k)


@pytest.mark.parametrize("copies", [1, 4])
@pytest.mark.parametrize(("m", "k"), SETTINGS[:4])
def test_masses_and_profile_agree(m, k, copies):
    lines = dominating_pair(Logistic(), m, k)
    pair = ConvexNormalPair(lines._a, lines._s, copies=copies)
    edges = np.linspace(-1, 12, 20_001)
    masses = pair.masses(edges)
    assert abs(masses.p.sum() - 1) < 1e-9
    assert abs(masses.q.sum() - 1) < 1e-9
    for epsilon in (0.0, 0.5, 2.0):
        profile = pair.profile(epsilon)
        # Cells whole above epsilon give a lower bound, with the straddling one an upper bound.
        above = np.append(edges, np.inf) > epsilon
        above[0] = False
        whole = np.concatenate(([False], edges >= epsilon))
        lower = (masses.p - math.exp(epsilon) * masses.q)[whole].sum()
        assert lower <= profile.upper * (1 + 1e-8) + 1e-12
        assert profile.lower <= lower + 2e-3 * profile.upper + 1e-9
    shared = masses.q[1:-1] > 1e-200
    loss = np.log(masses.p[1:-1][shared]) - np.log(masses.q[1:-1][shared])
    assert (loss >= edges[:-1][shared] - 1e-7).all()
    assert (loss <= edges[1:][shared] + 1e-7).all()


EDGES = {"all": (-3.0, 40.0), "near": (0.1, 0.2), "small": (-1e-3, 1e-3)}


@pytest.mark.parametrize(("m", "k"), SETTINGS)
@pytest.mark.parametrize("ends", EDGES.values(), ids=EDGES)
def test_edges_lie_on_the_lines_that_are_least_between(m, k, ends):
    pair = dominating_pair(Logistic(), m, k)
    edges = np.linspace(*ends, 3 * BLOCK + 7)
    rising = pair._s > 0.0
    every = ((edges[:, None] - pair._a[rising]) / pair._s[rising]).min(axis=1)
    found = pair._last_below(edges)
    assert np.all(found >= every)
    assert np.all(found - every <= 4e-16 * 40.0)


def test_many_edges_take_little_memory():
    pair = dominating_pair(Logistic(), 1.5, 20.0)
    edges = np.linspace(0.0, 9.0, 2**17)
    tracemalloc.start()
    pair.masses(edges)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(pair._a) > 100
    assert most < 300 * edges.nbytes / 8


@pytest.mark.long
@pytest.mark.parametrize("order", [1.5, 2.0, 16.0])
def test_the_renyi_curve_is_the_integral(order):
    for loss in (Logistic(), Huber(0.5), BoundedPoisson(0.2, 2.0), HuberHinge(0.3), Softmax(3)):
        pair = dominating_pair(loss, 0.4, 0.7)
        copies, start = (2, 0.0) if isinstance(loss, Softmax) else (1, -40.0)
        z = np.linspace(start, 40, 400_001)
        logs = (order - 1) * pair._loss(z) - 0.5 * z * z - 0.5 * math.log(2 * math.pi)
        weights = copies * np.exp(logs)
        # The trapezoid rule: the integrand is smooth but for a few kinks.
        total = float(((weights[1:] + weights[:-1]) / 2).sum() * (z[1] - z[0]))
        reference = math.log(total) / (order - 1)
        assert pair.rdp(order) == pytest.approx(reference, rel=1e-6)
        assert pair.rdp(order) >= reference * (1 - 1e-7)


def test_the_gaussian_profile():
    for mu in (0.1, 1.0, 5.0):
        for epsilon in (0.0, 0.5, 4.0):
            exact = ac.delta_bounds(1.0, 1 / mu, 1, epsilon)
            assert exact.lower * (1 - 1e-9) <= normal_profile(epsilon, mu)
            assert normal_profile(epsilon, mu) <= exact.upper * (1 + 1e-6) + 1e-300


def test_the_majorant_of_a_concave_function_lies_above_it():
    nodes = np.array([0.0, 0.1, 0.5, 1.0])
    x, above = concave_majorant(nodes, np.sqrt(1 + nodes), 0.5 / np.sqrt(1 + nodes))
    t = np.linspace(0, 1, 1001)
    assert (np.interp(t, x, above) >= np.sqrt(1 + t) - 1e-15).all()
    assert above[0] == 1.0
    assert above[-1] == math.sqrt(2.0)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("factor", [1.0, 1.001, 4.0, 100.0])
def test_the_tied_bound_needs_the_gaussian_mechanisms_noise(epsilon, factor):
    sigma = ac.calibrate_sigma(epsilon, 1e-5)
    noise = calibrate_objective(
        Logistic(),
        epsilon=epsilon,
        delta=1e-5,
        data_norm=2.0,
        regularization=4.0 * factor / epsilon,
    )
    assert noise == pytest.approx(2.0 * sigma, rel=1e-9)
    assert noise >= 2.0 * sigma * (1 - 1e-12)


def test_the_closed_form_holds_down_to_its_stated_regularization():
    sigma = ac.calibrate_sigma(1.0, 1e-5)
    edge = 1.0 / (1.0 + 0.5 / sigma**2)
    options = {"epsilon": 1.0, "delta": 1e-5, "data_norm": 1.0}
    at = calibrate_objective(Logistic(), regularization=edge * (1 + 1e-9), **options)
    below = calibrate_objective(Logistic(), regularization=edge * 0.9, **options)
    assert at == pytest.approx(sigma, rel=1e-9)
    assert below > sigma * (1 + 1e-6)


def test_the_designs_table_of_noises():
    for epsilon, lam, tied, half_normal in [
        (0.1, 10, 30.75, 42.16),
        (0.5, 2, 7.032, 9.421),
        (1, 0.5, 4.022, 6.266),
        (1, 1, 3.731, 4.898),
        (1, 4, 3.731, 4.113),
        (8, 0.125, 0.600, 0.698),
    ]:
        options = {"epsilon": float(epsilon), "delta": 1e-5, "data_norm": 1.0}
        noise = calibrate_objective(Logistic(), regularization=float(lam), **options)
        assert noise == pytest.approx(tied, rel=5e-4)
        # log(1 + β/λ) with |Z|: the general bound at the logistic loss's constants.
        huber = calibrate_objective(Huber(1.0), regularization=4.0 * lam, **options)
        assert huber == pytest.approx(half_normal, rel=5e-4)


@pytest.mark.long(keep=21)
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 8.0])
@pytest.mark.parametrize("factor", [0.2, 0.3, 0.5, 1.0, 2.0, 10.0, 100.0])
def test_below_every_published_bound(epsilon, factor):
    lam = factor / epsilon
    options = {"epsilon": epsilon, "delta": 1e-5, "data_norm": 1.0, "regularization": lam}
    if 0.25 / math.expm1(epsilon) >= lam:
        with pytest.raises(DomainError, match="must be above"):
            calibrate_objective(Logistic(), **options)
        return
    tied = calibrate_objective(Logistic(), **options)
    half_normal = calibrate_objective(Huber(1.0), **(options | {"regularization": 4.0 * lam}))
    assert tied < half_normal
    bounds = {"regularization": lam, "slope": 1.0, "curvature": 0.25}
    try:
        redberg = redberg_koskela_wang(epsilon, 1e-5, **bounds).noise
    except DomainError:
        redberg = math.inf
    assert half_normal < redberg
    if lam >= 0.5 / epsilon:
        assert tied < kifer_smith_thakurta(epsilon, 1e-5, **bounds).noise


def test_published_values():
    assert redberg_koskela_wang(
        1.0, 1e-5, regularization=1.0, slope=1.0, curvature=0.25
    ).noise == pytest.approx(5.304, rel=2e-4)
    assert redberg_koskela_wang_delta(
        1.0, noise=5.3045, regularization=1.0, slope=1.0, curvature=0.25
    ) == pytest.approx(1e-5, rel=1e-3)
    with pytest.raises(DomainError, match="must be above"):
        redberg_koskela_wang_delta(1.0, noise=5, regularization=0.2, slope=1, curvature=0.25)
    full = chaudhuri_monteleoni_sarwate(1.0, regularization=10.0, slope=1.0, curvature=0.25)
    assert full.noise == pytest.approx(2 / (1 - 2 * math.log(1.025)))
    raised = chaudhuri_monteleoni_sarwate(0.1, regularization=0.1, slope=1.0, curvature=0.25)
    assert raised == pytest.approx((0.25 / math.expm1(0.025), 40.0))


@pytest.mark.parametrize("k", [0.1, 1.0, 3.0, 30.0])
def test_the_pure_variant_spends_exactly_epsilon(k):
    epsilon = 1.0
    if 4 * math.expm1(epsilon) <= k:
        with pytest.raises(DomainError, match="must be above"):
            pure_epsilon_for_noise(Logistic(), epsilon, 1.0, 1 / k)
        return
    rest = pure_epsilon_for_noise(Logistic(), epsilon, 1.0, 1 / k)
    s = np.linspace(0, 1, 100_001)
    worst = (s * rest + np.log1p(k * s * (1 - s))).max()
    assert epsilon * (1 - 1e-6) <= worst <= epsilon * (1 + 1e-12)
    assert (rest == epsilon) is (k <= epsilon)


@pytest.mark.parametrize("loss", [Logistic(), Huber(2.0), HuberHinge(0.2), Softmax(5)])
def test_too_little_regularization_names_the_smallest_admissible(loss):
    options = {"epsilon": 1.0, "delta": 1e-5, "data_norm": 1.0}
    with pytest.raises(DomainError, match=r"must be above ([0-9.e-]+)") as caught:
        calibrate_objective(loss, regularization=1e-6, **options)
    least = float(str(caught.value).split("above ")[1].split(" ")[0])
    assert calibrate_objective(loss, regularization=least * 1.01, **options) > 0
    with pytest.raises(DomainError, match="must be above"):
        calibrate_objective(loss, regularization=least * 0.99, **options)


def test_mechanisms_are_values():
    mechanism = ObjectivePerturbation(
        HuberHinge(0.25), data_norm=1.0, regularization=2.0, noise=3.0
    )
    assert eval(repr(mechanism)) == mechanism
    assert hash(mechanism) == hash(
        ObjectivePerturbation(HuberHinge(0.25), data_norm=1.0, regularization=2.0, noise=3.0)
    )
    assert mechanism.relation is ac.NeighbouringRelation.ADD_OR_REMOVE
    assert len(mechanism.pairs()) == 1
    same = dominating_pair(HuberHinge(0.25), 1 / 3, 0.5).profile(1.0).upper
    assert mechanism.pairs()[0].profile(1.0).upper == pytest.approx(same, rel=1e-10)
    for text in ("Nothing()", "Softmax(classes=1)", "Softmax(sides=3)", "Huber(1", "print(1)"):
        with pytest.raises(DomainError):
            ObjectivePerturbation(text, data_norm=1.0, regularization=2.0, noise=3.0)
    for bad in ((0.0, 1.0, 1.0), (1.0, -1.0, 1.0), (1.0, 1.0, math.nan)):
        given = dict(zip(("data_norm", "regularization", "noise"), bad, strict=True))
        with pytest.raises(DomainError):
            ObjectivePerturbation(Logistic(), **given)


def test_a_fit_is_a_ledger_entry():
    x = np.eye(3)
    fit = perturb_objective(x, [0, 1, 2], loss=Softmax(3), epsilon=1.0, delta=1e-5, data_norm=1.0)
    ledger = Accountant()
    for mechanism in fit.mechanisms:
        ledger.compose(mechanism)
    assert 0.9 < ledger.epsilon(1e-5) <= 1.0
    again = Accountant.from_json(ledger.to_json())
    assert again.counts == ledger.counts
    # Two fits cost more than one and less than twice.
    for mechanism in fit.mechanisms:
        ledger.compose(mechanism)
    assert 1.0 < ledger.epsilon(1e-5) < 2.0


def test_composition_is_that_of_the_loss_and_not_of_a_gaussian():
    one = ObjectivePerturbation(
        Logistic(), data_norm=1.0, regularization=1.0, noise=ac.calibrate_sigma(1.0, 1e-5)
    )
    assert one.epsilon(1e-5) == pytest.approx(1.0, rel=1e-5)
    assert (5 * one).epsilon(1e-5) > 1.1 * (5 * ac.Gaussian(one.noise)).epsilon(1e-5)
    private = ObjectivePerturbation(
        Logistic(), data_norm=1.0, regularization=2.01 * one.noise**2, noise=one.noise
    )
    five = (5 * private).epsilon(1e-5)
    assert five == pytest.approx((5 * ac.Gaussian(one.noise)).epsilon(1e-5), rel=1e-5)


def exact_gaussian_profile(epsilon, m):
    with mp.workdps(60):
        e, m = mp.mpf(epsilon), mp.mpf(m)
        return mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-m / 2 - e / m)


@pytest.mark.parametrize("m", [0.1, 1.0, 30.0, 1e3, 1e4, 1e5, 1e6])
def test_brackets_widen_with_the_square_of_the_slope(m):
    """Exponents of m² lose their last digits: a constant 1e-11 put lower ends above the truth."""
    pair = ConvexNormalPair(np.array([0.5 * m * m]), np.array([m]))
    for k in np.linspace(-6.0, 7.0, 105):
        epsilon = 0.5 * m * m + k * m
        if epsilon < 0.0:
            continue
        bounds = pair.profile(epsilon)
        truth = exact_gaussian_profile(epsilon, m)
        assert bounds.lower <= truth <= bounds.upper
        if k < 3.0:
            assert bounds.upper - bounds.lower <= truth * (4e-11 + 60 * 2.0**-53 * m * m)
    # Divergences likewise: α m²/2 exactly.
    for order in (1.01, 2.0, 40.0):
        assert mp.mpf(pair.rdp(order)) >= mp.mpf(order) * mp.mpf(m) ** 2 / 2
    assert pair.loss_error >= 2.0**-53 * m * m / 2

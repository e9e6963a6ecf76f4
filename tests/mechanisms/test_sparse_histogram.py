"""Sparse histograms: values of the literature and the design, composition, laws, refusals."""

import math

import numpy as np
import pytest

import accountant as ac
from accountant import NeighbouringRelation as Relation

REPLACE, ZERO_OUT = Relation.REPLACE_ONE, Relation.ZERO_OUT
G, L, DL, DG = ac.Gaussian, ac.Laplace, ac.DiscreteLaplace, ac.DiscreteGaussian


def of(noise, scale, tau, keys=1, moved=1, **named):
    relation = named.pop("relation", Relation.ADD_OR_REMOVE)
    return ac.SparseHistogram(
        noise(float(scale), sensitivity=moved, relation=relation),
        threshold=float(tau),
        max_partitions=keys,
        **named,
    )


# Of 40 digits by other formulas and by the laws of explicit data sets: noise, keys, change of a
# count, scale, threshold, minimum, ε, δ.
SINGLE = (
    (G, 1, 1, 6, 36, None, 1.0, 2.7165437370881e-9),
    (G, 5, 1, 15, 95, None, 0.5, 1.9760925219125e-5),
    (G, 10, 1, 17.378, 111.55, None, 1.0, 9.9915916965776e-10),
    (G, 4, 3, 20, 120, None, 2.0, 9.8314602109855e-9),
    (G, 3, 1, 2, 6, None, 3.0, 0.018513555591298),
    (G, 2, 1, 4, 6, None, 0.1, 0.20013767265785),
    (G, 8, 2, 30, 150, None, 0.7, 6.563148476507e-6),
    (G, 10, 1, 17.378, 111.55, 20, 1.0, 6.8900792404808e-7),
    (L, 1, 1, 2, 12, None, 0.3, 0.09516258196404),
    (L, 2, 1, 2, 9.5, None, 0.9, 0.024989839886768),
    (L, 2, 1, 2, 7, None, 0.97, 0.049167380323697),
    (L, 10, 1, 20, 400, None, 0.45, 5.3807635479562e-5),
    (L, 5, 1, 5, 60, None, 1.2, 1.8761253992247e-5),
    (L, 1, 1, 1, 21, 5, 1.0, 5.626758735963e-8),
    (DL, 1, 1, 1, 5, None, 1.0, 0.013389804932698),
    (DL, 2, 1, 2, 8, None, 0.99, 0.037239972386786),
    (DL, 2, 3, 3, 20, None, 1.98, 0.0067203335638866),
    (DL, 4, 1, 2, 20, None, 2.0, 0.00018635585527933),
    (DL, 2, 1, 2, 14, 5, 0.99, 0.013781981289003),
    (DG, 2, 1, 2, 6, None, 2.0, 0.022852177442),
    (DG, 3, 1, 2, 7, None, 2.6, 0.0081616135571),
    (DG, 2, 2, 1.5, 6, None, 6.5, 0.017363714557),
    (DG, 10, 1, 12, 75, None, 1.5, 4.4840618196e-9),
    (DG, 2, 2, 3, 14, None, 3.6, 0.00011762914431),
    (DG, 2, 1, 2, 12, 4, 2.0, 0.0011286405121),
)
PLANS = (
    (lambda: 2 * of(G, 15, 95, 5), 0.8, 5.4479646670891e-6),
    (lambda: 10 * of(G, 10, 60), 1.0, 1.0981048091928e-4),
    (lambda: of(G, 20, 130, 4) + of(G, 25, 170, 2, 3) + ac.Gaussian(20.0), 1.0, 2.7195339690324e-8),
    (lambda: of(G, 17.378, 111.55, 10) + ac.Gaussian(5.4953), 1.5, 9.9901957652489e-10),
    (lambda: 52 * of(G, 40, 250, 3), 2.0, 3.7561368100676e-8),
)
REPLACED = (
    (of(G, 6, 36, relation=REPLACE), 1.5, 2.7165437370924e-9),
    (of(G, 15, 95, 5, relation=REPLACE), 1.0, 7.0944703041343e-8),
    (of(L, 2, 9, relation=REPLACE), 1.05, 9.1578194443671e-3),
    (of(DL, 2, 9, relation=REPLACE), 1.05, 1.1400740333216e-2),
    (of(DG, 3, 13, 1, 2, relation=REPLACE), 1.5, 4.3852461421e-2),
    (of(G, 4, 14, 2, relation=REPLACE), 2.2, 1.15371716527e-3),
)
VARIANTS = (
    (of(G, 4, 20, 1, weighted=True), 1.0, 2.9242721048564e-6),
    (of(G, 4.3, 22, 10, weighted=True), 1.0, 2.2945879562408e-6),
    (of(G, 4.3, 24, 50, weighted=True), 1.0, 7.2029951902301e-7),
    (of(G, 1, 2.5, 5, weighted=True), 3.0, 9.6294319728088e-2),
    (of(DL, 2, 8, beside=DL(6.0, sensitivity=3)), 0.7, 8.73716294288e-2),
    (of(DL, 2, 9, beside=DL(6.0, sensitivity=3)), 1.2, 1.14007403332e-2),
    (of(DL, 2, 12, max_rows=3), 1.49, 7.6121500073e-3),
    (of(DL, 1.5, 9, max_rows=3), 2.0, 1.21021750437e-2),
    (of(DL, 3, 25, max_rows=2), 0.3, 1.78825389332e-1),
    (of(DL, 2, 20, max_rows=4), 2.0, 2.0881184e-4),
)


def agrees(found, value):
    """Compare to the digits of the value given, and look for it within the bracket."""
    digits = len(f"{value:.15g}".split("e")[0].replace(".", "").strip("0"))
    unit = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    assert float(found.lower) <= value + 5.0 * unit
    assert float(found.upper) >= value - 5.0 * unit
    assert float(found.upper) == pytest.approx(value, rel=1e-9, abs=5.0 * unit)
    assert float(found.upper) - float(found.lower) <= 1e-6 * value


@pytest.mark.parametrize("case", SINGLE)
def test_single_releases_have_the_known_profile(case):
    noise, keys, moved, scale, tau, minimum, epsilon, value = case
    agrees(of(noise, scale, tau, keys, moved, minimum=minimum).delta_bounds(epsilon), value)


@pytest.mark.parametrize(("plan", "epsilon", "value"), PLANS)
def test_plans_fixed_in_advance_have_the_known_profile(plan, epsilon, value):
    agrees(plan().delta_bounds(epsilon), value)


@pytest.mark.parametrize(("release", "epsilon", "value"), REPLACED + VARIANTS)
def test_other_bounds_and_relations_have_the_known_profile(release, epsilon, value):
    agrees(release.delta_bounds(epsilon), value)


@pytest.mark.parametrize(
    ("noise", "delta", "keys", "value"),
    [
        (G(5.6), 1e-9, 1, 34.587719284043),
        (G(17.5), 1e-9, 10, 112.32346579086),
        (G(27.0, sensitivity=3.0), 1e-6, 4, 138.71044463088),
        (L(4.0), 1e-6, 4, 59.034629454096),
        (L(10.0), 1e-9, 10, 224.32703748931),
        (DL(4.0), 1e-6, 4, 60.0),
        (DL(1.0), 1e-9, 1, 22.0),
        (DG(11.5), 1e-8, 4, 69.0),
    ],
)
def test_smallest_thresholds(noise, delta, keys, value):
    found = ac.smallest_threshold(noise, epsilon=1.0, delta=delta, max_partitions=keys)
    assert found == pytest.approx(value, rel=5e-14)
    assert ac.SparseHistogram(noise, threshold=found, max_partitions=keys).delta(1.0) <= delta
    less = found - (1.0 if found == round(found) else 1e-9)
    assert ac.SparseHistogram(noise, threshold=less, max_partitions=keys).delta(1.0) > delta


def test_no_threshold_helps_where_the_noise_is_too_small():
    with pytest.raises(ac.DomainError, match="no threshold is enough"):
        ac.smallest_threshold(G(2.0), epsilon=1.0, delta=1e-9, max_partitions=4)


@pytest.mark.parametrize("case", SINGLE)
def test_epsilon_at_its_own_delta_is_no_larger(case):
    noise, keys, moved, scale, tau, minimum, epsilon, _ = case
    release = of(noise, scale, tau, keys, moved, minimum=minimum)
    assert release.epsilon(release.delta(epsilon)) <= epsilon * (1.0 + 1e-9)


# Composition


def test_a_plan_that_depends_on_outputs_costs_more_than_a_fixed_one():
    """Two group-bys of which the second is chosen by the loss of the first (Theorem N11)."""
    one = of(G, 7.77, 48.48)
    fixed, adaptive = (2 * one).delta(1.0), (2 * one).adaptively().delta(1.0)
    assert fixed == pytest.approx(1.006309e-9, rel=1e-6)
    strategy = 1.490391e-9  # old first, then old or new by the loss so far: integrated twice
    assert fixed < strategy < adaptive <= 1.9749e-9
    assert _strategy(7.77, 48.48, 1.0) == pytest.approx(strategy, rel=1e-6)


def _strategy(sigma, tau, epsilon):
    """Integrate the value of the strategy that asks where the key is old first."""
    mu = 1.0 / sigma
    q = 0.5 * math.erfc((tau - 1.0) / sigma / math.sqrt(2.0))
    p = 1.0 - q

    def upper(z):
        return 0.5 * math.erfc(z / math.sqrt(2.0))

    def old(x):
        return upper(x / mu - mu / 2.0) - math.exp(x) * upper(x / mu + mu / 2.0)

    def new(x):
        return q + p * max(-math.expm1(x - math.log(p)), 0.0)

    nodes = np.linspace(-12.0, 12.0, 48001)
    weights = np.exp(-0.5 * nodes**2) / math.sqrt(2.0 * math.pi) * (nodes[1] - nodes[0])
    values = [max(old(epsilon - x), new(epsilon - x)) for x in mu * nodes + mu * mu / 2.0]
    return float(weights @ np.array(values))


def test_the_ledger_charges_the_adaptive_pair_and_takes_a_fixed_plan_as_one():
    one, other = of(G, 17.38, 110.97, 5), of(G, 17.38, 110.97, 3)
    plan = one + other + 2 * ac.Gaussian(17.38)
    assert plan.epsilon(1e-9) <= 1.0 < plan.adaptively().epsilon(1e-9)
    budget = ac.Budget(1.0, 1e-9, filter="non-adaptive")
    whole = ac.Accountant(budget=budget)
    whole.compose(plan)
    parts = ac.Accountant(budget=budget)
    parts.compose(one)
    with pytest.raises(ac.BudgetExceeded):
        parts.compose(other)
    free = ac.Accountant()
    free.compose(one)
    free.compose(other)
    assert free.epsilon(2e-9) == (one + other).adaptively().epsilon(2e-9)
    assert free.epsilon(2e-9) > (one + other).epsilon(2e-9)


def test_a_filter_charges_the_mass_to_its_share_and_the_noise_to_the_rest():
    release = of(G, 20.0, 150.0, 5)
    ledger = ac.Accountant(budget=ac.Budget(1.0, 2e-9, filter="renyi", share=0.5))
    ledger.compose(release)
    masses = [pair.infinite_mass for pair in release.pairs()]
    q = 0.5 * math.erfc(149.0 / 20.0 / math.sqrt(2.0))
    assert max(masses) == pytest.approx(5.0 * q, rel=1e-9)
    assert release.pairs()[0].finite_rdp(4.0) == pytest.approx(5.0 * 4.0 / 2.0 / 400.0)


@pytest.mark.parametrize(
    "release",
    [of(G, 5.0, 30.0, 3), of(L, 3.0, 30.0, 2), of(DL, 3.0, 30.0, 2), of(DG, 4.0, 30.0, 2)],
)
def test_repeated_and_summed_releases_agree(release):
    assert (3 * release).delta(1.0) == (release + 2 * release).delta(1.0)
    assert (release + ac.Gaussian(9.0)).delta(1.0) == (ac.Gaussian(9.0) + release).delta(1.0)
    # No key appears: what is left is the noise.
    far = ac.SparseHistogram(release.noise, threshold=1e7, max_partitions=release.max_partitions)
    noise = far.max_partitions * far.noise
    assert far.delta(0.7) == pytest.approx(noise.delta(0.7), rel=1e-6)


def test_one_adaptive_release_is_one_release():
    release = of(G, 6.0, 36.0, 3)
    assert release.adaptively().delta(1.0) == release.delta(1.0)
    assert ac.parallel(release, adaptive=True).delta(1.0) == pytest.approx(
        release.delta(1.0), rel=1e-4
    )
    both = 2 * ac.parallel(release, adaptive=True)
    assert both.delta(1.0) >= (2 * release).adaptively().delta(1.0) * (1.0 - 1e-9)


def test_a_sample_of_users_amplifies():
    release = of(G, 6.0, 36.0, 2)
    assert 0.0 < ac.PoissonSampled(release, 0.1).delta(0.5) < release.delta(0.5)


def test_calibration_finds_the_largest_number_of_keys():
    def build(keys):
        return of(G, 17.5, 112.4, keys)

    keys = ac.calibrate(build, epsilon=1.0, delta=1e-9, integer=True)
    assert keys == 10
    assert build(10).epsilon(1e-9) <= 1.0 < build(11).epsilon(1e-9)


# Laws


def test_more_noise_at_one_threshold_may_cost_more():
    """Hence nothing searches for the noise at a fixed threshold (Theorem N3)."""
    costs = [of(G, sigma, 36.0).delta(1.0) for sigma in (6.0, 8.0)]
    assert costs[0] < costs[1]


@pytest.mark.parametrize("noise", [G, L, DL, DG])
def test_the_profile_falls_in_the_threshold_and_rises_in_the_bounds(noise):
    def of_keys(tau, keys, moved=1):
        return of(noise, 4.0, tau, keys, moved).delta(0.8)

    taus = [of_keys(tau, 2) for tau in (4.0, 8.0, 16.0, 32.0)]
    assert taus == sorted(taus, reverse=True)
    keys = [of_keys(24.0, n) for n in (1, 2, 4, 7)]
    assert keys == sorted(keys)
    moved = [of_keys(24.0, 2, n) for n in (1, 2, 3)]
    assert moved == sorted(moved)


def test_a_minimum_costs_nothing_if_the_threshold_is_raised_with_it():
    plain = of(G, 17.378, 111.55, 10)
    raised = of(G, 17.378, 111.55 + 19.0, 10, minimum=20)
    left = of(G, 17.378, 111.55, 10, minimum=20)
    assert raised.delta(1.0) == pytest.approx(plain.delta(1.0), rel=1e-12)
    assert left.delta(1.0) > 500.0 * plain.delta(1.0)


def test_values_of_two_users_under_one_key_may_lie_at_opposite_ends():
    release = ac.SparseHistogram(
        G(10.0, relation=REPLACE), threshold=1e4, beside=G(1.0, relation=REPLACE)
    )
    whole = G(1.0, sensitivity=math.sqrt(0.01 + 4.0))
    assert release.delta(1.0) == pytest.approx(whole.delta(1.0), rel=1e-9)  # 0.510, and not 0.289


def test_integer_noise_rounds_the_threshold_up():
    assert of(DG, 6.0, 36.2) == of(DG, 6.0, 37.0)
    assert of(DL, 6.0, -36.2).threshold == -36.0
    assert of(G, 6.0, 36.2).threshold == 36.2


def test_zero_out_is_add_or_remove_and_replacing_costs_more():
    release = of(G, 6.0, 36.0, 3)
    assert release.under(ZERO_OUT).delta(1.0) == release.delta(1.0)
    assert release.under(REPLACE).delta(1.0) > release.delta(1.0)
    assert release.under(REPLACE).under(Relation.ADD_OR_REMOVE) == release


def test_extreme_thresholds_and_noise():
    assert of(G, 5.0, -1e9).epsilon(0.1) == math.inf
    assert of(G, 5.0, -1e9).delta(1.0) == 1.0
    assert of(G, 5.0, 2.0**50).epsilon(1e-6) == pytest.approx(G(5.0).epsilon(1e-6))
    assert of(G, math.inf, 10.0).delta(1.0) == pytest.approx(0.5)
    assert of(G, 1000.0, 9000.0, 10**5).delta(1.0) == pytest.approx(1.0981048e-4, rel=1e-6)
    assert of(G, 5.0, 30.0).epsilon(0.0) == math.inf


def test_the_smallest_laws_have_no_infinite_loss_in_one_direction():
    remove, add = of(G, 6.0, 36.0, 2).pairs()
    assert remove.infinite_mass > 0.0 == add.infinite_mass
    assert add.has_negative_infinite_loss
    assert not remove.has_negative_infinite_loss
    assert remove.rdp(2.0) == math.inf


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: ac.SparseHistogram(ac.PureDP(1.0), threshold=5.0), ac.ArgumentTypeError, "noise"),
        (lambda: of(G, 1.0, math.nan), ac.DomainError, "threshold"),
        (lambda: of(G, 1.0, 5.0, 0), ac.DomainError, "max_partitions"),
        (lambda: of(G, 1.0, 5.0, 1, minimum=0), ac.DomainError, "minimum"),
        (lambda: of(L, 1.0, 5.0, 2, weighted=True), ac.UnsupportedError, "weighted"),
        (lambda: of(G, 1.0, 5.0, max_rows=3), ac.UnsupportedError, "max_rows"),
        (lambda: of(DL, 1.0, 5.0, 2, max_rows=3), ac.DomainError, "max_partitions"),
        (lambda: of(DL, 1.0, 5.0, max_rows=3, minimum=2), ac.UnsupportedError, "max_rows"),
        (lambda: of(DL, 1.0, 5.0, max_rows=3, relation=REPLACE), ac.UnsupportedError, "max_rows"),
        (lambda: of(G, 1.0, 5.0, beside=G(1.0, relation=REPLACE)), ac.UnsupportedError, "beside"),
        (lambda: of(G, 1.0, 5.0).group(2), ac.UnsupportedError, "group of users"),
        (lambda: of(G, 6.0, 36.0).mu(), ac.UnsupportedError, "Gaussian"),
    ],
)
def test_refusals(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_values_are_values():
    release = of(DG, 17.5, 112.0, 5, minimum=3, beside=DG(9.0))
    text = repr(release)
    assert eval(text, vars(ac)) == release
    assert hash(eval(text, vars(ac))) == hash(release)
    assert release.group(1) == release
    assert release.rdp(2.0) == math.inf

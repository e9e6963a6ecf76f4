"""Data-dependent bounds: published values, brute force on small votes, extremes."""

import itertools
import math

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy import integrate, stats

import accountant as ac
from accountant.errors import ArgumentTypeError, DomainError
from accountant.learn.pate import (
    GNMax,
    gaussian_data_dependent_rdp,
    laplace_data_dependent_rdp,
    log_probability_of_another,
    release_data_dependent_epsilon,
)
from accountant.learn.pate.aggregation import gap_table, smooth_bound
from accountant.mechanisms import SmoothSensitivityGaussian

COUNTS = [200, 30, 20]
PUBLISHED = {2.0: 5.4506e-4, 10.0: 7.4463e-4, 50.0: 1.364434e-2}


def test_published_values():
    log_q = float(log_probability_of_another(COUNTS, 40.0)[0])
    assert log_q == pytest.approx(-6.18584, abs=5e-6)
    for order, value in PUBLISHED.items():
        found = gaussian_data_dependent_rdp(log_q, 40.0, order)
        assert found == pytest.approx(value, rel=1e-4)
        assert found < order / 40.0**2


def formula(log_q, sigma, order):
    """The theorem in 700 digits."""
    with mp.workdps(700):
        logq, s, a = mpf(log_q), mpf(sigma), mpf(order)
        m2 = s * mp.sqrt(-logq)
        m1 = m2 + 1
        e1, e2, q = m1 / s**2, m2 / s**2, mp.e**logq
        top = (1 - q) / (1 - (q * mp.e**e2) ** ((m2 - 1) / m2))
        bottom = mp.e**e1 / q ** (1 / (m1 - 1))
        return mp.log((1 - q) * top ** (a - 1) + q * bottom ** (a - 1)) / (a - 1)


@pytest.mark.parametrize("log_q", [-5.0, -6.2, -20.0, -100.0, -300.0, -600.0])
@pytest.mark.parametrize("order", [1.5, 2.0, 20.0])
def test_bounds_are_above_the_formula_and_close_to_it(log_q, order):
    found = gaussian_data_dependent_rdp(log_q, 40.0, order)
    truth = formula(log_q, 40.0, order)
    plain = order / 40.0**2
    assert found <= plain * (1 + 1e-14)
    if found < plain * (1 - 1e-9):
        assert truth <= mpf(found) <= truth * (1 + mpf(1e-9))


def test_extremes_are_safe():
    for log_q in (-300.0, -700.0, -1e6, -math.inf, -1e-300, 0.0):
        for order in (1.0001, 2.0, 1e4, 1e9):
            for sigma in (0.3, 5.0, 1e4):
                value = gaussian_data_dependent_rdp(log_q, sigma, order)
                assert 0.0 <= value <= order / sigma**2 * (1 + 1e-14)
                value = laplace_data_dependent_rdp(log_q, sigma, order)
                assert 0.0 <= value <= 2.0 / sigma * (1 + 1e-12)
    log_q = log_probability_of_another([10_000, 0, 0], 40.0)[0]
    assert -math.inf < log_q < -10_000


def gaussian_law(votes, sigma):
    def density(x, i):
        rest = [stats.norm.cdf((x - v) / sigma) for j, v in enumerate(votes) if j != i]
        return stats.norm.pdf((x - votes[i]) / sigma) / sigma * math.prod(rest)

    low, high = min(votes) - 12 * sigma, max(votes) + 12 * sigma
    return np.array(
        [
            integrate.quad(density, low, high, args=(i,), epsabs=1e-13, limit=300)[0]
            for i in range(len(votes))
        ]
    )


def laplace_law(votes, scale):
    def density(x, i):
        rest = [stats.laplace.cdf(x, v, scale) for j, v in enumerate(votes) if j != i]
        return stats.laplace.pdf(x, votes[i], scale) * math.prod(rest)

    low, high = min(votes) - 40 * scale, max(votes) + 40 * scale
    return np.array(
        [
            integrate.quad(density, low, high, args=(i,), points=sorted(set(votes)), limit=400)[0]
            for i in range(len(votes))
        ]
    )


def neighbours(votes):
    for i, j in itertools.permutations(range(len(votes)), 2):
        if votes[i] > 0:
            moved = list(votes)
            moved[i] -= 1
            moved[j] += 1
            yield moved


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("votes", [(9, 1, 0), (12, 2, 1), (6, 4, 0), (15, 0, 0), (5, 5, 5)])
@pytest.mark.parametrize(
    ("law", "scale"), [(gaussian_law, 1.5), (gaussian_law, 3.0), (laplace_law, 1.5)]
)
def test_the_theorem_by_brute_force(votes, law, scale):
    gaussian = law is gaussian_law
    here = law(votes, scale)
    assert here.sum() == pytest.approx(1.0, abs=1e-7)
    noise = "gaussian" if gaussian else "laplace"
    log_q = float(log_probability_of_another(votes, scale, noise=noise)[0])
    # q bounds the probability of any other class than the first winner.
    assert 1.0 - here[int(np.argmax(votes))] <= math.exp(log_q) + 1e-9
    bound = gaussian_data_dependent_rdp if gaussian else laplace_data_dependent_rdp
    for moved in neighbours(votes):
        there = law(moved, scale)
        for order in (1.5, 2.0, 4.0, 8.0):
            truth = math.log(float(np.sum(here**order * there ** (1 - order)))) / (order - 1)
            assert truth <= bound(log_q, scale, order) + 1e-6


def test_a_mutant_without_the_second_term_is_caught():
    # Dropping q·B^{α-1} claims less than the truth for some neighbour.
    votes, sigma, order = (9, 1, 0), 1.5, 8.0
    here = gaussian_law(votes, sigma)
    worst = max(
        math.log(float(np.sum(here**order * gaussian_law(moved, sigma) ** (1 - order))))
        / (order - 1)
        for moved in neighbours(votes)
    )
    log_q = float(log_probability_of_another(votes, sigma)[0])
    m2 = sigma * math.sqrt(-log_q)
    power = math.exp((log_q + m2 / sigma**2) * (1 - 1 / m2))
    q = math.exp(log_q)
    claimed = order / (order - 1) * math.log1p(-q) - math.log1p(-power)
    assert worst > 0.0
    assert claimed < gaussian_data_dependent_rdp(log_q, sigma, order)


def test_smooth_bounds_by_brute_force():
    teachers, sigma, order, beta = 12, 3.0, 3.0, 0.2
    table = gap_table(teachers, 3, sigma, order)
    assert (np.diff(table) <= 0.0).all()

    def gap(votes):
        ordered = sorted(votes)
        return ordered[-1] - ordered[-2]

    every = [v for v in itertools.product(range(teachers + 1), repeat=3) if sum(v) == teachers]
    for votes in every:
        log_q = float(log_probability_of_another(votes, sigma)[0])
        assert gaussian_data_dependent_rdp(log_q, sigma, order) <= table[gap(votes)] * (1 + 1e-9)
        mine = smooth_bound(np.array([gap(votes)]), table, beta)
        for moved in neighbours(votes):
            # An upper bound on the local sensitivity, that changes by a factor e^β at most.
            assert abs(table[gap(votes)] - table[gap(moved)]) <= mine
            other = smooth_bound(np.array([gap(moved)]), table, beta)
            assert other <= math.exp(beta) * mine * (1 + 1e-9)


def test_smooth_noise_against_quadrature():
    for sigma, beta, order in ((5.0, 0.05, 2.0), (8.0, 0.02, 15.0), (2.0, 0.1, 3.0)):
        claimed = SmoothSensitivityGaussian(sigma, smoothness=beta).rdp(order)
        attained = 0.0
        for t in (-beta, 0.0, beta):
            scale = sigma * math.exp(t)

            def integrand(x, scale=scale, sigma=sigma, order=order):
                log = order * stats.norm.logpdf(x, 0, sigma)
                return math.exp(log + (1 - order) * stats.norm.logpdf(x, 1.0, scale))

            moment = integrate.quad(integrand, -60 * sigma, 60 * sigma, limit=500)[0]
            assert math.log(moment) / (order - 1) <= claimed + 1e-9
            attained = max(attained, math.log(moment) / (order - 1))
        assert attained > 0.3 * claimed
    assert SmoothSensitivityGaussian(5.0, smoothness=0.1).rdp(20.0) == math.inf


def test_the_published_epsilon_is_above_the_private_one():
    rng = np.random.default_rng(4)
    votes = np.array([rng.multinomial(250, [0.9, 0.06, 0.04]) for _ in range(30)])
    aggregator = GNMax(40.0)
    truth = sum(aggregator.data_dependent_rdp(v, 12.0) for v in votes)
    above, last = 0, None
    for seed in range(60):
        last = release_data_dependent_epsilon(
            votes, aggregator, delta=1e-5, order=12.0, failure=0.05, rng=seed
        )
        above += last.rdp >= truth
    assert above >= 54
    assert not last.private
    whole = last.mechanism + ac.Gaussian(4.0)
    assert 0.0 < ac.Gaussian(4.0).epsilon(1e-5) < whole.epsilon(1e-5) < 10.0
    ledger = ac.Accountant()
    ledger.compose(last.mechanism)
    assert ac.Accountant.from_json(ledger.to_json()).epsilon(1e-5) == ledger.epsilon(1e-5)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: log_probability_of_another([1.5, 2.0], 1.0), ArgumentTypeError),
        (lambda: log_probability_of_another([-1, 2], 1.0), DomainError),
        (lambda: log_probability_of_another([3], 1.0), DomainError),
        (lambda: log_probability_of_another([3, 1], math.nan), DomainError),
        (lambda: gaussian_data_dependent_rdp(0.1, 1.0, 2.0), DomainError),
        (lambda: gaussian_data_dependent_rdp(math.nan, 1.0, 2.0), DomainError),
        (lambda: gaussian_data_dependent_rdp(-1.0, 1.0, 1.0), DomainError),
        (lambda: SmoothSensitivityGaussian(1.0, smoothness=0.0), DomainError),
        (
            lambda: release_data_dependent_epsilon([[3, 1], [2, 1]], GNMax(1.0), delta=1e-5),
            DomainError,
        ),
    ],
)
def test_bad_input_is_refused(call, error):
    with pytest.raises(error):
        call()

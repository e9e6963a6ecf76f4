"""Selection mechanisms: output laws against exact probabilities, with mutants; costs; bad input."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

import accountant as ac
from accountant import NeighbouringRelation as Relation
from accountant.errors import ArgumentTypeError, BudgetExceeded, DomainError, UnsupportedError
from accountant.learn.selection import (
    AboveThresholdStream,
    permute_and_flip,
    report_noisy_max,
    select_exponential,
)
from accountant.noise import SecureGenerator

SCORES = [0.0, 0.7, 1.5, 1.2]
DRAWS = 6000
LEAST_P = 1e-4


def softmax(rate):
    weights = np.exp(rate * np.array(SCORES))
    return weights / weights.sum()


def flips(rate):
    """The law of permute-and-flip by its definition: all permutations, one coin after another."""
    best, law = max(SCORES), np.zeros(len(SCORES))
    orders = list(itertools.permutations(range(len(SCORES))))
    for order in orders:
        reach = 1.0 / len(orders)
        for i in order:
            heads = math.exp(rate * (SCORES[i] - best))
            law[i] += reach * heads
            reach *= 1.0 - heads
    return law


def noisy(distribution):
    """P(i is the largest) for continuous noise, by quadrature."""
    law = []
    for i, mine in enumerate(SCORES):
        others = [s for j, s in enumerate(SCORES) if j != i]

        def density(x, mine=mine, others=others):
            return distribution.pdf(x - mine) * math.prod(distribution.cdf(x - s) for s in others)

        law.append(integrate.quad(density, -30, 30, points=SCORES, limit=400)[0])
    return np.array(law)


def pvalue(draw, law, draws=DRAWS):
    counts = np.bincount([draw() for _ in range(draws)], minlength=len(law))
    return stats.chisquare(counts, draws * law / law.sum()).pvalue


LAWS = {
    "gumbel": lambda: softmax(1.0),
    "exponential": lambda: flips(1.0),
    "laplace": lambda: noisy(stats.laplace()),
    "gaussian": lambda: noisy(stats.norm()),
}


@pytest.mark.long
@pytest.mark.parametrize("noise", LAWS)
def test_noisy_maxima_have_their_laws(noise):
    generator = SecureGenerator(21)
    law = LAWS[noise]()
    assert law.sum() == pytest.approx(1.0, abs=1e-6)
    counts = np.bincount(
        [report_noisy_max(SCORES, 1.0, noise=noise, rng=generator).index for _ in range(DRAWS)],
        minlength=4,
    )
    assert stats.chisquare(counts, DRAWS * law / law.sum()).pvalue > LEAST_P
    # Mutants: every other noise of the same scale is told apart.
    for other in LAWS.keys() - {noise}:
        wrong = LAWS[other]()
        if np.abs(wrong - law).max() > 0.02:
            assert stats.chisquare(counts, DRAWS * wrong / wrong.sum()).pvalue < 1e-3, other


@pytest.mark.long
def test_the_exponential_mechanism_has_its_law_and_the_mutant_without_the_two_has_not():
    generator = SecureGenerator(22)

    def draw():
        return select_exponential(SCORES, 2.0, rng=generator).index

    assert pvalue(draw, softmax(1.0)) > LEAST_P
    assert pvalue(draw, softmax(2.0)) < 1e-12
    assert (
        pvalue(
            lambda: select_exponential(SCORES, 2.0, monotonic=True, rng=generator).index,
            softmax(2.0),
        )
        > LEAST_P
    )


@pytest.mark.long
def test_permute_and_flip_has_its_law():
    generator = SecureGenerator(23)

    def draw():
        return permute_and_flip(SCORES, 1.4, sensitivity=0.5, rng=generator).index

    assert pvalue(draw, flips(1.4)) > LEAST_P
    assert pvalue(draw, softmax(1.4)) < 1e-3


def test_exact_losses_of_the_exact_laws_stay_within_the_guarantee():
    # Any two score vectors no further apart than the sensitivity, by the definitions above.
    global SCORES
    kept = SCORES
    try:
        for rate, law in ((0.5, softmax), (0.5, flips)):
            for shift in itertools.product((-1.0, 1.0), repeat=4):
                SCORES = kept
                here = law(rate)
                SCORES = [s + d for s, d in zip(kept, shift, strict=True)]
                there = law(rate)
                assert np.abs(np.log(here / there)).max() <= 2 * rate + 1e-12
    finally:
        SCORES = kept


@pytest.mark.long
def test_above_threshold_has_its_law():
    generator = SecureGenerator(24)
    answers = [0.2, 1.1, 0.9]

    def first():
        stream = AboveThresholdStream(1.0, 0.8, 1.6, rng=generator)
        return next((i for i, a in enumerate(answers) if stream.is_above(a)), 3)

    def chance(i, rho):
        below = math.prod(stats.laplace.cdf(rho - a, scale=1.6) for a in answers[:i])
        return below * (stats.laplace.sf(rho - answers[i], scale=1.6) if i < 3 else 1.0)

    law = np.array(
        [
            integrate.quad(
                lambda r, i=i: stats.laplace.pdf(r - 1.0, scale=0.8) * chance(i, r),
                -40,
                40,
                points=[1.0, *answers],
                limit=400,
            )[0]
            for i in range(4)
        ]
    )
    assert law.sum() == pytest.approx(1.0, abs=1e-6)
    draws = [first() for _ in range(DRAWS)]
    counts = np.bincount(draws, minlength=4)
    assert stats.chisquare(counts, DRAWS * law / law.sum()).pvalue > LEAST_P
    # The mutant does not add noise to the threshold.
    wrong = np.array([chance(i, 1.0) for i in range(4)])
    assert stats.chisquare(counts, DRAWS * wrong).pvalue < 1e-3


def test_above_threshold_stops():
    stream = AboveThresholdStream(0.0, 1.0, 1.0, positives=2)
    assert stream.mechanism == ac.AboveThreshold(1.0, query_scale=1.0, positives=2)
    assert stream.private
    assert stream.is_above(1e6)
    assert not stream.is_above(-1e6)
    assert stream.is_above(1e300)
    with pytest.raises(BudgetExceeded, match="2 times"):
        stream.is_above(0.0)


@pytest.mark.long
def test_costs_compose_with_everything_else():
    ledger = ac.Accountant()
    chosen = [
        report_noisy_max(SCORES, 4.0, noise=noise, sensitivity=0.5)
        for noise in ("gumbel", "exponential", "laplace", "gaussian")
    ]
    chosen += [select_exponential(SCORES, 0.3), permute_and_flip(SCORES, 0.3)]
    for one in chosen:
        assert one.private
        ledger.compose(one.mechanism)
    ledger.compose(ac.Gaussian(3.0), 2)
    parts = sum(one.mechanism.epsilon(1e-6) for one in chosen)
    assert 0.0 < ledger.epsilon(1e-5) < parts + ac.Gaussian(3.0).epsilon(1e-6) * 2
    again = ac.Accountant.from_json(ledger.to_json())
    assert again.epsilon(1e-5) == ledger.epsilon(1e-5)


def test_gaussian_maximum_pays_for_the_vector():
    one = report_noisy_max(SCORES, 4.0, noise="gaussian", sensitivity=0.5)
    assert one.mechanism.sensitivity >= 1.0
    assert one.mechanism.sensitivity == pytest.approx(1.0, rel=1e-7)


def test_seeded_choices_say_so():
    assert not report_noisy_max(SCORES, 1.0, rng=3).private


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: report_noisy_max([], 1.0), DomainError),
        (lambda: report_noisy_max([1.0, math.nan], 1.0), DomainError),
        (lambda: report_noisy_max([1.0, math.inf], 1.0), DomainError),
        (lambda: report_noisy_max([[1.0]], 1.0), DomainError),
        (lambda: report_noisy_max(SCORES, 0.0), DomainError),
        (lambda: report_noisy_max(SCORES, math.nan), DomainError),
        (lambda: report_noisy_max(SCORES, "1"), ArgumentTypeError),
        (lambda: report_noisy_max(SCORES, 1.0, noise="uniform"), DomainError),
        (lambda: report_noisy_max(SCORES, 1.0, sensitivity=0.0), DomainError),
        (lambda: select_exponential(SCORES, 0.0), DomainError),
        (lambda: select_exponential(SCORES, math.inf), DomainError),
        (lambda: permute_and_flip(SCORES, -1.0), DomainError),
        (lambda: AboveThresholdStream(math.nan, 1.0, 1.0), DomainError),
        (lambda: AboveThresholdStream(0.0, 1.0, 1.0, positives=0), DomainError),
        (lambda: AboveThresholdStream(0.0, 1.0, 1.0, positives=2.0), ArgumentTypeError),
        (lambda: AboveThresholdStream(0.0, 1.0, 1.0).is_above(math.nan), DomainError),
    ],
)
def test_bad_input_is_refused(call, error):
    with pytest.raises(error):
        call()


def test_replacing_is_not_monotonic():
    with pytest.raises(UnsupportedError, match="both directions"):
        select_exponential(SCORES, 1.0, monotonic=True, relation=Relation.REPLACE_ONE)

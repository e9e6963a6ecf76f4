"""Shuffled reports of two answers against rational arithmetic over all answers of the others."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import accountant as ac
from accountant.derived.binary_reports import two_answers


def exact_worst(a, users, growth):
    """The largest profile over all answers of the others, for likelihood ratio a of a report."""
    laws = []
    for ones in range(users):
        law = [Fraction(1)]
        for k in range(users - 1):
            p = a / (a + 1) if k < ones else 1 / (a + 1)
            law = [
                (law[j] * (1 - p) if j < len(law) else 0) + (law[j - 1] * p if j else 0)
                for j in range(len(law) + 1)
            ]
        laws.append([*law, Fraction(0)])
    p, q = a / (a + 1), 1 / (a + 1)
    worst = Fraction(0)
    for law in laws:
        zero, one = (
            [x * law[k] + (1 - x) * (law[k - 1] if k else 0) for k in range(len(law))]
            for x in (p, q)
        )
        for first, second in ((zero, one), (one, zero)):
            gains = (f - growth * s for f, s in zip(first, second, strict=True))
            worst = max(worst, sum((g for g in gains if g > 0), Fraction(0)))
    return worst


# Exact powers of the exponentials of doubles: the loss of a report and ε are their logarithms.
@pytest.mark.long(keep=11)
@pytest.mark.parametrize("users", [2, 3, 6, 25])
@pytest.mark.parametrize("a", [Fraction(9, 8), Fraction(3), Fraction(50)])
def test_all_answers_of_the_others(a, users):
    for part in (Fraction(0), Fraction(1, 50), Fraction(1, 4), Fraction(9, 10)):
        growth = 1 + part * (a - 1)
        truth = exact_worst(a, users, growth)
        # Both logarithms are moved to the side that makes the profile no smaller.
        local, at = math.log(a) * (1 + 4e-16), math.log(growth) * (1 - 4e-16)
        found = Fraction(two_answers(local, users, at, users))
        assert truth <= found <= truth * (1 + Fraction(1, 10**7)) + Fraction(1, 10**14)
        # Fewer groups leave users out.
        for groups in (2, 5):
            assert two_answers(local, users, at, groups) >= truth


def reached(loss, users, epsilon, ones):
    """The profile of 0 against 1 for one number of others with the value 1, to 40 digits."""
    with mpmath.workdps(60):
        a = mpmath.exp(mpmath.mpf(loss))
        p, q, growth = a / (a + 1), 1 / (a + 1), mpmath.exp(mpmath.mpf(epsilon))
        law = [mpmath.mpf(1)]
        for count, chance in ((ones, p), (users - 1 - ones, q)):
            row = [
                mpmath.binomial(count, k) * chance**k * (1 - chance) ** (count - k)
                for k in range(count + 1)
            ]
            law = [
                mpmath.fsum(
                    law[j] * row[k - j] for j in range(max(0, k - count), min(k, len(law) - 1) + 1)
                )
                for k in range(len(law) + count)
            ]
        law = [mpmath.mpf(0), *law, mpmath.mpf(0)]
        gains = [
            (p - growth * q) * law[k] - (growth * p - q) * law[k - 1] for k in range(1, len(law))
        ]
        return mpmath.fsum(g for g in gains if g > 0)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    ("loss", "epsilon"),
    [(1e-6, 5e-7), (0.1, 0.05), (1.0, 0.0), (1.0, 0.6), (5.0, 1.0), (20.0, 19.9), (20.0, 0.0)],
)
def test_more_users_than_one_period(loss, epsilon):
    """Sums of more terms than a period has points, at their losses' extremes."""
    for users, ones in ((1500, 0), (1500, 1499), (300, 150)):
        truth = reached(loss, users, epsilon, ones)
        found = two_answers(loss, users, epsilon, users)
        assert found >= truth
        if ones == 0:
            assert found <= 1.3 * truth + mpmath.mpf(1e-290)


@pytest.mark.parametrize("users", [1000, 10**6, 2**30])
def test_ends_meet(users):
    found = ac.ShuffleModel(ac.RandomizedResponse(1.0), dataset_size=users).epsilon_bounds(1e-6)
    assert 0.9993 * found.upper <= found.lower <= found.upper


@pytest.mark.long
def test_more_is_hidden_by_more_groups_and_users():
    rng = np.random.default_rng(0)
    for loss, part in rng.uniform(size=(20, 2)).tolist():
        at = 8.0 * loss * part
        several = [two_answers(8.0 * loss, 5000, at, groups) for groups in (2, 20, 200, 2000)]
        assert several == sorted(several, reverse=True)
        assert two_answers(8.0 * loss, 2**30, at, 100) <= several[-1] * (1 + 1e-4)

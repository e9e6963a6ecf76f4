"""What mutation testing (support/hardening) found nobody watching in one-run audits."""

import mpmath
import numpy as np
import pytest

from accountant.audit import (
    Guesses,
    count_guesses,
    one_run,
    one_run_epsilon,
    one_run_mu,
    one_run_p_value,
)
from accountant.errors import AccountantError
from support.exact_laws import pmf, quantile, tail

mp = mpmath.mpf


pytestmark = pytest.mark.usefixtures("sixty_digits")


def p_value(m, r, v, epsilon, delta):
    """Theorem A7 from its statement."""
    p = 1 / (1 + mpmath.exp(-mp(epsilon)))
    short = sum(
        max(pmf(k, p, j) for j in range(max(0, k - (r - v)), min(k, v - 1) + 1)) for k in range(r)
    )
    return min(mp(1), tail(r, p, v) + (1 - p) * mp(delta) * m * short / r)


@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.5])
@pytest.mark.parametrize("delta", [0.0, 1e-6, 1e-2])
@pytest.mark.parametrize(
    ("m", "r", "v"), [(1, 1, 1), (5, 5, 4), (20, 20, 17), (20, 8, 8), (40, 10, 9), (30, 30, 1)]
)
def test_p_values_are_the_theorems(m, r, v, epsilon, delta):
    truth = p_value(m, r, v, epsilon, delta)
    found = one_run_p_value(Guesses(m, r, v), epsilon, delta)
    assert truth <= found <= truth * (1 + mp("1e-6")) + mp("1e-11")


def test_p_values_at_the_ends():
    assert one_run_p_value(Guesses(5, 5, 0), 1.0, 0.1) == 1.0
    assert one_run_p_value(Guesses(5, 5, 0), 1.0, 0.0) == 1.0
    assert one_run_p_value(Guesses(50, 5, 5), 1.0, 0.9) <= 1.0


@pytest.mark.parametrize(("r", "v"), [(100, 95), (1000, 600), (10, 10)])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_the_bound_is_where_the_p_value_reaches_the_error(r, v, delta):
    guesses = Guesses(1000, r, v)
    found = one_run_epsilon(guesses, delta=delta)
    assert found > 0.0
    assert one_run_p_value(guesses, found, delta) <= 1 - 0.95
    assert one_run_p_value(guesses, found + 1e-9, delta) > 1 - 0.95
    mu = one_run_mu(guesses)
    assert one_run.refutes_curve(guesses, one_run._gaussian_curve(mu), 1 - 0.95)
    assert not one_run.refutes_curve(guesses, one_run._gaussian_curve(mu + 1e-9), 1 - 0.95)


def test_what_refutes_nothing():
    for guesses in (Guesses(10, 10, 5), Guesses(10, 1, 1), Guesses(10, 10, 0)):
        assert one_run_epsilon(guesses, delta=0.0) == one_run_mu(guesses) == 0.0
    for guesses in (Guesses(3, 4, 2), Guesses(3, 2, 3), Guesses(3, 2, -1), Guesses(3, 0, 0)):
        with pytest.raises(AccountantError):
            one_run_epsilon(guesses, delta=0.0)
    assert one_run_epsilon(Guesses(1, 1, 1), delta=0.0, confidence=0.5) == 0.0
    assert one_run_epsilon(Guesses(10, 5, 5), delta=0.0, confidence=0.5) > 1.0


@pytest.mark.parametrize("mu", [0.1, 1.0, 4.0])
def test_the_curve_of_an_audit_is_just_below_the_gaussians(mu):
    curve = one_run._gaussian_curve(mu)
    for fpr in (1e-9, 0.01, 0.3, 0.7, 0.999):
        truth = mpmath.ncdf(-quantile(fpr) - mu)
        assert truth * (1 - mp("2e-11")) - mp("2e-15") <= curve(fpr) <= truth * (1 - mp("1e-12"))
    assert (curve(0.0), curve(1.0)) == (1.0, 0.0)


def test_a_curve_is_refuted_by_one_pass_over_the_counts():
    # Perfect privacy: the counts are binomial, and the pass is exact for all guesses made.
    perfect = lambda fpr: 1.0 - fpr  # noqa: E731
    for m, v in ((4, 4), (6, 6), (8, 7), (20, 17)):
        refuted = [
            error for error in np.geomspace(1e-7, 0.9, 400)
            if one_run.refutes_curve(Guesses(m, m, v), perfect, float(error))
        ]  # fmt: skip
        # Never where the exact tail allows it, and some above.
        assert not any(error <= tail(m, 0.5, v) * (1 - 1e-9) for error in refuted)
    curve = one_run._gaussian_curve(0.5)
    assert one_run.refutes_curve(Guesses(20, 20, 20), curve, 0.05)
    assert not one_run.refutes_curve(Guesses(20, 20, 10), curve, 0.05)


def test_guesses_are_the_ends_of_the_scores():
    scores = np.array([0.3, -2.0, 5.0, 1.0, 4.0, -7.0])
    coins = np.array([False, False, True, True, False, True])
    # In order: 5 1 0 3 4 2, with coins T F F T F T.
    for made, correct in ((1, 1), (2, 1), (3, 1), (4, 2), (5, 3), (6, 4)):
        assert count_guesses(scores, coins, made, direction="higher") == Guesses(6, made, correct)


def test_the_error_is_shared():
    asked = []

    def bound(made, confidence):
        asked.append(confidence)
        return made % 7

    assert one_run.best_of([3, 13, 5], bound, 0.85) == (6, 13)
    assert asked == pytest.approx([0.95] * 3, rel=1e-12)


def test_the_chance_of_a_right_guess_is_rounded_up_to_one():
    for epsilon in (0.0, 0.3, 5.0, 30.0, 37.0, 700.0, 1e6):
        truth = 1 / (1 + mpmath.exp(-mp(epsilon)))
        assert truth <= one_run._sigmoid_up(epsilon) <= min(truth * (1 + mp("2e-14")), 1)


def least_total(guesses, curve, error):
    """Theorem A8: the least total probability, the masses from the observed count down."""
    m, r, v = guesses[:3]
    masses = {v: mp(error)}
    for w in range(v, 0, -1):
        right = sum(j * p for j, p in masses.items())
        wrong = sum((r - j) * p for j, p in masses.items())
        needed = m * mp(curve(float(max(1 - right / m, 0)))) - wrong
        masses[w - 1] = max(needed, 0) / (r - w + 1)
    return sum(masses.values())


@pytest.mark.parametrize("mu", [0.0, 0.3, 1.5])
@pytest.mark.parametrize(("m", "r", "v"), [(5, 5, 5), (20, 20, 16), (30, 12, 12), (40, 9, 7)])
def test_curves_are_refuted_where_the_theorem_says_so(m, r, v, mu):
    guesses, curve = Guesses(m, r, v), one_run._gaussian_curve(mu)
    low, high = 0.0, 1.0
    for _ in range(45):
        middle = 0.5 * (low + high)
        refuted = one_run.refutes_curve(guesses, curve, middle)
        low, high = (low, middle) if refuted else (middle, high)
    assert (high == 1.0) == ((m, mu) == (40, 1.5))  # seven of nine are no surprise there
    assert high == 1.0 or least_total(guesses, curve, high) > 1
    assert least_total(guesses, curve, high * (1 - 1e-6)) <= 1 + mp("2e-9")

"""Few rare events: two steps against an integral, the thresholds' bounds off the real line, widths.

The integral is over the second step's noise, of the first step's profile in closed form: it shares
neither a transform nor a threshold with the core.
"""

import ctypes

import mpmath
import numpy as np
import pytest

from accountant._core import answers as core
from support.native import build, core_files

TWO_STEPS = [
    (1.3e-5, 0.277, 1.7e-5),
    (3.2e-5, 0.548, 1.2e-5),
    (1e-3, 0.52, 6e-4),
    (1e-6, 0.6, 1e-9),
    (3.7e-6, 1.45, 1.7e-15),
    (2.4e-3, 5.6, 3.5e-15),
    (0.03, 0.33, 0.04),
]


def above(z):
    return mpmath.erfc(z / mpmath.sqrt(2)) / 2


def one_step(q, sigma, epsilon, add):
    """E(e^L - e^epsilon)_+ of one step, or E(1 - e^(epsilon + L))_+, for any real epsilon."""
    threshold = -epsilon if add else epsilon
    k = (mpmath.expm1(threshold) + q) / q
    if k <= 0:
        return mpmath.mpf(0) if add else -mpmath.expm1(epsilon)
    x = sigma**2 * mpmath.log(k) + mpmath.mpf("0.5")
    if not add:
        return q * (above((x - 1) / sigma) - k * above(x / sigma))
    kept = 1 - mpmath.exp(epsilon) * (1 - q)
    return kept * above(-x / sigma) - mpmath.exp(epsilon) * q * above((1 - x) / sigma)


def two_steps(q, sigma, epsilon, add):
    """The same of two steps."""
    q, sigma, epsilon = map(mpmath.mpf, (q, sigma, epsilon))

    def integrand(x):
        loss = mpmath.log1p(q * mpmath.expm1((2 * x - 1) / (2 * sigma**2)))
        noise = mpmath.npdf(x, 0, sigma)
        if add:
            return noise * one_step(q, sigma, epsilon + loss, add)
        return noise * mpmath.exp(loss) * one_step(q, sigma, epsilon - loss, add)

    # where the other step's threshold leaves its range, the integrand is smooth but not analytic
    reach = (-epsilon if add else epsilon) - mpmath.log1p(-q)
    half = mpmath.mpf("0.5")
    edge = sigma**2 * mpmath.log(1 + mpmath.expm1(reach) / q) + half if reach > 0 else 0
    steps = {i * sigma for i in range(-14, 15)} | {1 + i * sigma for i in range(15)}
    near = {edge + s * sigma**2 * d for s in (-1, 1) for d in (0.01, 0.03, 0.1, 0.3, 1, 2)} | {edge}
    return mpmath.quad(integrand, sorted(steps | near), method="gauss-legendre", maxdegree=6)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("direction", [core.REMOVE, core.ADD], ids=["remove", "add"])
@pytest.mark.parametrize(("q", "sigma", "delta"), TWO_STEPS)
def test_two_steps_by_a_direct_integral(q, sigma, delta, direction):
    if direction == core.ADD:  # a tiny δ is far below the other direction's, and its bracket wide
        delta = 0.6 * core.delta_bounds(q, sigma, 2.0, 0.0, direction)[0]
    epsilon = core.epsilon_bounds(q, sigma, 2.0, delta, direction)[1]
    lower, upper = core.delta_bounds(q, sigma, 2.0, epsilon, direction)
    with mpmath.workdps(25):
        truth = two_steps(q, sigma, epsilon, direction == core.ADD)
        assert lower <= truth <= upper
        assert upper - lower <= (1e-8 if direction == core.REMOVE else 1e-4) * upper


@pytest.mark.parametrize(
    ("q", "sigma", "steps", "delta"),
    [
        (1e-6, 0.5, 1e6, 1e-9),
        (3.0767e-8, 0.2301, 140439.0, 4.5289e-4),
        (1.0103e-3, 0.2647, 7.0, 5.15e-3),
        (2.188e-3, 0.2304, 13.0, 2.35e-2),
        (3.776e-5, 0.5875, 38.0, 2.28e-11),
        (1.175e-5, 0.8216, 14.0, 4.69e-11),
        (4.942e-6, 0.518, 3.0, 5.09e-10),
    ],
)
def test_rare_events_have_an_exact_answer(q, sigma, steps, delta):
    lower, upper = core.epsilon_bounds(q, sigma, steps, delta, core.EITHER)
    assert upper - lower <= 1e-9 * upper


class Threshold(ctypes.Structure):
    _fields_ = (
        ("origin", ctypes.c_double),
        ("scale", ctypes.c_double),
        ("doublings", ctypes.c_int),
    )


def test_bounds_of_the_thresholds_hold_off_the_real_line(tmp_path):
    library = build(tmp_path, core_files())
    bounds = library.acct_threshold_bounds
    bounds.argtypes = [*[ctypes.c_double] * 4, Threshold, *[ctypes.POINTER(ctypes.c_double)] * 2]
    draw = np.random.default_rng(5)
    used = 0
    for _ in range(2000):
        doublings = int(draw.integers(3, 8))
        low = 10 ** draw.uniform(-2, 1)
        high = low * (1 + 10 ** draw.uniform(-2, 0.3))
        modulus, arg = low * 10 ** draw.uniform(-3, -0.5), low * 10 ** draw.uniform(-3, -0.1)
        log_above, log_below = ctypes.c_double(), ctypes.c_double()
        threshold = Threshold(-0.1, 1.0, doublings)
        if not bounds(low - 0.1, high - 0.1, modulus, arg, threshold, log_above, log_below):
            continue
        used += 1
        excess = draw.uniform(low - modulus, high, 50) + 1j * draw.uniform(-arg, arg, 50)
        corners = [x + s * 1j * arg for x in (low - modulus, high) for s in (-1, 0, 1)]
        excess = np.append(excess, corners)
        t = -np.expm1(-(excess**2))
        above = np.abs(t) ** 2**doublings
        below = np.abs(np.exp(-(excess**2)) * sum(t**i for i in range(2**doublings)))
        slack = 1 + 1e-9  # of the doubles here
        assert np.all(above <= np.exp(log_above.value) * slack + 1e-250)
        assert np.all(below <= np.exp(log_below.value) * slack)
    assert used > 500


def test_answers_do_not_depend_on_what_was_asked_before():
    """Sums run over whole registers: what fills them up weighs nothing."""
    asked = [
        (0.0004875581681060456, 0.8234830975429125, 358, 1.8305170726342595e-14),
        (3.411890539676092e-05, 0.6424717221033857, 1931, 9.045751404981122e-09),
        (1e-5, 0.7, 13, 2.2e-14),
        (1.2e-5, 1.0, 3, 2.7e-7),
        (0.01, 1.0, 1000, 1e-5),
        (0.0014732278256953677, 1.8865371084953273, 2, 4e-123),
    ]
    answers = [core.epsilon_bounds(*one, core.REMOVE) for one in asked]
    for seed in range(6):
        order = np.random.default_rng(seed).permutation(len(asked))
        assert all(core.epsilon_bounds(*asked[i], core.REMOVE) == answers[i] for i in order)

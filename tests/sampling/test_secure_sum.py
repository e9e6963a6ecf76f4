"""Discrete Gaussian noise on vectors against exact sums over boxes of integer vectors."""

import itertools
import math

import pytest
from mpmath import mp, mpf

import accountant as ac
from accountant.sampling import discrete_gaussian_sum_of_vectors, secure_sum, skellam_sum_of_vectors


def divergence(law, shift, q, epsilon):
    """Return δ of the sampled vector when the record is removed; ``law`` has the masses of |x|."""
    reach = len(law) - max(shift) - 1
    with mp.workdps(30):
        delta, factor = mpf(0), mp.exp(mpf(epsilon))
        for cell in itertools.product(*(range(-reach, reach + s + 1) for s in shift)):
            p = mp.fprod(law[abs(x - s)] for x, s in zip(cell, shift, strict=True))
            r = mp.fprod(law[abs(x)] for x in cell)
            delta += max((1 - mpf(q)) * r + mpf(q) * p - factor * r, mpf(0))
        return delta


def gaussian(sigma, shift):
    with mp.workdps(30):
        weights = [mp.exp(-(mpf(x) ** 2) / (2 * mpf(sigma) ** 2)) for x in range(100)]
        total = 2 * mp.fsum(weights) - weights[0]
        return [w / total for w in weights[: math.ceil(9 * sigma) + max(shift) + 1]]


def skellam(variance, shift):
    with mp.workdps(30):
        last = math.ceil(11 * math.sqrt(variance)) + 8 + max(shift)
        return [mp.besseli(k, variance) * mp.exp(-variance) for k in range(last + 1)]


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("q", [1.0, 0.1])
@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.5])
@pytest.mark.parametrize(
    ("sigma", "shift"), [(3.0, (1, 1)), (3.0, (2, 1)), (4.0, (3,)), (5.0, (2, 0))]
)
def test_no_vector_exceeds_the_upper_end(sigma, shift, q, epsilon):
    release = discrete_gaussian_sum_of_vectors(
        sigma, coordinates=len(shift), sensitivity=math.hypot(*shift), sampling_probability=q
    )
    truth = divergence(gaussian(sigma, shift), shift, q, epsilon)
    upper = mpf(release.delta(epsilon))
    assert truth <= upper
    # The variance that is lost is 4 of sigma squared, no more.
    least = ac.Gaussian(math.sqrt(sigma**2 - 4.5), sensitivity=math.hypot(*shift))
    least = ac.PoissonSampled(least, q) if q < 1 else least
    assert upper <= mpf(least.delta(epsilon)) + mpf(10) ** -25


def test_the_kernel_is_what_makes_it_a_bound(monkeypatch):
    """The Gaussian of the full variance is not a bound: the test above would notice."""
    assert divergence(gaussian(3.0, (1, 1)), (1, 1), 1.0, 0.5) > mpf(
        ac.Gaussian(3.0, sensitivity=math.sqrt(2.0)).delta(0.5)
    )


def test_long_vectors_of_secure_sums_are_all_but_gaussian():
    release = 100 * discrete_gaussian_sum_of_vectors(
        20.0, contributors=80, coordinates=10**6, sensitivity=100.0
    )
    gaussian = (100 * ac.Gaussian(20.0 * math.sqrt(80), sensitivity=100.0)).epsilon(1e-6)
    assert gaussian < release.epsilon(1e-6) < gaussian * (1 + 1e-4)
    # One integer coordinate: the truth is at least this, so both ends are within 1e-4 of it.
    single = ac.DiscreteGaussianSum(20.0, contributors=80, sensitivity=100)
    assert (100 * single).epsilon_bounds(1e-6).lower > gaussian * (1 - 1e-5)


def test_rounds_on_samples_cost_what_their_gaussian_does():
    release = discrete_gaussian_sum_of_vectors(
        20.0, coordinates=100, sensitivity=20.0, sampling_probability=0.01
    )
    bounds = (1000 * release).epsilon_bounds(1e-6)
    gaussian = (1000 * release.mechanism).epsilon_bounds(1e-6)
    assert bounds.upper <= gaussian.lower * (1 + 1e-6)
    assert bounds.lower == 0.0  # no integers are known to reach it
    known = (1000 * ac.PoissonSampled(ac.Gaussian(1.0), 0.01)).epsilon(1e-6)
    assert known < bounds.upper < 1.02 * known


@pytest.mark.parametrize("sigma", [1e150, 1e155, 1e300, 1e308])
def test_noise_whose_variance_is_beyond_the_doubles_has_a_cost(sigma):
    release = discrete_gaussian_sum_of_vectors(
        sigma, contributors=4, coordinates=3, sensitivity=sigma
    )
    least = ac.Gaussian(2.0).epsilon(1e-6)
    assert least <= release.epsilon(1e-6) <= 2.001 * least
    free = discrete_gaussian_sum_of_vectors(math.inf, coordinates=3, sensitivity=sigma)
    assert free.epsilon(1e-6) == 0.0


def test_noise_at_the_scale_of_integers_is_refused():
    for given in ({"sigma": 1.0}, {"sigma": 2.0, "contributors": 1000, "coordinates": 10**9}):
        sigma = given.pop("sigma")
        with pytest.raises(ac.UnsupportedError, match="larger noise_multiplier"):
            discrete_gaussian_sum_of_vectors(sigma, **{"coordinates": 10, **given})
    with pytest.raises(ac.DomainError, match="coordinates"):
        discrete_gaussian_sum_of_vectors(5.0, coordinates=0)
    assert secure_sum.TOO_ROUGH < 1e-11


@pytest.mark.long
@pytest.mark.parametrize("q", [1.0, 0.1])
@pytest.mark.parametrize(("variance", "shift"), [(4.0, (1, 1)), (9.0, (2, 1)), (9.0, (3,))])
def test_no_vector_with_skellam_noise_exceeds_the_upper_end(variance, shift, q):
    norm = math.hypot(*shift)
    release = skellam_sum_of_vectors(variance, sensitivity=norm, sampling_probability=q)
    least = ac.Gaussian(math.sqrt(variance - 3.0), sensitivity=norm)
    least = ac.PoissonSampled(least, q) if q < 1 else least
    for epsilon in (0.0, 0.3, 2.0):
        upper = mpf(release.delta(epsilon))
        assert divergence(skellam(variance, shift), shift, q, epsilon) <= upper
        assert upper <= mpf(least.delta(epsilon))


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("variance", [4, 5, 9, 100, 1000])
def test_the_price_of_one_unit_is_the_largest_step_of_the_quantiles(variance):
    with mp.workdps(60):
        reach = math.ceil(12 * math.sqrt(variance)) + 60
        law = [mp.besseli(k, variance) * mp.exp(-variance) for k in range(reach)]
        tails = [mp.fsum(law[c:]) for c in range(reach)]
        quantiles = [mp.sqrt(2) * mp.erfinv(1 - 2 * t) for t in tails if t > 1e-30]
        largest = max(b - a for a, b in itertools.pairwise(quantiles))
    found = 1.0 / skellam_sum_of_vectors(float(variance)).mechanism.noise_multiplier
    assert largest <= found <= largest * (1 + mpf(1) / variance)


def test_skellam_noise_of_any_variance():
    for variance in (4.0, 4.1, 1e3, 2.0**53, 1e100, 1.7e308):
        unit = skellam_sum_of_vectors(variance).mechanism.noise_multiplier
        assert math.sqrt(variance) * (1 - 1.5 / variance - 1e-12) < unit < math.sqrt(variance)
    with pytest.raises(ac.UnsupportedError, match="at least 4"):
        skellam_sum_of_vectors(3.9)
    # One integer: the exact mechanism is as good, and no better.
    exact = (1000 * ac.Skellam(250.0)).epsilon_bounds(1e-6)
    vector = (1000 * skellam_sum_of_vectors(250.0)).epsilon(1e-6)
    assert exact.lower <= vector <= exact.upper * 1.02

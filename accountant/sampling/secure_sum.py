"""Secure sums of vectors with integer noise: all but Gaussian noise, sampled or not."""

from __future__ import annotations

import math
import sys

from accountant import checks
from accountant._basics.rounding import U, up
from accountant.errors import UnsupportedError
from accountant.mechanisms.base import Mechanism
from accountant.mechanisms.discrete import CLIENTS, VARIANCE
from accountant.mechanisms.gaussian import Gaussian
from accountant.mechanisms.stated_guarantees import ApproximateDP, DominatedBy
from accountant.relations import ADD_OR_REMOVE, NeighbouringRelation
from accountant.sampling.poisson import PoissonSampled

COORDINATES = checks.integers("coordinates", 1, 2**40, "It is the length of the vector")
# The least variance for which Theorem M24 holds.
LEAST_VARIANCE = 4.0
# The most by which the laws of all coordinates together may be rough (Theorem M22).
TOO_ROUGH = 1e-12


def discrete_gaussian_sum_of_vectors(
    noise_multiplier: float,
    *,
    contributors: int = 1,
    coordinates: int,
    sensitivity: float = 1.0,
    sampling_probability: float = 1.0,
    relation: NeighbouringRelation = ADD_OR_REMOVE,
) -> Mechanism:
    """Return what dominates discrete Gaussian noises of several clients on a vector of integers.

    Parameters
    ----------
    noise_multiplier : float
        The parameter σ of each client's noise in each coordinate; about 2 or more.
    contributors : int
        How many clients surely add their noise.
    coordinates : int
        The length of the vector.
    sensitivity : float
        The largest ℓ2 norm of what one record (or one client) adds to the vector of integers, after
        rounding.
    sampling_probability : float
        In (0, 1]: the probability with which each record (or client) is sampled.
    relation : NeighbouringRelation
        As in :class:`~accountant.mechanisms.gaussian.Gaussian`.

    Returns
    -------
    Mechanism
        Gaussian noise, sampled where the probability is below 1, of a variance that is smaller by
        4 to 6 than the n σ² of the sum, and a δ of about 1e-30.

    Raises
    ------
    UnsupportedError
        Where the noise is so small that the sum is not smooth at the scale of integers.

    Notes
    -----
    *Guarantee.* The noisy vector is, but for an event of that δ, a randomised rounding of a vector
    with Gaussian noise (docs/theorems_mechanisms.md, Theorem M23). Lower ends are 0: the
    integers may cost less than that Gaussian, though at least what
    :class:`~accountant.mechanisms.discrete.DiscreteGaussianSum` costs at an integer
    sensitivity, which is that of a Gaussian of variance n σ² to within rounding.

    Examples
    --------
    >>> from accountant.sampling import discrete_gaussian_sum_of_vectors
    >>> update = discrete_gaussian_sum_of_vectors(
    ...     20.0, contributors=80, coordinates=10**6, sensitivity=100.0)
    >>> f"{(100 * update).epsilon(1e-6):.3f}"
    '41.480'
    """
    sigma = checks.number(checks.NOISE_MULTIPLIER, noise_multiplier)
    n = checks.whole(CLIENTS, contributors)
    d = checks.whole(COORDINATES, coordinates)
    norm = checks.number(checks.SENSITIVITY, sensitivity)
    rate = checks.number(checks.SAMPLING_PROBABILITY, sampling_probability)
    # The kernel's variance t²: 4.3·d·e^{-2π²t²} is below 1e-30.
    kernel = (math.log(4.3 * d) + 70.0) / (2.0 * math.pi**2)
    # Both halves of every sum have at least one client: s² >= σ²/2 (M22).
    ripple = math.exp(-((math.pi * min(sigma, 1e3)) ** 2))
    rough = up(1.1 * (n - 1) * 2.1 * ripple if n > 1 else 0.0, 8.0)
    # In units of σ², for which no σ is too large.
    variance = n * (1.0 - 8.0 * U) - kernel / sigma / sigma
    if not (2.2 * d * rough <= TOO_ROUGH and variance > 0.0):
        raise UnsupportedError(
            f"discrete_gaussian_sum_of_vectors must have a larger noise_multiplier for {n}"
            f" clients and {d} coordinates; got {sigma!r}. Use a finer unit, or account"
            " DiscreteGaussianVector, which is bounded by its Rényi divergence"
        )
    lost = up(d * up(4.3 * math.exp(-2.0 * math.pi**2 * kernel) + 2.2 * rough, 16.0))
    noise = math.inf if sigma == math.inf else min(sigma * math.sqrt(variance), sys.float_info.max)
    smooth = Gaussian(noise * (1.0 - 8.0 * U), sensitivity=norm, relation=relation)
    sampled = PoissonSampled(smooth, rate) if rate < 1.0 else smooth
    return DominatedBy(sampled + ApproximateDP(0.0, delta=lost, relation=relation))


def skellam_sum_of_vectors(
    variance: float,
    *,
    sensitivity: float = 1.0,
    sampling_probability: float = 1.0,
    relation: NeighbouringRelation = ADD_OR_REMOVE,
) -> Mechanism:
    """Return what dominates Skellam noise on a vector of integers.

    Parameters
    ----------
    variance : float
        Of the noise in each coordinate, at least 4: the sum of the variances of those who surely
        add theirs.
    sensitivity, sampling_probability, relation
        As in :func:`discrete_gaussian_sum_of_vectors`.

    Returns
    -------
    Mechanism
        Gaussian noise, sampled where the probability is below 1, of a variance that is smaller by
        less than 3. The length of the vector does not matter.

    Notes
    -----
    *Guarantee.* The noisy vector is as private as one with that Gaussian noise
    (docs/theorems_mechanisms.md, Theorem M24). Lower ends are 0.
    For one integer :class:`~accountant.mechanisms.discrete.Skellam` is exact.

    Examples
    --------
    >>> from accountant.sampling import skellam_sum_of_vectors
    >>> update = skellam_sum_of_vectors(80 * 400.0, sensitivity=100.0)
    >>> f"{(100 * update).epsilon(1e-6):.3f}"
    '41.478'
    """
    total = checks.number(VARIANCE, variance)
    norm = checks.number(checks.SENSITIVITY, sensitivity)
    rate = checks.number(checks.SAMPLING_PROBABILITY, sampling_probability)
    if not (total >= LEAST_VARIANCE):
        raise UnsupportedError(
            f"skellam_sum_of_vectors must have a variance of at least {LEAST_VARIANCE:g}; got"
            f" {variance!r}. Use a finer unit"
        )
    # A bound κ on second differences of -log P, then D².
    excess = (0.5 + 2.25 / (total + math.hypot(total, 1.5))) / total
    bend = max(2.0 * math.log1p(excess), -math.log1p(-1.0 / total)) * (1.0 + 16.0 * U)
    square = 2.0 * bend / (1.0 + math.sqrt(1.0 - bend)) * (1.0 + 16.0 * U)
    noise = min(1.0 / math.sqrt(square), sys.float_info.max) if square > 0.0 else math.inf
    smooth = Gaussian(noise * (1.0 - 8.0 * U), sensitivity=norm, relation=relation)
    return DominatedBy(PoissonSampled(smooth, rate) if rate < 1.0 else smooth)

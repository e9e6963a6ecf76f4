"""What the rounds of a federation release: noisy sums of clipped updates, and their mechanisms.

An update is what a client would change in the model: a vector of floats, of a public length.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accountant import checks, sampling
from accountant._basics.arrays import FloatArray
from accountant.errors import DomainError, UnsupportedError
from accountant.learn.clipping import CLIPPING_NORM, AdaptiveQuantile
from accountant.learn.release import release_fraction
from accountant.mechanisms import Gaussian, Mechanism
from accountant.noise import Grid, SecureGenerator
from accountant.noise.integer_law import LARGEST_VARIANCE, skellam
from accountant.relations import NeighbouringRelation

IntArray: TypeAlias = NDArray[np.int64]

# For the rounding of a norm (numpy adds pairwise) and of the quotient by which an update shrinks.
_SLACK = 1.0 - 1e-12
DISTRIBUTIONS = ("discrete gaussian", "skellam")
_FINER = 2.0**20  # steps of the grid in a standard deviation of the noise

RATE = checks.Argument(
    "sampling_probability",
    "a probability in (0, 1]",
    lambda x: (x > 0.0) & (x <= 1.0),
    "It is the chance of each client to be asked in a round",
)
_MOST = 2**30  # clients, and integers to which a clipping norm is scaled


@dataclass(frozen=True)
class _Noise:
    """What both have: noise over a clipping norm, which a rule may move."""

    noise_multiplier: float
    clipping_norm: float | AdaptiveQuantile

    @property
    def rule(self) -> AdaptiveQuantile:
        """The rule of the first round; one that is not adaptive never moves."""
        rule = self.clipping_norm
        return rule if isinstance(rule, AdaptiveQuantile) else AdaptiveQuantile(float(rule))

    @property
    def is_adaptive(self) -> bool:
        """Whether the norm moves, by a count that is paid for."""
        return isinstance(self.clipping_norm, AdaptiveQuantile)

    def _of_the_sum(self, rule: AdaptiveQuantile) -> float:
        """Return the noise multiplier that the count leaves for the sum."""
        noise = self.noise_multiplier
        return rule.gradient_noise(noise) if self.is_adaptive else noise


@dataclass(frozen=True)
class CentralNoise(_Noise):
    """Every client joins by its own coin; a trusted server clips, adds up and adds noise once.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise over the clipping norm, > 0.
    clipping_norm : float or AdaptiveQuantile
        Bound on the ℓ2 norm of a client's update, in [1e-18, 1e18]; or a rule that moves it, paid
        for within ``noise_multiplier``.
    sampling_probability : float
        In (0, 1]: the chance of each client to be asked in a round.

    Notes
    -----
    *Guarantee.* Adding or removing a client costs a round what the Gaussian mechanism on a Poisson
    sample costs (docs/theorems_adapters.md, Theorem E11).
    """

    sampling_probability: float = 1.0

    def __post_init__(self) -> None:
        checks.number(checks.NOISE_MULTIPLIER, self.noise_multiplier)
        checks.number(RATE, self.sampling_probability)
        checks.real(CLIPPING_NORM, self.rule.clipping_norm)
        self._deviation(self.rule)

    def mechanism(self, length: int) -> Mechanism:
        """Return what one round costs each client; it does not depend on the length."""
        one = Gaussian(self.noise_multiplier)
        rate = self.sampling_probability
        return sampling.PoissonSampled(one, rate) if rate < 1.0 else one

    def release(
        self,
        updates: Iterable[FloatArray],
        length: int,
        clients: int,
        rule: AdaptiveQuantile,
        generator: SecureGenerator,
    ) -> tuple[FloatArray, AdaptiveQuantile]:
        """Return the noisy mean update, and the rule of the next round.

        Parameters
        ----------
        updates : iterable of ndarray of shape (length,)
            Those that arrived, at most one a client. One that is not finite counts as nothing.
        length, clients : int
            Public: the length of an update, and how many clients had a coin.
        rule : AdaptiveQuantile
            That of this round.
        generator : SecureGenerator
            For the noise.
        """
        norm, deviation = rule.clipping_norm, self._deviation(rule)
        grid = Grid.at_most(deviation / _FINER)
        grid.require_range(norm * clients)
        total = np.zeros(length)
        arrived = unclipped = 0
        for update in updates:
            kept, inside = clipped(update, norm)
            total += np.trunc(kept / grid.step)
            arrived += 1
            unclipped += inside
        noisy = grid.release_gaussian(total * grid.step, deviation, generator)
        expected = self.sampling_probability * clients
        if self.is_adaptive:
            fraction = release_fraction(rule, unclipped, arrived, expected, generator)
            rule = rule.updated(fraction)
        return noisy / expected, rule

    def _deviation(self, rule: AdaptiveQuantile) -> float:
        return self._of_the_sum(rule) * rule.clipping_norm * (1.0 + 2.0**-50)


@dataclass(frozen=True)
class SecureSumNoise(_Noise):
    """Every client clips, rounds to integers and adds noise; the server sees the sum alone.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise of the least survivors together over the clipping norm.
    clipping_norm : float or AdaptiveQuantile
        Bound on the ℓ2 norm of a client's update, in [1e-18, 1e18]; or a rule that moves it by a
        count in the same sum, paid for within ``noise_multiplier``.
    least_survivors : int
        How many clients must answer; with fewer the sum is not opened.
    colluding : int
        How many of those may tell the server their own noise.
    levels : int
        How many integers the clipping norm is: what is below one of them is lost.
    distribution : {"discrete gaussian", "skellam"}
        Of each client's noise. Sums of Skellam noise are Skellam noise; sums of discrete Gaussians
        need noise of two integers or more from each client.

    Notes
    -----
    *Guarantee.* Blanking the data of a client that takes part costs a round what
    :func:`~accountant.sampling.discrete_gaussian_sum_of_vectors` or
    :func:`~accountant.sampling.skellam_sum_of_vectors` says (docs/theorems_adapters.md, Theorem
    E12). That a client takes part, or drops out, is not hidden. Whoever opens sums must open no sum
    of fewer answers.
    """

    least_survivors: int
    colluding: int = 0
    levels: int = 2**16
    distribution: str = "discrete gaussian"

    def __post_init__(self) -> None:
        if checks.number(checks.NOISE_MULTIPLIER, self.noise_multiplier) == math.inf:
            raise DomainError("noise_multiplier must be finite; got inf. Noise is in integers")
        checks.number(CLIPPING_NORM, self.rule.clipping_norm)
        least = checks.integer("least_survivors", self.least_survivors, 1, _MOST)
        checks.integer("levels", self.levels, 1, _MOST)
        checks.choice("distribution", self.distribution, DISTRIBUTIONS)
        if not (checks.integer("colluding", self.colluding, 0, _MOST) < least):
            raise DomainError(
                f"colluding must be below least_survivors = {least}; got {self.colluding}. One"
                " client at least must keep its noise secret"
            )
        if self.distribution == "skellam" and not (self.scale**2 <= LARGEST_VARIANCE):
            raise UnsupportedError(
                "the variance of one client's Skellam noise must be at most"
                f" {LARGEST_VARIANCE}; got {self.scale**2}. Use fewer levels, or"
                " distribution='discrete gaussian'"
            )

    @property
    def scale(self) -> int:
        """The deviation of each client's noise, in integers, rounded up."""
        honest = self.least_survivors - self.colluding
        return math.ceil(self._deviation / math.sqrt(honest) * (1.0 + 2.0**-50))

    @property
    def _deviation(self) -> float:
        """That of the least survivors together, in integers."""
        return self._of_the_sum(self.rule) * self.levels

    @property
    def _vote(self) -> int:
        """By which integer a client says whether it was clipped; 0 without such a count."""
        if not self.is_adaptive:
            return 0
        return max(1, round(self._deviation / (2.0 * self.rule.count_noise)))

    def length(self, model: int) -> int:
        """Return the length of a message about a model of this length."""
        return model + self.is_adaptive

    def mechanism(self, length: int) -> Mechanism:
        """Return what one round costs each client whose data are blanked."""
        honest = self.least_survivors - self.colluding
        farthest = math.hypot(self.levels, self._vote) * (1.0 + 2.0**-50)
        if self.distribution == "skellam":
            return sampling.skellam_sum_of_vectors(
                float(honest * self.scale**2),
                sensitivity=farthest,
                relation=NeighbouringRelation.ZERO_OUT,
            )
        return sampling.discrete_gaussian_sum_of_vectors(
            float(self.scale),
            contributors=honest,
            coordinates=self.length(length),
            sensitivity=farthest,
            relation=NeighbouringRelation.ZERO_OUT,
        )

    def message(
        self, update: FloatArray, generator: SecureGenerator, clipping_norm: float | None = None
    ) -> IntArray:
        """Return what a client sends into the secure sum: its update in integers, with noise.

        Parameters
        ----------
        update : ndarray of shape (length,)
            One that is not finite counts as zero.
        generator : SecureGenerator
            The client's own.
        clipping_norm : float, optional
            Of the round, as the server says; by default that of the first. No value of it costs
            more privacy.
        """
        norm = self.rule.clipping_norm if clipping_norm is None else clipping_norm
        checks.number(CLIPPING_NORM, norm)
        kept, inside = clipped(update, norm)
        whole = np.trunc(kept * (self.levels / norm * _SLACK)).astype(np.int64)
        if self.is_adaptive:
            # A client without data says nothing.
            vote = self._vote * (2 * inside - 1) * bool(kept.any())
            whole = np.append(whole, np.int64(vote))
        if self.distribution == "skellam":
            return whole + skellam(generator, whole.size, self.scale**2)
        return whole + generator.discrete_gaussian(whole.size, self.scale)

    def opened(
        self, messages: Iterable[FloatArray], rule: AdaptiveQuantile | None = None
    ) -> tuple[FloatArray, AdaptiveQuantile] | None:
        """Return the mean of the messages as an update, and the rule of the next round.

        None where too few arrived. ``rule`` is that of this round, by default of the first.
        """
        now = self.rule if rule is None else rule
        arrived = [each for each in messages if bool(np.all(np.isfinite(each)))]
        if len(arrived) < self.least_survivors:
            return None
        mean = np.sum(arrived, axis=0) / len(arrived)
        if self.is_adaptive:
            mean, vote = mean[:-1], float(mean[-1])
            rule = now.updated(0.5 + vote / (2.0 * self._vote))
        return np.asarray(mean * (now.clipping_norm / self.levels)), rule or now


def flat(arrays: Iterable[ArrayLike]) -> FloatArray:
    """Return arrays as one vector."""
    parts = [np.asarray(each, dtype=np.float64).ravel() for each in arrays]
    return np.concatenate(parts) if parts else np.zeros(0)


def unflat(vector: FloatArray, like: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return a vector as arrays of these names, shapes and types, in their order."""
    ends = np.cumsum([old.size for old in like.values()])
    parts = np.split(vector, ends[:-1])
    return {
        name: part.reshape(old.shape).astype(old.dtype)
        for (name, old), part in zip(like.items(), parts, strict=True)
    }


def clipped(update: FloatArray, norm: float) -> tuple[FloatArray, bool]:
    """Return the update with a norm of at most ``norm``, and whether it had one before."""
    # Squares of short floats and of integers lose digits, or wrap around.
    update = np.asarray(update, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        found = math.sqrt(float(np.sum(np.square(update))))
    if not math.isfinite(found):
        return np.zeros_like(update), False
    factor = min(1.0, norm / max(found, 1e-300)) * _SLACK
    return update * factor, found <= norm

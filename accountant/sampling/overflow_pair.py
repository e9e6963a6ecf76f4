"""The pair of Gaussian noise when the other records may have filled the batch (Theorem S21)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from accountant._rounding import U, half_square, lift, ratio_up, up
from accountant._typing import FloatArray
from accountant.mechanisms.gaussian import GaussianPair
from accountant.pairs.base import DominatingPair, Masses
from accountant.sampling.sampled_pairs import SampledPair


@dataclass(frozen=True)
class DoubtfulGaussian(DominatingPair):
    """N(1, σ²) against N(0, σ²) with a probability of something else, or the reverse.

    Parameters
    ----------
    noise_multiplier : float
        σ > 0.
    doubt : float
        In [0, 1): the probability, under the law without the record, of what the other never gives.
    add : bool
        The reversed pair.
    """

    noise_multiplier: float
    doubt: float
    add: bool = False

    @property
    def _plain(self) -> GaussianPair:
        return GaussianPair(self.noise_multiplier)

    @property
    def _raised(self) -> float:
        """What the doubt adds to every loss."""
        return -math.log1p(-self.doubt)

    @property
    def support(self) -> tuple[float, float]:
        """No bound."""
        return -math.inf, math.inf

    @property
    def infinite_mass(self) -> float:
        """The doubt, where its law comes first."""
        return self.doubt if self.add else 0.0

    @property
    def loss_error(self) -> float:
        """That of the noise, and the rounding of the sum."""
        return up(self._plain.loss_error + 16.0 * U * (1.0 + self._raised))

    def masses(self, edges: FloatArray) -> Masses:
        """Return the masses between edges."""
        edges = np.asarray(edges, dtype=np.float64)
        if self.add:
            mirrored = self._remove(-edges[::-1])
            return Masses(mirrored.q[::-1].copy(), mirrored.p[::-1].copy(), mirrored.relative_error)
        return self._remove(edges)

    def _remove(self, edges: FloatArray) -> Masses:
        p, q, error = self._plain.masses(edges - self._raised)
        q = (1.0 - self.doubt) * q
        q[0] += self.doubt
        return Masses(p, q, error + 4.0 * U)


@dataclass(frozen=True)
class OverflowPair(SampledPair):
    """A Poisson sample of :class:`DoubtfulGaussian`: a step in which others may fill the batch."""

    @property
    def mu(self) -> float:
        """That of a step in which the record displaces another (Theorem S13)."""
        return up(2.0 * ratio_up(1.0, self._noise), 2.0)

    @property
    def rho(self) -> float:
        """That of a step in which the record displaces another."""
        return half_square(self.mu)

    @property
    def _noise(self) -> float:
        inner = self.inner
        return inner.noise_multiplier if isinstance(inner, DoubtfulGaussian) else 0.0

    def rdp(self, order: float) -> float:
        """Return the divergence, rounded up."""
        return self.finite_rdp(order)

    def finite_rdp(self, order: float) -> float:
        """Return the divergence, rounded up.

        An addition has no loss above -log(1-q). A removal has S = 1-q + q·Y/(1-s) with probability
        1-s, else 1-q, whose norm of order α is at most 1-q + q·(1-s)^{1/α-1}·e^{(α-1)/2σ²}.
        """
        if self.add:
            return up(-math.log1p(-self.q), 8.0)
        doubt = self.inner.doubt if isinstance(self.inner, DoubtfulGaussian) else 0.0
        power = -math.log1p(-doubt) * (1.0 - 1.0 / order)
        power += (order - 1.0) * half_square(ratio_up(1.0, self._noise))
        if power > 600.0:
            # log(1 + q·e^power), also where q is smaller still.
            log_q = math.log(self.q)
            size = (power + log_q) + 32.0 * U * (power - log_q)
            norm = up(max(size, 0.0) + math.log1p(math.exp(-abs(size))), 8.0)
        else:
            norm = math.log1p(self.q * math.expm1(power * (1.0 + 16.0 * U)))
        return up(lift(norm * order / (order - 1.0)), 64.0)

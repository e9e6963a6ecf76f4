"""Distribution functions of a loss, from either end: what a pair knows beside masses of cells."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from accountant._typing import FloatArray


class Tails(NamedTuple):
    """Probabilities of the events {L > t} and {L <= t} for edges t of the loss L, increasing.

    Differences of such functions lose their digits in narrow cells; the profile at the edges does
    not. The pair may be a Poisson-sampled one, (1-q)Q + qP against Q or P against (1-q)P + qQ; the
    probabilities are those under P and Q, the events those of the sampled loss.
    """

    above_p: FloatArray
    below_p: FloatArray
    above_q: FloatArray
    below_q: FloatArray
    relative_error: float  # of each; the events may be those of edges within the pair's loss_error
    q: float = 1.0
    add: bool = False

    def coefficients(self, t: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return a and b with P'(E) - e^t·Q'(E) = a·P(E) - b·Q(E) for all E, at most 4 U off.

        The error is relative to q and e^t - 1. Below 0, where no event lies, they are 0.
        """
        if self.q == 1.0:
            return np.ones_like(t), np.exp(t)
        gain = np.expm1(t)
        if self.add:
            return np.maximum(self.q * (1.0 + gain) - gain, 0.0), self.q * (1.0 + gain)
        return np.full_like(t, self.q), np.maximum(gain + self.q, 0.0)

    def of_first(self, p: FloatArray, q: FloatArray) -> FloatArray:
        """Return the probabilities of events under the first law of the pair."""
        return p if self.add else (1.0 - self.q) * q + self.q * p

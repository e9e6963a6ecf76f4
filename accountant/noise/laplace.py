"""The discrete Laplace distribution, exactly, from uniform integers."""

from __future__ import annotations

from collections.abc import Callable


def discrete_laplace(scale: int, below: Callable[[int], int]) -> int:
    """Return an integer j with probability proportional to ``exp(-|j| / scale)``.

    Parameters
    ----------
    scale : int
        At least 1.
    below : callable
        ``below(n)`` returns a uniform integer in [0, n).

    Notes
    -----
    *Guarantee.* Exact: Canonne, Kamath and Steinke (2020), Algorithms 1 and 2.
    """

    def happens(numerator: int, denominator: int) -> bool:
        """Bernoulli(exp(-x)) for x = numerator / denominator in [0, 1]."""
        k = 1
        while below(k) == 0 and below(denominator) < numerator:
            k += 1
        return k % 2 == 1

    while True:
        size = below(scale)
        if not happens(size, scale):
            continue
        while happens(1, 1):
            size += scale
        negative = below(2) == 1
        if negative and size == 0:
            continue  # zero is counted once
        return -size if negative else size

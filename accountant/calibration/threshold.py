"""The least threshold of a sparse histogram for a target."""

from __future__ import annotations

from accountant import checks
from accountant.environment import to_nearest
from accountant.errors import DomainError
from accountant.mechanisms.base import Mechanism
from accountant.mechanisms.discrete import DiscreteGaussian, DiscreteLaplace
from accountant.mechanisms.sparse_histogram import LARGEST_THRESHOLD, SparseHistogram
from accountant.search import DOUBLES, bisect

# The least positive threshold that is tried. Only the answer for noise that is far below depends
# on it.
LEAST_THRESHOLD = 2.0**-40


@to_nearest
def smallest_threshold(
    noise: Mechanism,
    *,
    epsilon: float,
    delta: float,
    max_partitions: int = 1,
    minimum: int | None = None,
    beside: Mechanism | None = None,
) -> float:
    """Return the least threshold with which a sparse histogram is (ε, δ)-differentially private.

    Parameters
    ----------
    noise, max_partitions, minimum, beside
        As in :class:`SparseHistogram`.
    epsilon, delta : float
        The target: ε >= 0 and finite, δ in (0, 1).

    Returns
    -------
    float
        An integer for integer noise; else the adjacent double below is not certified.

    Raises
    ------
    DomainError
        The noise of ``max_partitions`` counts alone exceeds the target.

    Notes
    -----
    *Guarantee.* The certified δ at the threshold is at most ``delta`` (Theorem N3: δ falls in the
    threshold). With the noise fixed this is a bisection; there is none in the noise at a fixed
    threshold, at which more noise may cost more.
    """
    target = checks.number(checks.TARGET_DELTA, delta)
    at = checks.number(checks.FINITE_EPSILON, epsilon)

    def meets(threshold: float) -> bool:
        return (
            SparseHistogram(
                noise,
                threshold=threshold,
                max_partitions=max_partitions,
                minimum=minimum,
                beside=beside,
            ).delta(at)
            <= target
        )

    if not meets(LARGEST_THRESHOLD):
        raise DomainError(
            f"no threshold is enough: {noise!r} on {max_partitions} keys alone exceeds"
            f" (epsilon, delta) = ({epsilon!r}, {delta!r})"
        )
    high = 1.0
    while not meets(high):
        high *= 2.0
    if isinstance(noise, (DiscreteGaussian, DiscreteLaplace)):
        return float(bisect(lambda k: meets(float(k)), int(high), 0))
    low = high / 2.0 if high > 1.0 else LEAST_THRESHOLD
    return DOUBLES.value(
        bisect(lambda rank: meets(DOUBLES.value(rank)), DOUBLES.rank(high), DOUBLES.rank(low))
    )

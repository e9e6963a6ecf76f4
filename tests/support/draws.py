"""Random numbers of any magnitude."""

import math


def between(rng, low, high):
    """Return a number whose logarithm is uniform."""
    return math.exp(rng.uniform(math.log(low), math.log(high)))

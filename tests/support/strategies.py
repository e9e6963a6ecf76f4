"""Random parameters over all magnitudes, with the corners drawn often.

Extend these with every feature: a law holds for what the strategies draw.
"""

from hypothesis import strategies as st


def log_uniform(low, high, *corners):
    """Draw a double whose logarithm is uniform, or a corner."""
    import math

    drawn = st.floats(math.log10(low), math.log10(high)).map(lambda x: min(max(10.0**x, low), high))
    return st.one_of(st.sampled_from(corners), drawn) if corners else drawn


sampling_probabilities = log_uniform(1e-9, 1.0, 1e-9, 1e-3, 0.5, 1.0 - 2**-53, 1.0)
noise_multipliers = log_uniform(0.2, 100.0, 0.2, 0.5, 1.0, 100.0)
counts = st.one_of(st.sampled_from([1, 2, 10, 10**6, 10**12]), log_uniform(1.0, 1e12).map(round))
deltas = log_uniform(1e-30, 0.9, 1e-30, 1e-12, 1e-5, 0.5, 0.9)
epsilons = log_uniform(1e-4, 1e3, 0.0, 1e-4, 1.0, 1000.0)
target_epsilons = log_uniform(1e-4, 1e3, 1e-4, 1.0, 1000.0)
orders = log_uniform(1.01, 1e4, 1.5, 2.0, 32.0)

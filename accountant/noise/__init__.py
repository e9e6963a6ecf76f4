"""The randomness of releases: a secure generator, and noise with an exact distribution.

``generator`` draws words, subsets and Gaussian noise, and rounds a vector to a grid.
``exact_samplers`` has coins, rounded Laplace noise and the draw of the exponential mechanism,
``integer_law`` noise on the integers. ``tail`` computes the normal tail to 100 digits, where
doubles do not decide. Samplers of *records* are in :mod:`accountant.sampling`.
"""

from accountant.noise.generator import Grid, SecureGenerator

__all__ = ["Grid", "SecureGenerator"]

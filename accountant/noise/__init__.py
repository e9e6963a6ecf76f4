"""The randomness of releases: a secure generator, and noise with an exact distribution.

``generator`` draws words, subsets and Gaussian noise, and ``grid`` rounds a vector and adds integer
noise. ``exact_samplers`` has coins and rounded Laplace, discrete Laplace and Skellam noise, and
``weighted`` the draw of the exponential mechanism. ``tail`` computes the normal tail to 100 digits,
where doubles do not decide. Samplers of *records* are in :mod:`accountant.sampling`.
"""

from accountant.noise.generator import SecureGenerator
from accountant.noise.grid import Grid

__all__ = ["Grid", "SecureGenerator"]

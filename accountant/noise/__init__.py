"""The randomness of releases: a secure generator, and noise that is exact in law.

``generator`` draws words, subsets and Gaussian noise, ``grid`` rounds a vector and adds integer
noise. ``exact`` has coins and rounded Laplace noise, ``laplace`` discrete Laplace noise and
``weighted`` the exponential mechanism's draw; ``tail`` is the normal tail where a double's digits
do not decide. Samplers of *records* are in :mod:`accountant.sampling`.
"""

from accountant.noise.generator import SecureGenerator
from accountant.noise.grid import Grid

__all__ = ["Grid", "SecureGenerator"]

"""The randomness of releases: a secure generator, and noise with an exact distribution.

``generator`` draws words, subsets and Gaussian noise, by the normal tail to 100 digits where
doubles do not decide. ``exact_samplers`` has coins, rounded Laplace noise and the draw of the
exponential mechanism, ``integer_law`` noise on the integers and on grids. Samplers of *records* are
in :mod:`accountant.sampling`.
"""

from accountant.noise.generator import SecureGenerator
from accountant.noise.integer_law import Grid

__all__ = ["Grid", "SecureGenerator"]

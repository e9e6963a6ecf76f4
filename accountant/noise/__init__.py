"""The randomness of releases: a secure generator, and noise with an exact distribution.

``generator`` draws words, subsets and the noise of trainers: Gaussian, by the normal tail to 100
digits where doubles do not decide, and discrete Gaussian, both in the native core (``training/``).
``exact_samplers`` has coins, rounded Laplace noise and the draw of the exponential mechanism,
``integer_law`` noise on grids, and that on the integers of any one law. Samplers of *records* are
in :mod:`accountant.sampling`.
"""

from accountant.noise.generator import SecureGenerator
from accountant.noise.integer_law import Grid

__all__ = ["Grid", "SecureGenerator"]

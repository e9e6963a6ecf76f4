"""Strategies of matrix mechanisms: noise that is correlated between the steps of a run.

A strategy is a lower-triangular matrix C with ones on its diagonal. The run releases C x + noise, x
the contributions of the steps, or, which tells the same, x + C⁻¹ noise. No strategy here builds a
matrix: a step's noise needs as many vectors of memory as the strategy has bands or buffers.
"""

# strategy: the base class, the bounds that every strategy has, and noise step by step. toeplitz:
# what Toeplitz strategies share, power series with error bounds. banded and tree: the
# strategies.
from accountant.matrix.banded import (
    BandedInverse,
    BandedToeplitz,
    BufferedToeplitz,
    banded_inverse_square_root,
    banded_square_root,
    input_perturbation,
    lambda_cgd,
    output_perturbation,
)
from accountant.matrix.strategy import NoiseStream, Strategy
from accountant.matrix.tree import BinaryTree

__all__ = [
    "BandedInverse",
    "BandedToeplitz",
    "BinaryTree",
    "BufferedToeplitz",
    "NoiseStream",
    "Strategy",
    "banded_inverse_square_root",
    "banded_square_root",
    "input_perturbation",
    "lambda_cgd",
    "output_perturbation",
]

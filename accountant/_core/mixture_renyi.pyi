"""The Rényi curve of Gaussian noise with a random shift: the C entry point."""

import numpy as np
from numpy.typing import NDArray

def renyi_bounds(
    sigma: float,
    shifts: NDArray[np.float64],
    weights: NDArray[np.float64],
    order: float,
    add: bool,
    first_error: float,
    weight_error: float,
) -> tuple[float, float]: ...

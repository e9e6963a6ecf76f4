"""The loops of the privacy loss distribution on a grid: the C entry points, one to one."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

_Floats: TypeAlias = NDArray[np.float64]
_Complexes: TypeAlias = NDArray[np.complex128]

def grid_laws(
    spacing: float,
    error: float,
    below: float,
    above: float,
    t: _Floats,
    atom: _Floats,
    p_low: _Floats,
    q_low: _Floats,
    p_high: _Floats,
    q_high: _Floats,
    upper: _Floats,
    lower: _Floats,
) -> bool: ...
def hull(masses: _Floats, spacing: float, upwards: bool) -> bool: ...
def multiply_power(z: _Complexes, power: int, out: _Complexes) -> None: ...
def profile_sums(
    b: _Floats, first: float, spacing: float, tilt: float
) -> tuple[float, float, float, float, float]: ...

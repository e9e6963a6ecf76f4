"""Loops of the analyses in Python: grids, sums of variables, elementary functions."""

from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

_Floats: TypeAlias = NDArray[np.float64]
_Complexes: TypeAlias = NDArray[np.complex128]

def spread(
    s: _Floats, p: _Floats, t: _Floats, r: _Floats, grid: _Floats
) -> tuple[_Floats, float, int]: ...
def merge(
    s: _Floats, p: _Floats, t: _Floats, r: _Floats, grid: _Floats
) -> tuple[_Floats, _Floats, int]: ...
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
) -> tuple[float, float, float, float]: ...
def play(
    values: _Floats,
    count: int,
    infinite: _Floats,
    near_place: NDArray[np.intp],
    near_mass: _Floats,
    far_mass: _Floats,
    share: _Floats,
    decay: _Floats,
    gain: _Floats,
) -> None: ...

LIBM: dict[str, int]
VMATH: dict[str, int]

def libm(name: str, x: _Floats, y: _Floats | None = ...) -> _Floats: ...
def series(a: _Floats, b: _Floats) -> _Floats: ...
def vmath(name: str, x: _Floats) -> _Floats: ...

@final
class Environment: ...

def enter() -> Environment | None: ...
def leave(before: Environment) -> None: ...

"""The elementary functions that the certificates trust: the C entry points, one to one."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

_Floats: TypeAlias = NDArray[np.float64]

LIBM: dict[str, int]
VMATH: dict[str, int]

def libm(name: str, x: _Floats, y: _Floats | None = ...) -> _Floats: ...
def series(a: _Floats, b: _Floats) -> _Floats: ...
def vmath(name: str, x: _Floats) -> _Floats: ...

"""Brackets for Poisson-subsampled Gaussian steps, repeated or different: the C entry points."""

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

_Floats: TypeAlias = NDArray[np.float64]
_Statuses: TypeAlias = NDArray[np.intc]
_Mixture: TypeAlias = tuple[float, _Floats, _Floats, float, float, float]

REMOVE: Final[int]
ADD: Final[int]
EITHER: Final[int]

def delta_bounds(
    q: float, sigma: float, steps: float, epsilon: float, direction: int
) -> tuple[float, float]: ...
def epsilon_bounds(
    q: float, sigma: float, steps: float, delta: float, direction: int
) -> tuple[float, float]: ...
def renyi_bounds(q: float, sigma: float, order: float, direction: int) -> tuple[float, float]: ...
def epsilon_renyi_upper(
    q: float, sigma: float, steps: float, delta: float
) -> tuple[float, float]: ...
def check_statuses(statuses: _Statuses) -> None: ...
def fill_shared_epsilon_bounds(
    q: _Floats,
    sigma: _Floats,
    steps: _Floats,
    delta: _Floats,
    lower: _Floats,
    upper: _Floats,
    statuses: _Statuses,
) -> None: ...
def fill_delta_bounds(
    q: _Floats,
    sigma: _Floats,
    steps: _Floats,
    epsilon: _Floats,
    direction: int,
    lower: _Floats,
    upper: _Floats,
    statuses: _Statuses,
) -> None: ...
def fill_renyi_bounds(
    q: _Floats,
    sigma: _Floats,
    order: _Floats,
    direction: int,
    lower: _Floats,
    upper: _Floats,
    statuses: _Statuses,
) -> None: ...
def fill_epsilon_renyi_upper(
    q: _Floats,
    sigma: _Floats,
    steps: _Floats,
    delta: _Floats,
    upper: _Floats,
    order: _Floats,
    statuses: _Statuses,
) -> None: ...
def heterogeneous_delta_bounds(
    q: _Floats,
    sigma: _Floats,
    steps: _Floats,
    epsilon: float,
    direction: int,
    mixtures: tuple[_Mixture, ...] = ...,
) -> tuple[float, float]: ...
def heterogeneous_epsilon_bounds(
    q: _Floats,
    sigma: _Floats,
    steps: _Floats,
    delta: float,
    direction: int,
    mixtures: tuple[_Mixture, ...] = ...,
) -> tuple[float, float]: ...
def mixture_delta_bounds(
    sigma: float,
    shifts: _Floats,
    weights: _Floats,
    steps: float,
    epsilon: float,
    direction: int,
    silent: float = 0.0,
    weight_error: float = 0.0,
) -> tuple[float, float]: ...
def mixture_epsilon_bounds(
    sigma: float,
    shifts: _Floats,
    weights: _Floats,
    steps: float,
    delta: float,
    direction: int,
    silent: float = 0.0,
    weight_error: float = 0.0,
) -> tuple[float, float]: ...
def fill_heterogeneous_odometer(
    q: _Floats,
    sigma: _Floats,
    steps: _Floats,
    delta: float,
    direction: int,
    lower: _Floats,
    upper: _Floats,
    wide: float = 0.0,
    first: int = 0,
    last: int | None = None,
) -> None: ...
def exchange_delta_bounds(
    distance: float, q: float, steps: float, epsilon: float
) -> tuple[float, float]: ...
def exchange_epsilon_bounds(
    distance: float, q: float, steps: float, delta: float
) -> tuple[float, float]: ...
def exchange_renyi_bounds(distance: float, q: float, order: float) -> tuple[float, float]: ...
def boundary(
    cost: Callable[[float], float],
    target: float,
    counts: bool,
    guess: float,
    cheap: int,
    dear: int,
    power: float = 0.0,
) -> int | None: ...
def crossing(
    cost: Callable[[float], float],
    target: float,
    counts: bool,
    guess: float,
    low: int,
    high: int,
    falls: bool,
    precision: float,
) -> int | None: ...
def calibrate_sigma(
    epsilon: float,
    delta: float,
    q: float,
    steps: float,
    records: float = 1.0,
    upper: Callable[[float, float, float, float, int], float] | None = None,
) -> float | None: ...
def calibrate_steps(
    epsilon: float,
    delta: float,
    q: float,
    sigma: float,
    records: float = 1.0,
    upper: Callable[[float, float, float, float, int], float] | None = None,
) -> float | None: ...
def calibrate_q(
    epsilon: float,
    delta: float,
    sigma: float,
    steps: float,
    records: float = 1.0,
    upper: Callable[[float, float, float, float, int], float] | None = None,
) -> float: ...
def fill_line_nodes(
    parts: _Floats,
    losses: _Floats,
    weights: _Floats,
    c: float,
    step: float,
    last: int,
    nodes: _Floats,
    table: _Floats | None = None,
) -> tuple[int, int]: ...
def sampled_line(
    q: _Floats,
    sigma: _Floats,
    steps: _Floats,
    direction: int,
    direct: bool,
    log_delta: float,
    b: float,
    aliases: tuple[float, float],
    dy: float,
    log_error: float,
    table: _Floats,
) -> tuple[int, bool, tuple[float, float, float, float, float, float, float]]: ...
def sampled_line_logs(
    q: _Floats,
    sigma: _Floats,
    steps: _Floats,
    direction: int,
    log_delta: float,
    b: _Floats,
    value: _Floats,
) -> None: ...

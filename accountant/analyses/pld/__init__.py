"""The privacy loss distribution on a grid: certified brackets for any composition of pairs.

``composed`` refines grids until a bracket is as narrow as asked. It stands on ``loss_grid`` (two
laws that enclose one part), ``lattice`` and ``saddle_point`` (which grid, and where),
``composed_law`` and ``fft`` (the composition), and ``memory`` (the bytes that laws may keep).
"""

from accountant.analyses.pld.composed import (
    Composed,
    TooWide,
    compose,
    delta_bounds,
    epsilon_bounds,
)

__all__ = ["Composed", "TooWide", "compose", "delta_bounds", "epsilon_bounds"]

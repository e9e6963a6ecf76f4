"""The privacy loss distribution on a grid: certified brackets for any composition of pairs.

``composed`` refines grids until a bracket meets its tolerance. It uses ``loss_grid`` (two
distributions that enclose one part), ``lattice`` and ``saddle_point`` (the choice of the grid),
``tail_grid`` (the same from distribution functions), ``composed_law``, ``fft`` and ``spectrum``
(the composition), and ``memory`` (the limit on cached bytes).
"""

from accountant.analyses.pld.composed import Composed, TooWide
from accountant.analyses.pld.questions import compose, delta_bounds, epsilon_bounds

__all__ = ["Composed", "TooWide", "compose", "delta_bounds", "epsilon_bounds"]

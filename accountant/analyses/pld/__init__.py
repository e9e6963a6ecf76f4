"""The privacy loss distribution on a grid: certified brackets for any composition of pairs.

``upper`` plans a grid and gives an upper end; ``composed`` gives both ends of a bracket, on finer
grids until they meet. Both use ``loss_grid`` (the spacing of the knots, and two distributions that
enclose one part), ``saddle_point`` (the range), and ``composed_law`` and ``fft`` (the composition).
"""

from accountant.analyses.pld.composed import Composed, delta_bounds, epsilon_bounds
from accountant.analyses.pld.upper import TooWide

__all__ = ["Composed", "TooWide", "delta_bounds", "epsilon_bounds"]

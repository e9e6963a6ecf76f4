"""The optimal composition of (ε, δ) guarantees about which nothing else is known.

``composition`` has the functions. They stand on ``loss_table`` (a finite law of losses),
``binomial`` (equal guarantees), ``parts_on_grid`` (different ones) and ``certified_inverse`` (from
δ to ε).
"""

from accountant.analyses.optimal.composition import (
    optimal_delta,
    optimal_delta_bounds,
    optimal_epsilon,
    optimal_epsilon_bounds,
)

__all__ = [
    "optimal_delta",
    "optimal_delta_bounds",
    "optimal_epsilon",
    "optimal_epsilon_bounds",
]

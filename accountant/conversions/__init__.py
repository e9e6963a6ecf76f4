"""Conversions between notions of privacy: pure, Rényi, zCDP, tCDP, GDP, f-DP and (ε, δ).

Every function returns a certified bound in the safe direction, rounded outward: the returned
guarantee follows from the given guarantee. Arguments are scalars; divergences and ε are in nats. A
guarantee keeps its neighbouring relation, and holds in the direction, or directions, in which what
it is derived from holds. Theorem numbers refer to docs/theorems_conversions.md.
"""

from accountant.conversions.guarantees import (
    approximate_dp_tradeoff,
    gdp_to_delta,
    gdp_to_epsilon,
    gdp_to_rdp,
    gdp_to_zcdp,
    largest_gdp,
    pure_to_gdp,
    pure_to_rdp,
    pure_to_zcdp,
    tradeoff_to_delta,
)
from accountant.conversions.renyi import (
    rdp_to_delta,
    rdp_to_epsilon,
    tcdp_to_delta,
    tcdp_to_epsilon,
    zcdp_to_delta,
    zcdp_to_epsilon,
    zcdp_to_rdp,
)

__all__ = [
    "approximate_dp_tradeoff",
    "gdp_to_delta",
    "gdp_to_epsilon",
    "gdp_to_rdp",
    "gdp_to_zcdp",
    "largest_gdp",
    "pure_to_gdp",
    "pure_to_rdp",
    "pure_to_zcdp",
    "rdp_to_delta",
    "rdp_to_epsilon",
    "tcdp_to_delta",
    "tcdp_to_epsilon",
    "tradeoff_to_delta",
    "zcdp_to_delta",
    "zcdp_to_epsilon",
    "zcdp_to_rdp",
]

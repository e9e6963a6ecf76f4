"""Ordered dominating pairs and their typed capabilities, the input of every analysis.

``base`` defines the pair and its capabilities. ``atoms`` has pairs with finitely many losses, and
``product`` several pairs as one, and sums over counted pairs. ``profile_pair`` makes a pair from
bounds on a profile. ``excess`` has the arithmetic of losses and of normal masses, and
``mixture_renyi`` the Rényi curve of shifted Gaussian noise.
"""

from accountant.pairs.base import DominatingPair, GaussianPart, Masses

__all__ = ["DominatingPair", "GaussianPart", "Masses"]

"""Ordered dominating pairs and their typed capabilities, the input of every analysis.

``base`` defines the pair and its capabilities. ``atoms`` has pairs with finitely many losses,
``response`` the pair of randomised response, and ``product`` several pairs as one.
``profile_pair``, ``two_sided`` and ``constant_profile`` make a pair from bounds on a profile.
``excess``, ``sampled_loss``, ``sums`` and ``lower_hull`` have the arithmetic that they share.
"""

from accountant.pairs.base import DominatingPair, GaussianPart, Masses

__all__ = ["DominatingPair", "GaussianPart", "Masses"]

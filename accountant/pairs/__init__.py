"""What an analysis consumes: ordered dominating pairs and their typed capabilities.

``base`` has the pair and what it can offer, ``atoms`` pairs of finitely many losses, ``response``
that of randomised response, ``product`` several pairs as one. ``profile_pair``, ``two_sided`` and
``constant_profile`` make a pair of bounds on a profile. ``excess``, ``sampled_loss``, ``sums`` and
``lower_hull`` are the arithmetic they share.
"""

from accountant.pairs.base import DominatingPair, GaussianPart, Masses

__all__ = ["DominatingPair", "GaussianPart", "Masses"]

"""Releases made of the answers to others: what needs an answer before it can be described.

Several releases on one sample (``joint``), the best of a random number of runs (``repetition``),
and a release on a sample whose record is exchanged for another (``sampled_replacement``).
"""

from accountant.derived.joint import JointRelease
from accountant.derived.repetition import BestOfPoissonRuns, BestOfRuns
from accountant.derived.sampled_replacement import SampledReplacement

__all__ = ["BestOfPoissonRuns", "BestOfRuns", "JointRelease", "SampledReplacement"]

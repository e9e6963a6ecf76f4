"""The algebra of releases: ``10_000 * step + other`` and ``parallel``; frozen values, no numerics.

``problems`` turns a mechanism into what the analyses solve: counted pairs, one list for each
direction of each alternative.
"""

from accountant.composition.composition import Composition
from accountant.composition.disjoint import AdaptiveParallel, Parallel, adaptively, parallel

__all__ = ["AdaptiveParallel", "Composition", "Parallel", "adaptively", "parallel"]

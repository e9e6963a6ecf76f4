"""The algebra of releases, ``10_000 * step + other`` and ``parallel``, as frozen values.

``problems`` turns a mechanism into the input of the analyses: counted pairs, one list for each
direction of each alternative.
"""

from accountant.composition.composition import (
    AdaptiveParallel,
    Composition,
    Parallel,
    composed,
    parallel,
)

__all__ = ["AdaptiveParallel", "Composition", "Parallel", "composed", "parallel"]

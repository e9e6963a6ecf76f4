"""Runs on neighbouring data sets with the same noise.

``tape`` records what reaches the noise and hands the second run the first one's releases; ``trace``
watches one run; ``comparison`` compares two; ``pairs`` makes neighbours; ``walk`` finds what the
package offers; ``cases_*`` say how to run it and what it charges; ``registry`` holds the cases.
"""

import importlib
from pathlib import Path


def cases():
    """Return all cases."""
    for path in sorted(Path(__file__).parent.glob("cases_*.py")):
        importlib.import_module(f"{__name__}.{path.stem}")
    from support.twins.registry import CASES

    return CASES

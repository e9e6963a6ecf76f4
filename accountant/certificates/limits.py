"""What the format of certificates has room for, and the checker time for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from accountant.errors import UnsupportedError

# Of the numbers of a part, and of elements of its lists, by their keys in the document.
RANGES = {
    "count": (1, 10**15),
    "sigma": (1e-9, 1e9),
    "shifts": (1e-9, 1e9),
    "weights": (0.0, 1.0),
    "lost": (0.0, 1.0),
    "laplace": (1e-9, 700.0),
    "randomised_response": (0.0, 700.0),
    "categories": (2, 10**9),
    "infinite": (0.0, 1.0),
    "discrete_laplace": (1e-3, 1e4),
    "discrete_gaussian": (1e-3, 1e4),
    "sensitivity": (1, 10**4),
    "p": (0.0, 1.0),
    "q": (0.0, 1.0),
    "sampled": (1e-12, 1.0),
}
LARGEST_EPSILON = 1e18
# Below this the checker would take too many digits.
LEAST_DELTA = 1e-200
LONGEST_LIST = 2000


def require_room(parts: Iterable[dict[str, Any]], epsilon: float, delta: float) -> None:
    """Refuse a claim that the checker would not read."""
    listed = list(parts)
    if not listed:
        raise UnsupportedError("the release loses nothing: there is nothing to check")
    for part in listed:
        for key, value in part.items():
            low, high = RANGES[key]
            each = value if isinstance(value, list) else [value]
            if len(each) > LONGEST_LIST:
                raise UnsupportedError(
                    f"{key} must have at most {LONGEST_LIST} elements for a certificate;"
                    f" got {len(each)}"
                )
            if not low <= min(each) <= max(each) <= high:
                raise UnsupportedError(
                    f"{key} must be in [{low:g}, {high:g}] for a certificate; got {value!r}"
                )
    if not epsilon <= LARGEST_EPSILON:
        raise UnsupportedError(
            f"ε must be at most {LARGEST_EPSILON:g} for a certificate; got {epsilon!r}"
        )
    if not delta >= LEAST_DELTA:
        raise UnsupportedError(
            f"delta must be at least {LEAST_DELTA:g} for a certificate; got {delta!r}"
        )

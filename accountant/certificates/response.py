"""Randomised response in a certificate: its losses lie on a lattice, and are added exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Response", "lattice"]

# Answers that the checker adds up in seconds.
MOST_ANSWERS = 10_000


@dataclass(frozen=True)
class Response:
    """``count`` answers of randomised response of strength ``epsilon`` among ``categories``."""

    epsilon: float
    categories: int
    count: int

    def listed(self) -> dict[str, Any]:
        """Return the part as the document has it."""
        return {
            "randomised_response": self.epsilon,
            "categories": self.categories,
            "count": self.count,
        }


def lattice(steps: list[Any]) -> bool:
    """Tell whether Theorem K5 covers all steps."""
    responses = [step for step in steps if isinstance(step, Response)]
    return (
        len(responses) == len(steps)
        and len({step.epsilon for step in responses}) == 1
        and sum(step.count for step in responses) <= MOST_ANSWERS
    )

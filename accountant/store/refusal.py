"""What a store raises when a block cannot pay, and when a request meets what happened before."""

from __future__ import annotations

from typing import Any

from accountant._basics.display import json_value
from accountant.errors import BudgetExceeded
from accountant.ledger import Remaining


class BlockExceeded(BudgetExceeded):
    """A block's budget does not allow a charge; no block was charged.

    Attributes
    ----------
    block : str
        The address of the first block, in their order, that cannot pay.
    remaining : Remaining
        What this block has left.
    asked : tuple of (str, int)
        The mechanisms, as they print, and their counts.
    """

    def __init__(
        self, message: str, block: str, remaining: Remaining, asked: tuple[tuple[str, int], ...]
    ) -> None:
        super().__init__(message)
        self.block = block
        self.remaining = remaining
        self.asked = asked

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.block, self.remaining, self.asked)

    def as_dict(self) -> dict[str, Any]:
        """Return the refusal as JSON has it."""
        value: dict[str, Any] = json_value(
            {
                "refused": str(self),
                "block": self.block,
                "remaining": self.remaining._asdict(),
                "asked": [{"mechanism": name, "count": n} for name, n in self.asked],
            }
        )
        return value

"""What a planted bug is."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest


@dataclass(frozen=True)
class Bug:
    """One mistake: ``plant`` patches the shipped code, and ``check`` then returns a finding.

    A check returns None when it finds nothing, which it must for the code as shipped. ``audit``
    tells empirical audits, which see only what is released, from tests of the code's innards.
    """

    name: str
    story: str
    plant: Callable[[pytest.MonkeyPatch], None]
    check: Callable[[], str | None]
    audit: bool = False

    @property
    def row(self) -> str:
        """Its row in what docs/make_planted_bugs.py --all prints."""
        kind = "audit" if self.audit else "test"
        return f"| {self.name} | {self.story} | {kind}: {self.check.__doc__.strip()} |"


def wrap(owner, name, change):
    """Replace a method by ``change(original)``; properties and class methods keep their kind."""

    def plant(patch):
        patch.setattr(owner, name, change(getattr(owner, name)))

    return plant

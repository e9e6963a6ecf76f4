"""What a planted bug is."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name

TESTS = Path(__file__).parents[2]


@dataclass(frozen=True)
class Bug:
    """One mistake: ``change`` answers in the place of the shipped function, and ``check`` notices.

    A check returns a finding, or None, which it must for the code as shipped; or it is the name of
    the test that must turn red, where the package that it ``needs`` is installed. An audit is
    empirical and sees only what is released; other checks look at the code's innards.
    """

    name: str
    place: str
    change: Callable
    check: Callable[[], str | None] | str
    needs: str

    @property
    def story(self):
        """What is wrong."""
        return self.change.__doc__

    @property
    def audit(self):
        """Whether an audit notices it."""
        return not isinstance(self.check, str) and self.check.__name__.endswith("_audit")

    @property
    def row(self):
        """Its row in what docs/make_planted_bugs.py --all prints."""
        noticed = f"`{self.check}`"
        if not isinstance(self.check, str):
            noticed = f"{'audit' if self.audit else 'test'}: {self.check.__doc__.strip()}"
        return f"| {self.name} | {self.story} | {noticed} |"

    def found(self):
        """Return whose the patched function is, its name, and the function or property itself."""
        module, path = self.place.split(":")
        *owners, name = path.split(".")
        owner = resolve_name(f"accountant.{module}:{'.'.join(owners)}")
        return owner, name, getattr(owner, name)

    def plant(self, patch):
        """Patch it; a property stays one."""
        owner, name, original = self.found()
        is_property = hasattr(original, "fget") or hasattr(original, "func")
        old = getattr(original, "fget", None) or getattr(original, "func", original)

        @functools.wraps(old, updated=())
        def changed(*given, **named):
            return self.change(old, *given, **named)

        patch.setattr(owner, name, property(changed) if is_property else changed)


@functools.cache
def _files():
    """Return the files of tests, with what they hold."""
    return [(path.relative_to(TESTS), path.read_text()) for path in TESTS.rglob("test_*.py")]


def _file_of(test):
    (found,) = [path for path, text in _files() if f"def {test}(" in text]
    return found.as_posix()


def collected(folder=""):
    """Return a list of bugs, and the decorator of functions that adds them to it.

    A change takes the original and the arguments of a call. Its docstring is the story. A test may
    be given without its file where no other test has its name.
    """
    bugs = []

    def bug(place, check, needs=None, name=None):
        module = place.partition(":")[0]
        if isinstance(check, str) and "::" not in check:
            check = f"{_file_of(check)}::{check}"
        needs = needs or next(
            (each for each in ("opacus", "torch") if each in module), "accountant"
        )

        def add(change):
            named = name or change.__name__.replace("_", "-")
            bugs.append(Bug(named, f"{folder}{place}", change, check, needs))
            return change

        return add

    return bugs, bug

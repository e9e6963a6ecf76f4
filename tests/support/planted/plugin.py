"""A pytest plugin that plants one of the named bugs in its process: see test_planted_bugs.py."""

import importlib
import os
import sys

import pytest


def pytest_configure(config):
    """Patch before any test module is imported, and what imported the patched name as well."""
    from support.planted import NAMED

    (bug,) = (bug for bug in NAMED if bug.name == os.environ["PLANTED"])
    patch = pytest.MonkeyPatch()
    bug.plant(patch)
    for owner, name, old in list(patch._setattr):
        new = getattr(owner, name, None)
        for module in [m for n, m in sys.modules.items() if n.startswith("accountant")]:
            if vars(module).get(name) is old and module is not owner:
                patch.setattr(module, name, new)
    importlib.invalidate_caches()
    config.add_cleanup(patch.undo)

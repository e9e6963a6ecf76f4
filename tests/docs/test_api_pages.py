"""Every public name of the learn rooms stands in the reference, and every name there exists."""

import importlib
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
ROOMS = (
    "accountant.learn",
    "accountant.learn.blocks",
    "accountant.learn.convex",
    "accountant.learn.local",
    "accountant.learn.pate",
    "accountant.learn.selection",
)
PAGES = ("api_learn.md", "api_linear_models.md")


def documented(page):
    """Return the full names that a page's directives name."""
    module, names = "", set()
    for kind, target in re.findall(r"^\.\. (\w+):: (\S+)", (DOCS / page).read_text(), re.M):
        if kind == "currentmodule":
            module = target
        elif kind in ("autofunction", "autoclass", "autoexception"):
            names.add(target if target.startswith("accountant.") else f"{module}.{target}")
    return names


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_is_in_the_reference(room):
    found = set().union(*map(documented, PAGES))
    public = importlib.import_module(room).__all__
    assert not [name for name in public if f"{room}.{name}" not in found]


@pytest.mark.parametrize("page", PAGES)
def test_every_documented_name_exists_and_is_described(page):
    names = documented(page)
    assert len(names) > 20
    for name in names:
        if ".sklearn." in name:
            pytest.importorskip("sklearn")
        module, attribute = name.rsplit(".", 1)
        assert getattr(importlib.import_module(module), attribute).__doc__

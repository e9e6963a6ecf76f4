"""The built site in a real browser: readable for everybody, light and dark, wide and on a phone.

SITE names the folder of the built site; without it, ``make docs`` builds docs/_build/html.
"""

import os
from pathlib import Path

import pytest

from support.browser import axe, browser, installed, violations

SITE = Path(os.environ.get("SITE") or Path(__file__).parents[2] / "docs" / "_build" / "html")
MAIN = (
    "index",
    "install",
    "tutorial",
    "samplers",
    "report",
    "theorems_mechanisms",
    "api",
    "notebooks/first_epsilon",
)

pytestmark = [
    pytest.mark.skipif(installed() is None, reason="no Chromium is installed"),
    pytest.mark.skipif(not (SITE / "index.html").exists(), reason="the site is not built"),
]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.mark.skipif(axe() is None, reason="axe-core is not installed (npm install axe-core)")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", MAIN)
def test_axe_finds_no_violation(page, name, scheme, width):
    page.scheme(scheme)
    page.open((SITE / f"{name}.html").as_uri(), width=width)
    assert violations(page) == []
    page.scheme("light")


@pytest.mark.parametrize("name", MAIN)
def test_a_page_asks_nobody_and_does_not_stick_out(page, name):
    page.open((SITE / f"{name}.html").as_uri(), width=390)
    # The repository's link is an address to follow, and not one that is loaded.
    outside = [a for a in page.requests() if not a.startswith(("file:", "data:"))]
    assert outside == []
    assert page.ask("document.documentElement.scrollWidth") <= 390

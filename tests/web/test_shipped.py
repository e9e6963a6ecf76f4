"""The page that the package brings is the one that today's sources make."""

import re

import pytest

import accountant.cli.installation as command
from support.web import PAGE

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="the web page is not built (make -C web)")
REMEDY = "the sources of the page have changed: run make -C web ship, and commit"


def made_from(page):
    """Return the digest of the sources of a page, and its compiler."""
    found = re.search(
        r'name="made-from" content="(sha256:[0-9a-f]{64}), (emscripten [\d.]+)"', page
    )
    return found.groups()


def test_the_shipped_page_is_the_one_made_here():
    shipped, here = command.PAGE.read_text(), PAGE.read_text()
    assert made_from(shipped)[0] == made_from(here)[0], REMEDY
    if made_from(shipped)[1] == made_from(here)[1]:
        assert shipped == here, REMEDY

"""``accountant web``: the page is there, whole, and opened or named."""

import json
import re
import webbrowser
from pathlib import Path

import pytest
from click.testing import CliRunner

from accountant.cli import main

# The wheel may have 5 MB in all, and packs the page to a third.
LARGEST = 1_000_000


def run(*words):
    done = CliRunner().invoke(main, ["web", *words])
    assert done.exit_code == 0, done.output
    return done.output.strip()


def test_the_page_is_named_and_needs_nothing_else():
    page = Path(run("--path"))
    text = page.read_text()
    assert page.stat().st_size < LARGEST
    assert "default-src 'none'" in text
    assert not re.search(r'(src|href)="(https?:)?//', text)
    told = json.loads(run("--json"))
    assert told["page"] == str(page)
    assert re.fullmatch(r"sha256:[0-9a-f]{64}, emscripten [\d.]+", told["made_from"])
    assert text.count(told["made_from"]) == 2


@pytest.mark.parametrize("can", [True, False])
def test_the_page_is_opened_where_there_is_a_browser(monkeypatch, can):
    asked = []
    monkeypatch.setattr(webbrowser, "open", lambda address: asked.append(address) or can)
    told = run()
    page = Path(run("--path"))
    assert asked == [page.as_uri()]
    assert told == (f"opened {page}" if can else str(page))

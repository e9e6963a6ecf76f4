"""Titles are those of the pages, links end at the headings; a large ε never sounds small."""

import importlib.util
import json
import math
from pathlib import Path

import pytest

from accountant.report import facts
from accountant.report.facts import proofs, tone

ROOT = Path(__file__).parents[2]


def maker():
    spec = importlib.util.spec_from_file_location("maker", ROOT / "docs/make_theorem_titles.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_titles_are_those_of_the_pages():
    made = maker()
    written, pages = json.loads(made.TARGET.read_text()), made.titles()
    wrong = {number: title for number, title in written.items() if pages.get(number) != title}
    assert not wrong, "run python docs/make_theorem_titles.py"
    assert set(facts.GENERAL) <= set(written), "run python docs/make_theorem_titles.py"


def test_links_end_at_the_headings():
    (one, two) = proofs(("C20", "R1"), "https://example.org/docs/")
    assert (one.title, one.page) == ("Posterior with high probability", "theorems_conversions")
    assert one.address == (
        "https://example.org/docs/theorems_conversions.html#c20-posterior-with-high-probability"
    )
    assert two.address.endswith("theorems_report.html#r1-a-profile-from-points-of-it")
    assert [p.address for p in proofs(("C20", "Z99"), "")] == ["", ""]


def test_anchors_are_those_of_sphinx():
    make_id = pytest.importorskip("docutils.nodes").make_id

    numbers = tuple(maker().titles())
    for one in proofs(numbers, "https://x"):
        assert one.address.split("#")[1] == make_id(f"{one.number}. {one.title}")


@pytest.mark.parametrize(
    ("epsilon", "grade"),
    [
        (0.0, 0),
        (1e-9, 1),
        (1.0, 1),
        (1.0000001, 2),
        (10.0, 2),
        (10.5, 3),
        (20.0, 3),
        (46.0, 4),
        (math.inf, 4),
        (math.nan, 4),
    ],
)
def test_grades(epsilon, grade):
    assert tone(epsilon).grade == grade

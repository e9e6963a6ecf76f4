"""The tone grows with ε, and a large ε never sounds small."""

import math

import pytest

from accountant.report.facts import tone


@pytest.mark.parametrize(
    ("epsilon", "grade"),
    [(0.0, 0), (1e-9, 1), (1.0, 1), (1.0000001, 2), (10.0, 2), (10.5, 3), (20.0, 3), (46.0, 4)],
)
def test_grades(epsilon, grade):
    assert tone(epsilon).grade == grade


def test_nothing_known_is_the_worst():
    assert tone(math.inf).grade == tone(math.nan).grade == 4
    assert "Do not publish" in tone(46.0).sentence
    assert "Do not publish" not in tone(1.0).sentence

"""Spacings that all parts of a composition share."""

import math

import pytest

from accountant.analyses.pld.spacings import common_spacing, fitting_spacing


class TestSpacings:
    def test_common(self):
        assert common_spacing([2.0, 3.0]) == pytest.approx(1.0)
        assert common_spacing([1.0, math.sqrt(2.0)]) is None

    def test_fitting(self):
        spacing = fitting_spacing([1.0, math.sqrt(2.0)], 0.01, 1e-5, 1e-8)
        for s in (1.0, math.sqrt(2.0)):
            ratio = s / spacing
            assert ratio - math.floor(ratio * (1 + 1e-15)) <= 1e-8 * ratio

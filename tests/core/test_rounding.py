"""The smaller parts of rounding.h."""

import ctypes
import itertools
import math

from support.native import build

DRIVER = """
#include "rounding.h"
double larger(double x, double y) { return acct_max(x, y); }
double smaller(double x, double y) { return acct_min(x, y); }
double libm_larger(double x, double y) { return fmax(x, y); }
double libm_smaller(double x, double y) { return fmin(x, y); }
"""
CORNERS = [0.0, -0.0, 1.0, -1.0, 5e-324, -5e-324, 1.7e308, -1.7e308, math.inf, -math.inf, math.nan]


def test_the_larger_and_the_smaller_are_those_of_libm(tmp_path):
    source = tmp_path / "driver.c"
    source.write_text(DRIVER)
    library = build(tmp_path, [source])
    for name in ("larger", "smaller"):
        both = library[name], library[f"libm_{name}"]
        for function in both:
            function.argtypes = [ctypes.c_double] * 2
            function.restype = ctypes.c_double
        for x, y in itertools.product(CORNERS, repeat=2):
            found, expected = (function(x, y) for function in both)
            assert found == expected or (math.isnan(found) and math.isnan(expected)), (name, x, y)
            assert math.isnan(found) == (math.isnan(x) and math.isnan(y))

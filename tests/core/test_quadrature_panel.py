"""Ellipses of panels above the real noise: where one is accepted, e^{iyL} grows nowhere on it."""

import ctypes

import mpmath
import numpy as np
import pytest

from support.native import build, core_files

ASK = """
#include "quadrature_panel.h"

/* what acct_panel_excess says of a panel at the height `shift`; ellipse: its centre, semi-axes */
double excess(double q, double sigma, double shift, double x, double width, double rho,
              double order, double log_error, double *ellipse) {
    const acct_step step = acct_step_make(q, sigma);
    const acct_window window = {.lo = x, .hi = x + width, .shift = shift};
    acct_panel panel;
    ellipse[0] = x + 0.5 * width;
    ellipse[1] = 0.25 * width * (rho + 1.0 / rho);
    ellipse[2] = 0.25 * width * (rho - 1.0 / rho);
    return acct_panel_excess(&panel, &step, x, width, rho, &window, order, 0.0, log_error);
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    directory = tmp_path_factory.mktemp("quadrature_panel")
    source = directory / "ask.c"
    source.write_text(ASK)
    found = build(directory, [*core_files(), source])
    doubles = np.ctypeslib.ndpointer(dtype=np.float64, flags="C_CONTIGUOUS")
    found.excess.argtypes = [*[ctypes.c_double] * 8, doubles]
    found.excess.restype = ctypes.c_double
    return found


@pytest.mark.parametrize("rho", [3.0, 8.0, 16.0])
@pytest.mark.parametrize("theta", [0.2, 0.8, 1.4, 2.0, 2.6])
@pytest.mark.parametrize("x", [1.0, 2.0, 3.6])
def test_no_loss_turns_back_on_an_accepted_ellipse(library, x, theta, rho):
    q, sigma = 1e-4, 0.6
    shift, ellipse = theta * sigma**2, np.empty(3)
    if not library.excess(q, sigma, shift, x, 0.15, rho, 1.9, -30.0, ellipse) <= 0.0:
        return
    middle, wide, tall = map(mpmath.mpf, ellipse.tolist())
    for angle in mpmath.linspace(0, 2 * mpmath.pi, 81):
        z = mpmath.mpc(middle + wide * mpmath.cos(angle), shift + tall * mpmath.sin(angle))
        loss = mpmath.log1p(q / (1 - q) * mpmath.exp((2 * z - 1) / (2 * sigma**2)))
        assert loss.imag >= -1e-30


def test_low_paths_have_panels_and_too_high_ones_none(library):
    ellipse = np.empty(3)
    given = (2.0, 0.15, 16.0, 1.9, -30.0, ellipse)
    assert library.excess(1e-4, 0.6, 1.4 * 0.36, 2.0, 0.15, 6.0, 1.9, -30.0, ellipse) <= 0.0
    assert library.excess(1e-4, 0.6, 2.6 * 0.36, *given) == np.inf

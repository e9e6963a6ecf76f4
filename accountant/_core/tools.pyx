"""Loops of the analyses in Python: grids, sums of variables, elementary functions, one curve."""

from math import factorial

import numpy as np

cimport cython
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

from accountant._core._boundary cimport (
    ACCT_ENOMEM,
    acct_enter,
    acct_environment,
    acct_leave,
    check,
    of_bracket,
    same,
)

include "convolution.pxi"
include "discretise.pxi"
include "elementary.pxi"
include "environment.pxi"
include "mixture_renyi.pxi"

"""What trainers call in their loops: secure noise, and functions of single rows of matrices."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from accountant._core._boundary cimport acct_enter, acct_environment, acct_leave, same

ctypedef fused real:
    float
    double

include "randomness.pxi"
include "rownorms.pxi"
include "rows.pxi"

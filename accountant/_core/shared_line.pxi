# Many questions about one kind of step: a part of answers.pyx, which includes this.

from cpython.exc cimport PyErr_CheckSignals

cdef extern from "shared_line.h" nogil:
    ctypedef struct acct_shared_line:
        pass

    acct_shared_line *acct_shared_line_open()
    void acct_shared_line_close(acct_shared_line *shared)
    int acct_shared_epsilon(
        acct_shared_line *shared, long count, const double *q, const double *sigma,
        const double *steps, const double *delta, acct_bounds *out
    )

# Questions between which Python sees signals.
cdef Py_ssize_t CHUNK = 64


cdef void fill_shared(
    acct_shared_line *shared, Py_ssize_t first, Py_ssize_t last,
    const double[::1] q, const double[::1] sigma, const double[::1] steps,
    const double[::1] delta, double[::1] lower, double[::1] upper, int[::1] statuses,
) noexcept nogil:
    cdef acct_environment saved
    cdef acct_bounds out = acct_bounds(0.0, 0.0)
    cdef Py_ssize_t i, n = q.shape[0]
    cdef int status
    acct_enter(&saved)
    for i in range(first, last):
        status = acct_shared_epsilon(
            shared, n - i, &q[i], &sigma[i], &steps[i], &delta[i], &out
        )
        lower[i] = out.lower
        upper[i] = out.upper
        statuses[i] = of_bracket(status, out.lower, out.upper)
    acct_leave(&saved)


def fill_shared_epsilon_bounds(
    const double[::1] q, const double[::1] sigma, const double[::1] steps,
    const double[::1] delta, double[::1] lower, double[::1] upper, int[::1] statuses,
):
    """Fill ``lower`` and ``upper`` with :func:`epsilon_bounds` of each, the larger direction.

    Questions that follow each other and are near each other share a contour: sort them by steps,
    then by delta.
    """
    cdef Py_ssize_t first, n = q.shape[0]
    cdef acct_shared_line *shared
    same_length(n, (sigma, steps, delta, lower, upper, statuses))
    shared = acct_shared_line_open()
    if shared == NULL:
        raise MemoryError("no memory for the workspace of the native core")
    try:
        for first in range(0, n, CHUNK):
            with nogil:
                fill_shared(
                    shared, first, min(first + CHUNK, n), q, sigma, steps, delta, lower, upper,
                    statuses,
                )
            PyErr_CheckSignals()
    finally:
        acct_shared_line_close(shared)

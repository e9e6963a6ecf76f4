# The loops of the privacy loss distribution on a grid: the C entry points, one to one.
#
# Arguments must already be inside their domains. All numerics run without the GIL.
# A part of tools.pyx, which includes this file.

cdef extern from "discretise.h" nogil:
    ctypedef struct acct_cells:
        Py_ssize_t cells
        double spacing
        double error
        double below
        double above
        const double *t
        const double *atom
        const double *p_low
        const double *q_low
        const double *p_high
        const double *q_high

    ctypedef struct acct_profile_sums:
        double value
        double slope
        double gross
        double square
        double most

    void acct_grid_upper(const acct_cells *cells, double *out)
    int acct_grid_lower(const acct_cells *cells, double *out, double *gap, Py_ssize_t *stack)
    int acct_grid_hull(
        Py_ssize_t last, double spacing, double sign, double *out, Py_ssize_t *stack
    )
    void acct_spectrum_power(
        Py_ssize_t count, const double *z, unsigned long long power, double *out
    )
    void acct_profile(
        Py_ssize_t count, const double *b, double first, double spacing, double tilt,
        acct_profile_sums *out
    )


def grid_laws(
    double spacing, double error, double below, double above,
    const double[::1] t, const double[::1] atom,
    const double[::1] p_low, const double[::1] q_low,
    const double[::1] p_high, const double[::1] q_high,
    double[::1] upper, double[::1] lower,
):
    """Fill ``upper`` and ``lower``; tell whether the lower law is of second order."""
    cdef acct_environment saved
    cdef Py_ssize_t size, n = t.shape[0] - 1
    if n < 1:
        raise ValueError("a grid needs two knots")
    for size in (atom.shape[0], upper.shape[0], lower.shape[0]):
        same(n + 1, size)
    for size in (p_low.shape[0], q_low.shape[0], p_high.shape[0], q_high.shape[0]):
        same(n, size)
    cdef acct_cells cells = acct_cells(
        n, spacing, error, below, above,
        &t[0], &atom[0], &p_low[0], &q_low[0], &p_high[0], &q_high[0],
    )
    cdef double *gap = <double *>malloc((n + 1) * (sizeof(double) + sizeof(Py_ssize_t)))
    if not gap:
        check(ACCT_ENOMEM)
    cdef int second
    with nogil:
        acct_enter(&saved)
        acct_grid_upper(&cells, &upper[0])
        second = acct_grid_lower(&cells, &lower[0], gap, <Py_ssize_t *>(gap + n + 1))
        free(gap)
        acct_leave(&saved)
    return second != 0


def hull(double[::1] masses, double spacing, bint upwards):
    """Replace second differences by those of the lower convex hull; tell whether all are masses."""
    cdef acct_environment saved
    cdef Py_ssize_t size = masses.shape[0]
    if size < 1:
        raise ValueError("a hull needs a knot")
    cdef Py_ssize_t *stack = <Py_ssize_t *>malloc(size * sizeof(Py_ssize_t))
    if not stack:
        check(ACCT_ENOMEM)
    cdef int good
    with nogil:
        acct_enter(&saved)
        good = acct_grid_hull(size - 1, spacing, 1.0 if upwards else -1.0, &masses[0], stack)
        free(stack)
        acct_leave(&saved)
    return good != 0


def multiply_power(const double complex[::1] z, unsigned long long power, double complex[::1] out):
    """Multiply ``out`` by ``z ** power``, element by element, in place."""
    cdef acct_environment saved
    same(z.shape[0], out.shape[0])
    if z.shape[0] == 0 or power == 0:
        return
    with nogil:
        acct_enter(&saved)
        acct_spectrum_power(z.shape[0], <const double *>&z[0], power, <double *>&out[0])
        acct_leave(&saved)


def profile_sums(const double[::1] b, double first, double spacing, double tilt):
    """Sum a tilted law against the hockey stick: ``(value, slope, gross, square, most)``."""
    cdef acct_environment saved
    cdef acct_profile_sums s = acct_profile_sums(0.0, 0.0, 0.0, 0.0, 0.0)
    if b.shape[0] > 0:
        with nogil:
            acct_enter(&saved)
            acct_profile(b.shape[0], &b[0], first, spacing, tilt, &s)
            acct_leave(&saved)
    return s.value, s.slope, s.gross, s.square, s.most

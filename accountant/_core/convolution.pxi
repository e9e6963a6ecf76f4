# Sums of independent non-negative variables on a grid: the C entry points, one to one.
#
# Arrays must be contiguous float64 of matching lengths, increasing where they hold values. All
# numerics run without the GIL.
# A part of tools.pyx, which includes this file.

cdef extern from "convolution.h" nogil:
    void acct_spread(
        const double *s, const double *p, int64_t n, const double *t, const double *r, int64_t m,
        const double *grid, int64_t g, double *out, int64_t *counts, double *escaped
    )
    void acct_merge(
        const double *s, const double *p, int64_t n, const double *t, const double *r, int64_t m,
        const double *grid, int64_t g, double *mass, double *moment, int64_t *counts
    )


def spread(
    const double[::1] s,
    const double[::1] p,
    const double[::1] t,
    const double[::1] r,
    const double[::1] grid,
):
    """Return masses at the grid points, the mean that escaped, and the most terms in one sum."""
    cdef acct_environment saved
    _shapes(s, p, t, r, grid)
    out = np.empty(grid.shape[0])
    counts = np.empty(grid.shape[0], dtype=np.int64)
    cdef double[::1] out_view = out
    cdef int64_t[::1] counts_view = counts
    cdef double escaped = 0.0
    with nogil:
        acct_enter(&saved)
        acct_spread(
            &s[0], &p[0], s.shape[0], &t[0], &r[0], t.shape[0],
            &grid[0], grid.shape[0], &out_view[0], &counts_view[0], &escaped,
        )
        acct_leave(&saved)
    return out, escaped, int(counts.max())


def merge(
    const double[::1] s,
    const double[::1] p,
    const double[::1] t,
    const double[::1] r,
    const double[::1] grid,
):
    """Return masses and first moments of the cells, and the most terms in one sum."""
    cdef acct_environment saved
    _shapes(s, p, t, r, grid)
    mass = np.empty(grid.shape[0])
    moment = np.empty(grid.shape[0])
    counts = np.empty(grid.shape[0], dtype=np.int64)
    cdef double[::1] mass_view = mass
    cdef double[::1] moment_view = moment
    cdef int64_t[::1] counts_view = counts
    with nogil:
        acct_enter(&saved)
        acct_merge(
            &s[0], &p[0], s.shape[0], &t[0], &r[0], t.shape[0],
            &grid[0], grid.shape[0], &mass_view[0], &moment_view[0], &counts_view[0],
        )
        acct_leave(&saved)
    return mass, moment, int(counts.max())


cdef int _shapes(
    const double[::1] s,
    const double[::1] p,
    const double[::1] t,
    const double[::1] r,
    const double[::1] grid,
) except -1:
    if (
        s.shape[0] != p.shape[0]
        or t.shape[0] != r.shape[0]
        or s.shape[0] < 1
        or t.shape[0] < 1
        or grid.shape[0] < 2
    ):
        raise ValueError("values and masses must match, and the grid must have two points")
    return 0

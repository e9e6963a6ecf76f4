"""Loops of the analyses in Python: grids, sums of variables, elementary functions."""

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
    same,
)

# Sums of independent non-negative variables on a grid: the C entry points, one to one.
#
# Arrays must be contiguous float64 of matching lengths, increasing where they hold values. All
# numerics run without the GIL.

cdef extern from "grid.h" nogil:
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


# The loops of the privacy loss distribution on a grid: the C entry points, one to one.
#
# Arguments must already be inside their domains. All numerics run without the GIL.

cdef extern from "grid.h" nogil:
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
    """Sum a tilted law against the hockey stick: ``(value, gross, square, most)``."""
    cdef acct_environment saved
    cdef acct_profile_sums s = acct_profile_sums(0.0, 0.0, 0.0, 0.0)
    if b.shape[0] > 0:
        with nogil:
            acct_enter(&saved)
            acct_profile(b.shape[0], &b[0], first, spacing, tilt, &s)
            acct_leave(&saved)
    return s.value, s.gross, s.square, s.most


# Games of replaced records.

cdef extern from "game.h" nogil:
    ctypedef struct acct_game:
        Py_ssize_t laws, near, stride, below, above
        const Py_ssize_t *near_place
        const double *near_mass
        const double *far_mass
        const double *share
        const double *decay
        const double *gain
        const double *infinite

    void acct_game_play(
        const acct_game *game, Py_ssize_t size, double *values, Py_ssize_t count, double *work
    )
    Py_ssize_t acct_game_work(const acct_game *game, Py_ssize_t size)


def play(
    double[::1] values, Py_ssize_t count, const double[::1] infinite,
    const Py_ssize_t[::1] near_place, const double[:, ::1] near_mass, const double[:, ::1] far_mass,
    const double[::1] share, const double[::1] decay, const double[::1] gain,
):
    """Replace ``values`` by what the best law makes of them, ``count`` times."""
    cdef acct_environment saved
    cdef Py_ssize_t size = values.shape[0], stride = share.shape[0]
    cdef Py_ssize_t above = (decay.shape[0] - 1) // stride
    cdef Py_ssize_t below = far_mass.shape[1] - above - 1
    same(near_place.shape[0], near_mass.shape[1])
    same(near_mass.shape[0], far_mass.shape[0])
    same(near_mass.shape[0], infinite.shape[0])
    same(decay.shape[0], gain.shape[0])
    if size < 2 or (size - 1) % stride or below < 1 or np.abs(near_place).max() >= stride:
        raise ValueError("the laws do not fit the knots")
    cdef acct_game game = acct_game(
        near_mass.shape[0], near_place.shape[0], stride, below, above,
        &near_place[0], &near_mass[0, 0], &far_mass[0, 0],
        &share[0], &decay[0], &gain[0], &infinite[0],
    )
    cdef double *work = <double *>malloc(acct_game_work(&game, size) * sizeof(double))
    if not work:
        check(ACCT_ENOMEM)
    with nogil:
        acct_enter(&saved)
        acct_game_play(&game, size, &values[0], count, work)
        acct_leave(&saved)
        free(work)


# The elementary functions that the certificates trust, as the native core calls them.

cdef extern from "elementary.h" nogil:
    void acct_elementary_values(
        int function, const double *x, const double *y, ptrdiff_t n, double *out
    )

# The C library's, and those of vmath.h, in the order of elementary.h.
LIBM = {name: i for i, name in enumerate("exp expm1 log log1p sin cos atan2 erf erfc pow".split())}
VMATH = {name: len(LIBM) + i for i, name in enumerate("exp expm1 log1p sin cos".split())}


def libm(str name, const double[::1] x, const double[::1] y=None):
    """Return what the C library's function gives at each of ``x`` (and ``y``)."""
    return _values(LIBM[name], x, y)


def series(const double[::1] a, const double[::1] b):
    """Return the sums of the terms a^j b^k / ((2j)! k! (2j + 2k + 1)) with j + k <= 5."""
    same(a.shape[0], b.shape[0])
    cdef double weights[6][6]
    cdef double inner, total
    cdef int j, k
    cdef Py_ssize_t i, n = a.shape[0]
    cdef acct_environment saved
    for j in range(6):
        for k in range(6):
            weights[j][k] = 0.0
            if j + k <= 5:
                weights[j][k] = 1.0 / (factorial(2 * j) * factorial(k) * (2 * (j + k) + 1))
    out = np.empty(n)
    cdef double[::1] view = out
    with nogil:
        acct_enter(&saved)
        for i in range(n):
            total = 0.0
            for j in range(5, -1, -1):
                inner = 0.0
                for k in range(5, -1, -1):
                    inner = inner * b[i] + weights[j][k]
                total = total * a[i] + inner
            view[i] = total
        acct_leave(&saved)
    return out


def vmath(str name, const double[::1] x):
    """Return what the core's own function gives at each of ``x``."""
    return _values(VMATH[name], x, None)


cdef _values(int function, const double[::1] x, const double[::1] y):
    cdef acct_environment saved
    cdef const double *second = NULL
    if y is not None:
        same(y.shape[0], x.shape[0])
        second = &y[0] if y.shape[0] else NULL
    out = np.empty(x.shape[0])
    cdef double[::1] view = out
    if x.shape[0]:
        with nogil:
            acct_enter(&saved)
            acct_elementary_values(function, &x[0], second, x.shape[0], &view[0])
            acct_leave(&saved)
    return out


# The floating-point environment of the calling thread, as the certificates assume it.
#
# Every other entry of the native core enters and leaves by itself; these two are for what Python
# and NumPy compute between the calls.

# What one thread had is of no use to another process.
@cython.auto_pickle(False)
cdef class Environment:
    """What :func:`enter` changed."""

    cdef acct_environment saved


def enter():
    """Round to nearest, with subnormal numbers, from here on; return what was before.

    None where there was nothing to change.
    """
    cdef acct_environment saved
    acct_enter(&saved)
    if not saved.changed:
        return None
    cdef Environment before = Environment.__new__(Environment)
    before.saved = saved
    return before


def leave(Environment before not None):
    """Go back to what :func:`enter` returned."""
    acct_leave(&before.saved)

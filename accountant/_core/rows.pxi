# Functions of rows whose results depend on the row alone, bit by bit.
#
# Matrices must be C-contiguous, except the right factor of a product; shapes are compared here,
# values are not. No function allocates, and all run without the GIL.
# A part of training.pyx, which includes this file.

cdef extern from "rows.h" nogil:
    void acct_row_products_f64(
        const double *x, ptrdiff_t rows, ptrdiff_t inner, const double *w, ptrdiff_t outer,
        ptrdiff_t down, ptrdiff_t across, double *out
    )
    void acct_row_products_f32(
        const float *x, ptrdiff_t rows, ptrdiff_t inner, const float *w, ptrdiff_t outer,
        ptrdiff_t down, ptrdiff_t across, float *out
    )
    void acct_row_waves(
        const double *angles, ptrdiff_t rows, ptrdiff_t inner, double scale, double *out,
        ptrdiff_t outer
    )
    void acct_row_polar(
        const double *across, const double *down, ptrdiff_t n, double *size, double *angle
    )
    void acct_row_powers(const double *x, ptrdiff_t n, double power, double *out)
    void acct_row_units(double *x, ptrdiff_t rows, ptrdiff_t columns)


def products(const real[:, ::1] x, const real[:, :] w, real[:, ::1] out):
    """Write the matrix product ``x w`` into ``out``."""
    same(x.shape[1], w.shape[0])
    same(x.shape[0], out.shape[0])
    same(w.shape[1], out.shape[1])
    if not (out.shape[0] and out.shape[1]):
        return
    if not x.shape[1]:
        out[:, :] = 0
        return
    cdef ptrdiff_t size = sizeof(real)
    # A field of a structured array may lie at strides that no count of elements gives.
    same(w.strides[0] % size, 0)
    same(w.strides[1] % size, 0)
    cdef ptrdiff_t down = w.strides[0] // size, across = w.strides[1] // size
    with nogil:
        if real is double:
            acct_row_products_f64(
                &x[0, 0], x.shape[0], x.shape[1], &w[0, 0], w.shape[1], down, across, &out[0, 0]
            )
        else:
            acct_row_products_f32(
                &x[0, 0], x.shape[0], x.shape[1], &w[0, 0], w.shape[1], down, across, &out[0, 0]
            )


def waves(const double[:, ::1] angles, double scale, double[:, ::1] out):
    """Write ``scale`` times cosines, then sines, of each row of angles into ``out``."""
    same(angles.shape[0], out.shape[0])
    if not (angles.shape[1] <= out.shape[1] <= 2 * angles.shape[1]):
        raise ValueError("the arrays handed to the native core do not fit each other")
    if not (out.shape[0] and out.shape[1]):
        return
    with nogil:
        acct_row_waves(
            &angles[0, 0], angles.shape[0], angles.shape[1], scale, &out[0, 0], out.shape[1]
        )


def polar(
    const double[::1] across, const double[::1] down, double[::1] size, double[::1] angle
):
    """Write the polar coordinates of points into ``size`` and ``angle``."""
    same(across.shape[0], down.shape[0])
    same(across.shape[0], size.shape[0])
    same(across.shape[0], angle.shape[0])
    if across.shape[0]:
        with nogil:
            acct_row_polar(&across[0], &down[0], across.shape[0], &size[0], &angle[0])


def powers(const double[::1] x, double power, double[::1] out):
    """Write ``|x|`` to a power, with the sign of ``x``, into ``out``."""
    same(x.shape[0], out.shape[0])
    if x.shape[0]:
        with nogil:
            acct_row_powers(&x[0], x.shape[0], power, &out[0])


def units(double[:, ::1] x):
    """Divide each row by its Euclidean norm, in place; a row of zeros stays."""
    if x.shape[0] and x.shape[1]:
        with nogil:
            acct_row_units(&x[0, 0], x.shape[0], x.shape[1])

# Row norms, clip factors and row scaling: the C entry points for float32 and float64.
#
# Matrices must be C-contiguous; shapes are compared here, values are not. No function allocates,
# and all run without the GIL.
# A part of training.pyx, which includes this file.

cdef extern from "rownorms.h" nogil:
    void acct_ghost_norms_f64(
        const double *a, const double *g, ptrdiff_t rows, ptrdiff_t a_columns,
        ptrdiff_t g_columns, double bias, double limit, double *norms2
    )
    void acct_ghost_norms_f32(
        const float *a, const float *g, ptrdiff_t rows, ptrdiff_t a_columns,
        ptrdiff_t g_columns, double bias, double limit, double *norms2
    )
    void acct_row_norms_f64(
        const double *v, ptrdiff_t rows, ptrdiff_t columns, double limit, double *norms2
    )
    void acct_row_norms_f32(
        const float *v, ptrdiff_t rows, ptrdiff_t columns, double limit, double *norms2
    )
    void acct_clip_factors(
        const double *norms2, ptrdiff_t rows, ptrdiff_t filled, double clipping_norm,
        double stability, double *factors
    )
    void acct_scale_rows_f64(
        double *x, const double *factors, ptrdiff_t rows, ptrdiff_t columns
    )
    void acct_scale_rows_f32(
        float *x, const double *factors, ptrdiff_t rows, ptrdiff_t columns
    )
    void acct_zero_rows_f64(
        double *x, const double *factors, ptrdiff_t rows, ptrdiff_t columns
    )
    void acct_zero_rows_f32(
        float *x, const double *factors, ptrdiff_t rows, ptrdiff_t columns
    )
    void acct_accumulate_f64(const double *x, ptrdiff_t n, double *total)
    void acct_accumulate_f32(const float *x, ptrdiff_t n, double *total)


def add_ghost_norms(
    const real[:, ::1] a, const real[:, ::1] g, double bias, double limit, double[::1] norms2
):
    """Add ``(|a_i|² + bias) |g_i|²`` to ``norms2``; rows beyond ``limit`` become infinite."""
    cdef acct_environment saved
    same(a.shape[0], norms2.shape[0])
    same(g.shape[0], norms2.shape[0])
    if not norms2.shape[0]:
        return
    with nogil:
        acct_enter(&saved)
        if real is double:
            acct_ghost_norms_f64(
                &a[0, 0], &g[0, 0], a.shape[0], a.shape[1], g.shape[1], bias, limit, &norms2[0]
            )
        else:
            acct_ghost_norms_f32(
                &a[0, 0], &g[0, 0], a.shape[0], a.shape[1], g.shape[1], bias, limit, &norms2[0]
            )
        acct_leave(&saved)


def add_row_norms(const real[:, ::1] v, double limit, double[::1] norms2):
    """Add ``|v_i|²`` to ``norms2``; rows beyond ``limit`` become infinite."""
    cdef acct_environment saved
    same(v.shape[0], norms2.shape[0])
    if not norms2.shape[0]:
        return
    with nogil:
        acct_enter(&saved)
        if real is double:
            acct_row_norms_f64(&v[0, 0], v.shape[0], v.shape[1], limit, &norms2[0])
        else:
            acct_row_norms_f32(&v[0, 0], v.shape[0], v.shape[1], limit, &norms2[0])
        acct_leave(&saved)


def clip_factors(
    const double[::1] norms2, Py_ssize_t filled, double clipping_norm, double stability,
    double[::1] factors
):
    """Fill ``factors``: flat when ``stability < 0``, else automatic; 0 where not finite."""
    cdef acct_environment saved
    same(norms2.shape[0], factors.shape[0])
    if not norms2.shape[0]:
        return
    with nogil:
        acct_enter(&saved)
        acct_clip_factors(
            &norms2[0], norms2.shape[0], filled, clipping_norm, stability, &factors[0]
        )
        acct_leave(&saved)


def scale_rows(real[:, ::1] x, const double[::1] factors):
    """Multiply the rows of ``x`` by ``factors`` in place; a factor of 0 writes zeros."""
    cdef acct_environment saved
    same(x.shape[0], factors.shape[0])
    if not factors.shape[0]:
        return
    with nogil:
        acct_enter(&saved)
        if real is double:
            acct_scale_rows_f64(&x[0, 0], &factors[0], x.shape[0], x.shape[1])
        else:
            acct_scale_rows_f32(&x[0, 0], &factors[0], x.shape[0], x.shape[1])
        acct_leave(&saved)


def zero_rows(real[:, ::1] x, const double[::1] factors):
    """Write zeros into the rows of ``x`` whose factor is 0."""
    cdef acct_environment saved
    same(x.shape[0], factors.shape[0])
    if not factors.shape[0]:
        return
    with nogil:
        acct_enter(&saved)
        if real is double:
            acct_zero_rows_f64(&x[0, 0], &factors[0], x.shape[0], x.shape[1])
        else:
            acct_zero_rows_f32(&x[0, 0], &factors[0], x.shape[0], x.shape[1])
        acct_leave(&saved)


def accumulate(const real[::1] x, double[::1] total):
    """Add ``x`` to ``total`` in float64."""
    cdef acct_environment saved
    same(x.shape[0], total.shape[0])
    if not x.shape[0]:
        return
    with nogil:
        acct_enter(&saved)
        if real is double:
            acct_accumulate_f64(&x[0], x.shape[0], &total[0])
        else:
            acct_accumulate_f32(&x[0], x.shape[0], &total[0])
        acct_leave(&saved)

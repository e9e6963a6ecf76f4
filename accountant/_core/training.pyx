"""What trainers call in their loops: secure noise, and functions of single rows of matrices."""

from libc.float cimport DBL_MAX
from libc.math cimport atan2, copysign, cos, fabs, hypot, pow, sin, sqrt
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from accountant._core._boundary cimport acct_enter, acct_environment, acct_leave, same

ctypedef fused real:
    float
    double

# The ChaCha20 stream and the integer noises made from it: the C entry points, one to one.

cdef extern from "noise.h" nogil:
    void acct_chacha20(const uint32_t key[8], uint64_t counter, uint8_t *out, size_t blocks)
    size_t acct_rounded_normal(
        const uint64_t *bits, size_t n, double scale, double *out, size_t *undecided
    )
    double acct_normal_tail_quantile(double p)

    struct acct_words:
        const uint64_t *words
        size_t count
        size_t used

    size_t acct_discrete_gaussian(acct_words *source, uint64_t scale, size_t n, int64_t *out)


def chacha20(const uint32_t[::1] key, uint64_t counter, uint8_t[::1] out):
    """Fill ``out``, whole blocks of 64 bytes, with the keystream from block ``counter`` on."""
    cdef acct_environment saved
    if key.shape[0] != 8 or out.shape[0] % 64:
        raise ValueError("a key has eight words, and the keystream comes in blocks of 64 bytes")
    if not out.shape[0]:
        return
    with nogil:
        acct_enter(&saved)
        acct_chacha20(&key[0], counter, &out[0], <size_t>out.shape[0] // 64)
        acct_leave(&saved)


def rounded_normal(
    const uint64_t[::1] bits, double scale, double[::1] out, size_t[::1] undecided
):
    """Fill ``out`` with rounded normals; return how many indices went to ``undecided``."""
    cdef acct_environment saved
    cdef size_t count
    same(bits.shape[0], out.shape[0])
    same(bits.shape[0], undecided.shape[0])
    if not bits.shape[0]:
        return 0
    with nogil:
        acct_enter(&saved)
        count = acct_rounded_normal(
            &bits[0], <size_t>bits.shape[0], scale, &out[0], &undecided[0]
        )
        acct_leave(&saved)
    return count


def normal_tail_quantile(double p):
    """Return z with tail probability P{Z > z} = p, 0 < p < 1/2, to about 2^-49 (1 + z)."""
    cdef acct_environment saved
    cdef double z
    acct_enter(&saved)
    z = acct_normal_tail_quantile(p)
    acct_leave(&saved)
    return z


def discrete_gaussian(const uint64_t[::1] words, uint64_t scale, int64_t[::1] out):
    """Fill a front part of ``out``; return ``(draws made, words used)``."""
    cdef acct_environment saved
    cdef size_t made
    cdef acct_words source
    if not out.shape[0] or not words.shape[0]:
        return 0, 0
    source.words = &words[0]
    source.count = <size_t>words.shape[0]
    source.used = 0
    with nogil:
        acct_enter(&saved)
        made = acct_discrete_gaussian(&source, scale, <size_t>out.shape[0], &out[0])
        acct_leave(&saved)
    return made, source.used


# Row norms, clip factors and row scaling, for float32 and float64.
#
# Matrices must be C-contiguous; shapes are compared here, values are not. No function allocates,
# and all run without the GIL.

cdef extern from "rows.h" nogil:
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
    void acct_scale_rows_f64(
        double *x, const double *factors, ptrdiff_t rows, ptrdiff_t columns
    )
    void acct_scale_rows_f32(
        float *x, const double *factors, ptrdiff_t rows, ptrdiff_t columns
    )


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
    """Fill ``factors``: flat when ``stability < 0``, else automatic; 0 where not finite.

    Row i of squared norm n² gets min(1, C/n), or C/(n + stability), and 0 from row ``filled`` on.
    """
    cdef acct_environment saved
    cdef Py_ssize_t i
    cdef double norm
    same(norms2.shape[0], factors.shape[0])
    with nogil:
        acct_enter(&saved)
        for i in range(norms2.shape[0]):
            norm = sqrt(norms2[i])
            if i >= filled or not norm <= DBL_MAX:
                factors[i] = 0.0
            elif stability >= 0.0:
                factors[i] = clipping_norm / (norm + stability)
            else:
                factors[i] = 1.0 if norm <= clipping_norm else clipping_norm / norm
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
    cdef Py_ssize_t i
    same(x.shape[0], factors.shape[0])
    for i in range(x.shape[0]):
        if factors[i] == 0.0:
            x[i, :] = 0


def accumulate(const real[::1] x, double[::1] total):
    """Add ``x`` to ``total`` in float64."""
    cdef acct_environment saved
    cdef Py_ssize_t i
    same(x.shape[0], total.shape[0])
    with nogil:
        acct_enter(&saved)
        for i in range(x.shape[0]):
            total[i] += x[i]
        acct_leave(&saved)


# Functions of rows whose results depend on the row alone, bit by bit.
#
# Matrices must be C-contiguous, except the right factor of a product; shapes are compared here,
# values are not. No function allocates, and all run without the GIL.

cdef extern from "rows.h" nogil:
    void acct_row_products_f64(
        const double *x, ptrdiff_t rows, ptrdiff_t inner, const double *w, ptrdiff_t outer,
        ptrdiff_t down, ptrdiff_t across, double *out
    )
    void acct_row_products_f32(
        const float *x, ptrdiff_t rows, ptrdiff_t inner, const float *w, ptrdiff_t outer,
        ptrdiff_t down, ptrdiff_t across, float *out
    )
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
    cdef Py_ssize_t i, j, inner = angles.shape[1]
    same(angles.shape[0], out.shape[0])
    if not (inner <= out.shape[1] <= 2 * inner):
        raise ValueError("the arrays handed to the native core do not fit each other")
    with nogil:
        for i in range(out.shape[0]):
            for j in range(out.shape[1]):
                out[i, j] = scale * (cos(angles[i, j]) if j < inner else sin(angles[i, j - inner]))


def polar(
    const double[::1] across, const double[::1] down, double[::1] size, double[::1] angle
):
    """Write the polar coordinates of points into ``size`` and ``angle``."""
    cdef Py_ssize_t k
    same(across.shape[0], down.shape[0])
    same(across.shape[0], size.shape[0])
    same(across.shape[0], angle.shape[0])
    with nogil:
        for k in range(across.shape[0]):
            size[k] = hypot(across[k], down[k])
            angle[k] = atan2(down[k], across[k])


def powers(const double[::1] x, double power, double[::1] out):
    """Write ``|x|`` to a power, with the sign of ``x``, into ``out``, which may be ``x``."""
    cdef Py_ssize_t k
    cdef double size
    same(x.shape[0], out.shape[0])
    with nogil:
        for k in range(x.shape[0]):
            size = fabs(x[k])
            out[k] = copysign(sqrt(size) if power == 0.5 else pow(size, power), x[k])


def units(double[:, ::1] x):
    """Divide each row by its Euclidean norm, in place; a row of zeros stays."""
    if x.shape[0] and x.shape[1]:
        with nogil:
            acct_row_units(&x[0, 0], x.shape[0], x.shape[1])

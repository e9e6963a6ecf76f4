# The elementary functions that the certificates trust, as the native core calls them.
# A part of tools.pyx, which includes this file.

cdef extern from "elementary.h" nogil:
    ctypedef enum acct_elementary:
        ACCT_LIBM_EXP
        ACCT_LIBM_EXPM1
        ACCT_LIBM_LOG
        ACCT_LIBM_LOG1P
        ACCT_LIBM_SIN
        ACCT_LIBM_COS
        ACCT_LIBM_ATAN2
        ACCT_LIBM_ERF
        ACCT_LIBM_ERFC
        ACCT_LIBM_POW
        ACCT_VMATH_EXP
        ACCT_VMATH_EXPM1
        ACCT_VMATH_LOG1P
        ACCT_VMATH_SIN
        ACCT_VMATH_COS

    void acct_elementary_values(
        acct_elementary function, const double *x, const double *y, ptrdiff_t n, double *out
    )

# The C library's, and those of vmath.h.
LIBM = {
    "exp": ACCT_LIBM_EXP,
    "expm1": ACCT_LIBM_EXPM1,
    "log": ACCT_LIBM_LOG,
    "log1p": ACCT_LIBM_LOG1P,
    "sin": ACCT_LIBM_SIN,
    "cos": ACCT_LIBM_COS,
    "atan2": ACCT_LIBM_ATAN2,
    "erf": ACCT_LIBM_ERF,
    "erfc": ACCT_LIBM_ERFC,
    "pow": ACCT_LIBM_POW,
}
VMATH = {
    "exp": ACCT_VMATH_EXP,
    "expm1": ACCT_VMATH_EXPM1,
    "log1p": ACCT_VMATH_LOG1P,
    "sin": ACCT_VMATH_SIN,
    "cos": ACCT_VMATH_COS,
}


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


cdef _values(acct_elementary function, const double[::1] x, const double[::1] y):
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

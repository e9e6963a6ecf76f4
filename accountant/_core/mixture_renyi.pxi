# The Rényi curve of Gaussian noise with a random shift: the C entry point.
#
# Arrays must be contiguous float64 of one length. All numerics run without the GIL.
# A part of tools.pyx, which includes this file.

cdef extern from "mixture_renyi.h" nogil:
    enum acct_direction:
        ACCT_REMOVE
        ACCT_ADD

    ctypedef struct acct_bounds:
        double lower
        double upper

    ctypedef struct acct_mixture_curve:
        double sigma
        int count
        const double *shift
        const double *weight
        double first_err
        double weight_err

    int acct_mixture_renyi(
        const acct_mixture_curve *curve, double order, int direction, acct_bounds *out
    )


def mixture_renyi_bounds(
    double sigma,
    const double[::1] shifts,
    const double[::1] weights,
    double order,
    bint add,
    double first_error,
    double weight_error,
):
    """Return a bracket of D_order(P‖Q), or with ``add`` of D_order(Q‖P).

    P is the sum of the weights times N(shift, sigma²), and Q is N(0, sigma²). The errors are
    relative ones: of the first weight, and of the others.
    """
    cdef acct_environment saved
    cdef acct_bounds out
    cdef acct_mixture_curve curve
    cdef int status
    if shifts.shape[0] != weights.shape[0] or not 1 <= shifts.shape[0] <= 1 << 24:
        raise ValueError("shifts and weights must match, and there must be one at least")
    curve.sigma = sigma
    curve.count = <int>shifts.shape[0]
    curve.shift = &shifts[0]
    curve.weight = &weights[0]
    curve.first_err = first_error
    curve.weight_err = weight_error
    with nogil:
        acct_enter(&saved)
        status = acct_mixture_renyi(&curve, order, ACCT_ADD if add else ACCT_REMOVE, &out)
        acct_leave(&saved)
        status = of_bracket(status, out.lower, out.upper)
    check(status)
    return out.lower, out.upper

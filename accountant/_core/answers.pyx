"""Brackets for Poisson-subsampled Gaussian steps, repeated or different: the C entry points.

Arguments must already be inside their domains (``accountant.checks``). For repeated steps each
quantity has a scalar form and a ``fill_`` form over flat arrays of one length; the latter writes
one status per element, which ``check_statuses`` turns into at most one exception. The
``heterogeneous_`` functions take the parts of one composition as flat arrays of one length:
sampling probabilities (1 is the plain Gaussian), noise multipliers, counts (as floats). All
numerics run without the GIL.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

from accountant._core._boundary cimport (
    ACCT_EPRECISION,
    ACCT_ESTOPPED,
    ACCT_EUNBOUNDED,
    ACCT_OK,
    acct_enter,
    acct_environment,
    acct_leave,
    check,
    fail,
    of_bracket,
)

cdef extern from "subsampled_gaussian.h" nogil:
    enum acct_direction:
        ACCT_REMOVE
        ACCT_ADD
        ACCT_EITHER

    ctypedef struct acct_bounds:
        double lower
        double upper

    int acct_psg_delta(
        double q, double sigma, double steps, double epsilon, int direction, acct_bounds *out
    )
    int acct_psg_epsilon(
        double q, double sigma, double steps, double delta, int direction, acct_bounds *out
    )
    int acct_psg_renyi(double q, double sigma, double order, int direction, acct_bounds *out)
    int acct_psg_epsilon_renyi(
        double q, double sigma, double steps, double delta, double *epsilon, double *order
    )

cdef extern from "gaussian_mixture.h" nogil:
    ctypedef struct acct_mixture_part:
        double sigma
        int count
        const double *shift
        const double *weight
        double silent
        double weight_err

    int acct_gaussian_mixture_delta(
        const acct_mixture_part *part, double steps, double epsilon, int direction,
        acct_bounds *out
    )
    int acct_gaussian_mixture_epsilon(
        const acct_mixture_part *part, double steps, double delta, int direction, acct_bounds *out
    )

ctypedef int (*profile_function)(
    double, double, double, double, int, acct_bounds *
) noexcept nogil
ctypedef int (*mixture_function)(
    const acct_mixture_part *, double, double, int, acct_bounds *
) noexcept nogil
REMOVE = ACCT_REMOVE
ADD = ACCT_ADD
EITHER = ACCT_EITHER


cdef int renyi_profile(
    double q, double sigma, double order, double same_order, int direction, acct_bounds *out
) noexcept nogil:
    return acct_psg_renyi(q, sigma, order, direction, out)


cdef tuple bracket(
    profile_function function, double q, double sigma, double steps, double given, int direction
):
    cdef acct_environment saved
    cdef acct_bounds out = {"lower": 0.0, "upper": 0.0}
    cdef int status
    with nogil:
        acct_enter(&saved)
        status = function(q, sigma, steps, given, direction, &out)
        acct_leave(&saved)
    check(of_bracket(status, out.lower, out.upper))
    return out.lower, out.upper


def delta_bounds(double q, double sigma, double steps, double epsilon, int direction):
    """Bracket δ(epsilon) of ``steps`` steps: ``(lower, upper)``."""
    return bracket(acct_psg_delta, q, sigma, steps, epsilon, direction)


def epsilon_bounds(double q, double sigma, double steps, double delta, int direction):
    """Bracket ε(delta) of ``steps`` steps: ``(lower, upper)``."""
    return bracket(acct_psg_epsilon, q, sigma, steps, delta, direction)


def renyi_bounds(double q, double sigma, double order, int direction):
    """Bracket the Rényi divergence of one step at ``order``: ``(lower, upper)``."""
    return bracket(renyi_profile, q, sigma, order, order, direction)


def epsilon_renyi_upper(double q, double sigma, double steps, double delta):
    """Bound ε(delta) by Rényi DP: ``(upper, order)``, with the order that certifies it."""
    cdef acct_environment saved
    cdef double epsilon = 0.0, order = 0.0
    cdef int status
    with nogil:
        acct_enter(&saved)
        status = acct_psg_epsilon_renyi(q, sigma, steps, delta, &epsilon, &order)
        acct_leave(&saved)
    check(of_bracket(status, 0.0, epsilon))
    return epsilon, order


def check_statuses(const int[::1] statuses):
    """Raise when any element failed, saying how many did and which was the first."""
    cdef Py_ssize_t i, failures = 0, first = -1
    for i in range(statuses.shape[0]):
        if statuses[i] != ACCT_OK:
            failures += 1
            if first < 0:
                first = i
    if failures:
        fail(
            statuses[first],
            f" for {failures} of {statuses.shape[0]} elements, the first at flat index {first}",
        )


cdef int same_length(Py_ssize_t n, tuple others) except -1:
    for other in others:
        if other.shape[0] != n:
            raise ValueError("the flat arrays handed to the native core differ in length")
    return 0


cdef int fill_profile(
    profile_function function,
    const double[::1] q, const double[::1] sigma, const double[::1] steps, const double[::1] given,
    int direction, double[::1] lower, double[::1] upper, int[::1] statuses,
) except -1:
    cdef acct_environment saved
    cdef Py_ssize_t i, n = q.shape[0]
    cdef int status
    cdef acct_bounds out = {"lower": 0.0, "upper": 0.0}  # written only on success
    same_length(n, (sigma, steps, given, lower, upper, statuses))
    with nogil:
        acct_enter(&saved)
        for i in range(n):
            status = function(q[i], sigma[i], steps[i], given[i], direction, &out)
            lower[i] = out.lower
            upper[i] = out.upper
            statuses[i] = of_bracket(status, out.lower, out.upper)
        acct_leave(&saved)
    return 0


def fill_delta_bounds(
    const double[::1] q, const double[::1] sigma, const double[::1] steps,
    const double[::1] epsilon, int direction,
    double[::1] lower, double[::1] upper, int[::1] statuses,
):
    """Fill ``lower`` and ``upper`` with :func:`delta_bounds` of each element."""
    fill_profile(acct_psg_delta, q, sigma, steps, epsilon, direction, lower, upper, statuses)


def fill_renyi_bounds(
    const double[::1] q, const double[::1] sigma, const double[::1] order, int direction,
    double[::1] lower, double[::1] upper, int[::1] statuses,
):
    """Fill ``lower`` and ``upper`` with :func:`renyi_bounds` of each element."""
    fill_profile(renyi_profile, q, sigma, order, order, direction, lower, upper, statuses)


def fill_epsilon_renyi_upper(
    const double[::1] q, const double[::1] sigma, const double[::1] steps,
    const double[::1] delta,
    double[::1] upper, double[::1] order, int[::1] statuses,
):
    """Fill ``upper`` and ``order`` with :func:`epsilon_renyi_upper` of each element."""
    cdef acct_environment saved
    cdef Py_ssize_t i, n = q.shape[0]
    cdef int status
    same_length(n, (sigma, steps, delta, upper, order, statuses))
    with nogil:
        acct_enter(&saved)
        for i in range(n):
            upper[i] = 0.0  # written only on success
            status = acct_psg_epsilon_renyi(
                q[i], sigma[i], steps[i], delta[i], &upper[i], &order[i]
            )
            statuses[i] = of_bracket(status, 0.0, upper[i])
        acct_leave(&saved)


cdef int set_law(
    acct_mixture_part *part, double sigma, const double[::1] shifts, const double[::1] weights,
    double silent, double weight_error,
) except -1:
    if shifts.shape[0] != weights.shape[0] or not 0 < shifts.shape[0] < 2**30:
        raise ValueError("the flat arrays handed to the native core differ in length")
    part.sigma, part.silent, part.weight_err = sigma, silent, weight_error
    part.count, part.shift, part.weight = <int>shifts.shape[0], &shifts[0], &weights[0]
    return 0


cdef tuple mixture_bounds(
    mixture_function function,
    double sigma, const double[::1] shifts, const double[::1] weights,
    double steps, double given, int direction, double silent, double weight_error,
):
    cdef acct_environment saved
    cdef acct_bounds out = {"lower": 0.0, "upper": 0.0}
    cdef acct_mixture_part part
    cdef int status
    set_law(&part, sigma, shifts, weights, silent, weight_error)
    with nogil:
        acct_enter(&saved)
        status = function(&part, steps, given, direction, &out)
        acct_leave(&saved)
    check(of_bracket(status, out.lower, out.upper))
    return out.lower, out.upper


def mixture_delta_bounds(
    double sigma, const double[::1] shifts, const double[::1] weights,
    double steps, double epsilon, int direction, double silent=0.0, double weight_error=0.0,
):
    """Bracket δ(epsilon) of ``steps`` steps with a random shift, in one direction."""
    return mixture_bounds(
        acct_gaussian_mixture_delta, sigma, shifts, weights, steps, epsilon, direction,
        silent, weight_error,
    )


def mixture_epsilon_bounds(
    double sigma, const double[::1] shifts, const double[::1] weights,
    double steps, double delta, int direction, double silent=0.0, double weight_error=0.0,
):
    """Bracket ε(delta) of ``steps`` steps with a random shift, in one direction."""
    return mixture_bounds(
        acct_gaussian_mixture_epsilon, sigma, shifts, weights, steps, delta, direction,
        silent, weight_error,
    )


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


include "calibration.pxi"
include "compositions.pxi"


cdef extern from "smoothed_line.h" nogil:
    ctypedef struct acct_line_part:
        int kind
        double runs, spread, damping, distance, frequency, period
        const double *loss
        const double *weight
        int64_t atoms
        double weight_err

    ctypedef struct acct_line_nodes:
        double *y
        double *re
        double *im
        double *err
        double *most
        int64_t room, kept, pruned

    int acct_line_product(
        const acct_line_part *parts, int64_t count, double c, double step, int64_t last,
        const acct_line_nodes *first, acct_line_nodes *nodes
    )


cdef extern from "heterogeneous_line.h" nogil:
    ctypedef struct acct_sampled_line:
        int direction, direct
        double log_delta, b, right_b, left_b, dy, log_error

    ctypedef struct acct_sampled_orders:
        double log_mgf, log_mgf_err, right_log, right_err, left_log, left_err, outside

    int acct_heterogeneous_line(
        const acct_part *parts, int count, const acct_sampled_line *line, acct_line_nodes *nodes,
        acct_sampled_orders *orders, int *decays
    )
    int acct_heterogeneous_line_logs(
        const acct_part *parts, int count, int direction, double log_delta, int64_t size,
        const double *b, double *value
    )


cdef int set_table(acct_line_nodes *nodes, double[:, ::1] table) except -1:
    if table.shape[0] != 4 or table.shape[1] < 1:
        raise ValueError("the arrays handed to the native core do not fit each other")
    nodes.room = table.shape[1]
    nodes.re, nodes.im = &table[0, 0], &table[1, 0]
    nodes.err, nodes.most = &table[2, 0], &table[3, 0]
    return 0


def sampled_line(
    const double[::1] q, const double[::1] sigma, const double[::1] steps, int direction,
    bint direct, double log_delta, double b, tuple aliases, double dy, double log_error,
    double[:, ::1] table,
):
    """Fill the product of subsampled Gaussians at the nodes ``k·dy`` of a line.

    The rows of ``table`` are real and imaginary part, error and modulus. With ``direct`` no outcome
    is left out, and a step may decay as slowly as it likes. Returns how many nodes are
    set, whether all beyond are as good as nothing, and the logarithm of the product at the distance
    ``b`` with its error, at the two of ``aliases`` in the same way, and the mass that is left out.
    """
    cdef acct_environment saved
    cdef acct_line_nodes nodes
    cdef acct_sampled_orders orders
    cdef acct_sampled_line line = {
        "direction": direction, "direct": direct, "log_delta": log_delta, "b": b,
        "right_b": aliases[0], "left_b": aliases[1], "dy": dy, "log_error": log_error,
    }
    cdef int status, decays = 0
    set_table(&nodes, table)
    cdef acct_part *parts = gather(q, sigma, steps, 0)
    with nogil:
        acct_enter(&saved)
        status = acct_heterogeneous_line(
            parts, <int>q.shape[0], &line, &nodes, &orders, &decays
        )
        acct_leave(&saved)
    free(parts)
    check(status)
    logs = orders.log_mgf, orders.log_mgf_err, orders.right_log, orders.right_err
    return nodes.kept, decays != 0, (*logs, orders.left_log, orders.left_err, orders.outside)


def sampled_line_logs(
    const double[::1] q, const double[::1] sigma, const double[::1] steps, int direction,
    double log_delta, const double[::1] b, double[::1] value,
):
    """Fill about the logarithm of the product at the distances ``b``, to place lines."""
    cdef acct_environment saved
    cdef int status
    if value.shape[0] != b.shape[0] or b.shape[0] < 1:
        raise ValueError("the arrays handed to the native core do not fit each other")
    cdef acct_part *parts = gather(q, sigma, steps, 0)
    with nogil:
        acct_enter(&saved)
        status = acct_heterogeneous_line_logs(
            parts, <int>q.shape[0], direction, log_delta, b.shape[0], &b[0], &value[0]
        )
        acct_leave(&saved)
    free(parts)
    check(status)


def fill_line_nodes(
    const double[:, ::1] parts,
    const double[::1] losses,
    const double[::1] weights,
    double c,
    double step,
    int64_t last,
    double[:, ::1] nodes,
    double[:, ::1] table=None,
):
    """Fill the columns y, real and imaginary part, error and modulus; return (kept, pruned).

    A row of ``parts`` is kind, runs, spread, damping, distance, frequency, the first atom and how
    many there are, and the relative error of their weights. A ``table`` of the product of further
    parts (:func:`fill_sampled_line`) multiplies them.
    """
    cdef acct_environment saved
    cdef acct_line_nodes out, first
    cdef acct_line_nodes *more = NULL
    cdef acct_line_part *rows
    cdef Py_ssize_t j, n = parts.shape[0]
    cdef int status
    if parts.shape[1] != 9 or nodes.shape[0] != 5 or n < 1 or losses.shape[0] != weights.shape[0]:
        raise ValueError("the arrays handed to the native core do not fit each other")
    rows = <acct_line_part *>malloc(n * sizeof(acct_line_part))
    if rows == NULL:
        raise MemoryError("no memory for the parts of a line")
    for j in range(n):
        if not 0 <= parts[j, 6] <= parts[j, 6] + parts[j, 7] <= losses.shape[0]:
            free(rows)
            raise ValueError("the arrays handed to the native core do not fit each other")
        rows[j].kind = <int>parts[j, 0]
        rows[j].runs = parts[j, 1]
        rows[j].spread = parts[j, 2]
        rows[j].damping = parts[j, 3]
        rows[j].distance = parts[j, 4]
        rows[j].frequency = parts[j, 5]
        rows[j].period = 1.0 / parts[j, 5] if parts[j, 5] > 0.0 else 0.0
        rows[j].loss = &losses[0] + <int64_t>parts[j, 6]
        rows[j].weight = &weights[0] + <int64_t>parts[j, 6]
        rows[j].atoms = <int64_t>parts[j, 7]
        rows[j].weight_err = parts[j, 8]
    out.room = nodes.shape[1]
    out.y, out.re, out.im = &nodes[0, 0], &nodes[1, 0], &nodes[2, 0]
    out.err, out.most = &nodes[3, 0], &nodes[4, 0]
    if table is not None:
        set_table(&first, table)
        first.kept = first.room
        more = &first
    with nogil:
        acct_enter(&saved)
        status = acct_line_product(rows, n, c, step, last, more, &out)
        acct_leave(&saved)
    free(rows)
    check(status)
    return out.kept, out.pruned

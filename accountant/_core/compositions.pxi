# Compositions of different parts: a part of answers.pyx, which includes this file.

cdef extern from "loss.h" nogil:
    ctypedef struct acct_mixture:
        pass

    ctypedef struct acct_part:
        double q
        double sigma
        double steps
        const acct_mixture *mixture

    int acct_part_set_mixture(
        acct_part *part, acct_mixture *mixture, const acct_mixture_part *law, double steps
    )

cdef extern from "heterogeneous.h" nogil:
    int acct_heterogeneous_delta(
        const acct_part *parts, int count, double epsilon, int direction, acct_bounds *out
    )
    int acct_heterogeneous_epsilon(
        const acct_part *parts, int count, double delta, int direction, acct_bounds *out
    )
    int acct_heterogeneous_odometer(
        const acct_part *parts, int count, double delta, int direction, double wide,
        int first, int last, acct_bounds *out
    )

ctypedef int (*heterogeneous_function)(
    const acct_part *, int, double, int, acct_bounds *
) noexcept nogil


cdef acct_part *gather(
    const double[::1] q, const double[::1] sigma, const double[::1] steps, Py_ssize_t more
) except NULL:
    # the parts with one shift, and room for more
    cdef Py_ssize_t i, n = q.shape[0]
    if sigma.shape[0] != n or steps.shape[0] != n or not 1 <= n + more <= 2**30:
        raise ValueError("the flat arrays handed to the native core differ in length")
    cdef acct_part *parts = <acct_part *>malloc((n + more) * sizeof(acct_part))
    if parts == NULL:
        raise MemoryError("no memory for the parts of a composition")
    for i in range(n):
        parts[i].q = q[i]
        parts[i].sigma = sigma[i]
        parts[i].steps = steps[i]
        parts[i].mixture = NULL
    return parts


cdef int set_mixture(acct_part *part, acct_mixture *mixture, object given) except -1:
    cdef acct_environment saved
    cdef acct_mixture_part law
    cdef const double[::1] shifts = given[1], weights = given[2]
    cdef double steps = given[3]
    cdef int status
    set_law(&law, given[0], shifts, weights, given[4], given[5])
    with nogil:
        acct_enter(&saved)
        status = acct_part_set_mixture(part, mixture, &law, steps)
        acct_leave(&saved)
    check(status)
    return 0


cdef tuple heterogeneous_bounds(
    heterogeneous_function function,
    const double[::1] q, const double[::1] sigma, const double[::1] steps,
    double given, int direction, tuple mixtures,
):
    cdef acct_environment saved
    cdef acct_bounds out = {"lower": 0.0, "upper": 0.0}
    cdef Py_ssize_t i, first = q.shape[0], more = len(mixtures)
    cdef int status, n = <int>(first + more)
    cdef acct_mixture *laws = NULL
    cdef acct_part *parts = gather(q, sigma, steps, more)
    try:
        if more > 0:
            laws = <acct_mixture *>malloc(more * sizeof(acct_mixture))
            if laws == NULL:
                raise MemoryError("no memory for the shifts of a composition")
        for i in range(more):
            set_mixture(&parts[first + i], &laws[i], mixtures[i])
        with nogil:
            acct_enter(&saved)
            status = function(parts, n, given, direction, &out)
            acct_leave(&saved)
    finally:
        free(laws)
        free(parts)
    check(of_bracket(status, out.lower, out.upper))
    return out.lower, out.upper


def heterogeneous_delta_bounds(
    const double[::1] q, const double[::1] sigma, const double[::1] steps, double epsilon,
    int direction, tuple mixtures=(),
):
    """Bracket δ(epsilon) of a composition of different parts: ``(lower, upper)``.

    ``mixtures`` are steps with a random shift: tuples (σ, shifts, weights, steps, silent,
    weight_error) as :func:`mixture_delta_bounds` takes them.
    """
    return heterogeneous_bounds(
        acct_heterogeneous_delta, q, sigma, steps, epsilon, direction, mixtures
    )


def heterogeneous_epsilon_bounds(
    const double[::1] q, const double[::1] sigma, const double[::1] steps, double delta,
    int direction, tuple mixtures=(),
):
    """Bracket ε(delta) of the same composition: ``(lower, upper)``."""
    return heterogeneous_bounds(
        acct_heterogeneous_epsilon, q, sigma, steps, delta, direction, mixtures
    )


def fill_heterogeneous_odometer(
    const double[::1] q, const double[::1] sigma, const double[::1] steps, double delta,
    int direction, double[::1] lower, double[::1] upper, double wide=0.0, int first=0,
    object last=None,
):
    """Fill ``lower`` and ``upper`` with the bracket of ε(delta) after each part; one direction.

    Lines are made only so exact that δ is known to about ``wide`` of itself, and only for the parts
    ``first:last``, which is quicker.
    """
    cdef acct_environment saved
    cdef Py_ssize_t i
    cdef int status, n = <int>q.shape[0], end = n if last is None else last
    if lower.shape[0] != n or upper.shape[0] != n:
        raise ValueError("the flat arrays handed to the native core differ in length")
    cdef acct_bounds *out = <acct_bounds *>malloc(n * sizeof(acct_bounds))
    if out == NULL:
        raise MemoryError("no memory for the brackets of a composition")
    cdef acct_part *parts
    try:
        parts = gather(q, sigma, steps, 0)
        with nogil:
            acct_enter(&saved)
            status = acct_heterogeneous_odometer(
                parts, n, delta, direction, wide, first, end, out
            )
            acct_leave(&saved)
        free(parts)
        check(status)
        for i in range(n):
            check(of_bracket(status, out[i].lower, out[i].upper))
            lower[i] = out[i].lower
            upper[i] = out[i].upper
    finally:
        free(out)


cdef extern from "exchange.h" nogil:
    int acct_exchange_delta(
        double mu, double q, double steps, double epsilon, acct_bounds *out
    )
    int acct_exchange_epsilon(
        double mu, double q, double steps, double delta, acct_bounds *out
    )
    int acct_exchange_renyi(double mu, double q, double order, acct_bounds *out)

ctypedef int (*exchange_function)(
    double, double, double, double, acct_bounds *
) noexcept nogil


cdef int exchange_renyi(
    double mu, double q, double order, double same_order, acct_bounds *out
) noexcept nogil:
    return acct_exchange_renyi(mu, q, order, out)


cdef tuple exchange_bracket(
    exchange_function function, double mu, double q, double steps, double given
):
    cdef acct_environment saved
    cdef acct_bounds out
    cdef int status
    with nogil:
        acct_enter(&saved)
        status = function(mu, q, steps, given, &out)
        acct_leave(&saved)
        status = of_bracket(status, out.lower, out.upper)
    check(status)
    return out.lower, out.upper


def exchange_delta_bounds(double distance, double q, double steps, double epsilon):
    """Return (lower, upper) for delta of equal Poisson-sampled steps under replace-one."""
    return exchange_bracket(acct_exchange_delta, distance, q, steps, epsilon)


def exchange_epsilon_bounds(double distance, double q, double steps, double delta):
    """Return (lower, upper) for epsilon of equal Poisson-sampled steps under replace-one."""
    return exchange_bracket(acct_exchange_epsilon, distance, q, steps, delta)


def exchange_renyi_bounds(double distance, double q, double order):
    """Return (lower, upper) for the divergence of one Poisson-sampled step under replace-one."""
    return exchange_bracket(exchange_renyi, distance, q, order, order)

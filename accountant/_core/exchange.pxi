# Poisson samples under replace-one: a part of answers.pyx, which includes this file.

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
    cdef acct_environment saved
    cdef acct_bounds out
    cdef int status
    with nogil:
        acct_enter(&saved)
        status = acct_exchange_renyi(distance, q, order, &out)
        acct_leave(&saved)
        status = of_bracket(status, out.lower, out.upper)
    check(status)
    return out.lower, out.upper

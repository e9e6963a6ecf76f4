# Searches and calibration: a part of answers.pyx, which includes this file.

cdef extern from "search.h" nogil:
    enum acct_grid:
        ACCT_COUNTS
        ACCT_DOUBLES

    ctypedef struct acct_search:
        int (*cost)(void *, double, double *) noexcept
        void *context
        double target
        acct_grid grid

    enum:
        ACCT_NO_RANK

    int acct_boundary(
        const acct_search *search, double guess, double power, int64_t cheap, int64_t dear,
        int64_t *rank
    )
    int acct_crossing(
        const acct_search *search, double guess, int64_t low, int64_t high, int falls,
        double precision, int64_t *rank
    )

cdef extern from "calibration.h" nogil:
    ctypedef int (*acct_epsilon_upper)(
        void *, double, double, double, double, int, double *
    ) noexcept

    ctypedef struct acct_target:
        double epsilon
        double delta
        double records
        acct_epsilon_upper upper
        void *context

    int acct_calibrate_sigma(
        const acct_target *target, double q, double steps, double *sigma
    )
    int acct_calibrate_steps(
        const acct_target *target, double q, double sigma, double *steps
    )
    int acct_calibrate_q(
        const acct_target *target, double sigma, double steps, double *q
    )

ctypedef int (*calibration_function)(
    const acct_target *, double, double, double *
) noexcept nogil


# A function of the caller's travels in a list, with what it raised behind it.


cdef int checked(int status, list caller) except -1:
    if caller[1] is not None:
        raise caller[1]
    return check(status)


cdef int cost_of(void *context, double value, double *cost) noexcept with gil:
    cdef list caller = <list>context
    try:
        cost[0] = caller[0](value)
    except BaseException as error:
        caller[1] = error
        return ACCT_ESTOPPED
    return ACCT_OK


def boundary(
    object cost, double target, bint counts, double guess, int64_t cheap, int64_t dear,
    double power=0.0,
):
    """Return the last rank that meets the target between two ends, or None.

    ``power`` is about the logarithmic slope at the guess of a cost that hardly jitters.
    """
    cdef acct_environment saved
    cdef list caller = [cost, None]
    cdef acct_search asked = acct_search(
        cost_of, <void *>caller, target, ACCT_COUNTS if counts else ACCT_DOUBLES
    )
    cdef int64_t rank = ACCT_NO_RANK
    cdef int status
    with nogil:
        acct_enter(&saved)
        status = acct_boundary(&asked, guess, power, cheap, dear, &rank)
        acct_leave(&saved)
    checked(status, caller)
    return None if rank == ACCT_NO_RANK else rank


def crossing(
    object cost, double target, bint counts, double guess, int64_t low, int64_t high,
    bint falls, double precision,
):
    """Return a rank that meets the target beside one that does not, or None."""
    cdef acct_environment saved
    cdef list caller = [cost, None]
    cdef acct_search asked = acct_search(
        cost_of, <void *>caller, target, ACCT_COUNTS if counts else ACCT_DOUBLES
    )
    cdef int64_t rank = ACCT_NO_RANK
    cdef int status
    with nogil:
        acct_enter(&saved)
        status = acct_crossing(&asked, guess, low, high, falls, precision, &rank)
        acct_leave(&saved)
    checked(status, caller)
    return None if rank == ACCT_NO_RANK else rank


cdef int upper_of(
    void *context, double q, double sigma, double steps, double delta, int direction,
    double *epsilon,
) noexcept with gil:
    cdef list caller = <list>context
    from accountant.errors import PrecisionError

    try:
        epsilon[0] = caller[0](q, sigma, steps, delta, direction)
    except PrecisionError:
        return ACCT_EPRECISION
    except BaseException as error:
        caller[1] = error
        return ACCT_ESTOPPED
    return ACCT_OK


cdef object calibrated(
    calibration_function function, double epsilon, double delta, double records, object upper,
    double first, double second,
):
    cdef acct_environment saved
    cdef list caller = [upper, None]
    cdef acct_target target = acct_target(epsilon, delta, records, NULL, NULL)
    cdef double found = 0.0
    cdef int status
    if upper is not None:
        target.upper = upper_of
        target.context = <void *>caller
    with nogil:
        acct_enter(&saved)
        status = function(&target, first, second, &found)
        acct_leave(&saved)
    if status == ACCT_EUNBOUNDED:
        return None
    checked(status, caller)
    return found


def calibrate_sigma(
    double epsilon, double delta, double q, double steps, double records=1.0, object upper=None
):
    """Return the least noise multiplier that meets the target, or None where every one does.

    ``upper(q, sigma, steps, delta, direction)`` is an upper end of ε; None is that of one record.
    PrecisionError is taken for an infinite ε.
    """
    return calibrated(acct_calibrate_sigma, epsilon, delta, records, upper, q, steps)


def calibrate_steps(
    double epsilon, double delta, double q, double sigma, double records=1.0, object upper=None
):
    """Return the largest count that meets the target, as a float, or None where every one does."""
    return calibrated(acct_calibrate_steps, epsilon, delta, records, upper, q, sigma)


def calibrate_q(
    double epsilon, double delta, double sigma, double steps, double records=1.0, object upper=None
):
    """Return the largest sampling probability that meets the target; 0.0 where none does."""
    return calibrated(acct_calibrate_q, epsilon, delta, records, upper, sigma, steps)

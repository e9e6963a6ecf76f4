# What every entry of the native core shares: the floating-point environment it runs in, and the one
# place where a status code becomes a Python exception.
#
# `acct_enter` and `acct_leave` stand around the numerics of every entry (environment.h).
#
# Scalar calls hand their code to `check`.  Array calls write one code per element, run to the end,
# and hand the codes to `check_each`, so that the message can say how many elements failed.

cdef extern from "status.h" nogil:
    enum acct_status:
        ACCT_OK
        ACCT_EDOMAIN
        ACCT_ENOMEM
        ACCT_EPRECISION
        ACCT_EUNBOUNDED
        ACCT_ESTOPPED

cdef extern from "environment.h" nogil:
    ctypedef struct acct_environment:
        int changed

    void acct_enter(acct_environment *saved)
    void acct_leave(const acct_environment *saved)


cdef inline int fail(int status, str where) except -1:
    from accountant.errors import DomainError, PrecisionError

    if status == ACCT_ENOMEM:
        raise MemoryError(f"no memory for the workspace of the native core{where}")
    if status == ACCT_EPRECISION:
        raise PrecisionError(
            f"no certified answer was reached{where}; no number is returned rather than one that"
            " might be too small. Please report these arguments"
        )
    if status == ACCT_EDOMAIN:
        raise DomainError(f"the native core refused an argument as outside its domain{where}")
    raise SystemError(f"the native core returned the unknown status {status}{where}")


cdef inline int of_bracket(int status, double lower, double upper) noexcept nogil:
    # The last line of defence: a crossed bracket, or a NaN, is a defect of the core. It never
    # leaves as an answer.
    return ACCT_EPRECISION if status == ACCT_OK and not (lower <= upper) else status


cdef inline int check(int status) except -1:
    if status == ACCT_OK:
        return 0
    return fail(status, "")


cdef inline int check_each(const int[::1] statuses) except -1:
    cdef Py_ssize_t i, failures = 0, first = -1
    for i in range(statuses.shape[0]):
        if statuses[i] != ACCT_OK:
            failures += 1
            if first < 0:
                first = i
    if failures == 0:
        return 0
    return fail(
        statuses[first],
        f" for {failures} of {statuses.shape[0]} elements, the first at flat index {first}",
    )

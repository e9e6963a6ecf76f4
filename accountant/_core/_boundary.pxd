# What every entry of the native core shares: the floating-point environment it runs in, and the one
# place where a status code becomes a Python exception.
#
# `acct_enter` and `acct_leave` stand around the numerics of every entry (environment.h).
#
# Calls hand their code to `check`. Calls that answer many questions write one code an element and
# run to the end; `check_statuses` of answers.pyx says how many elements failed. Nothing here takes
# a memoryview: Cython would write 20,000 lines of C for it into every module.

cdef extern from "bounds.h" nogil:
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


cdef inline int same(Py_ssize_t n, Py_ssize_t m) except -1:
    if n != m:
        raise ValueError("the arrays handed to the native core do not fit each other")
    return 0

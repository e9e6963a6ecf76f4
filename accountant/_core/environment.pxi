# The floating-point environment of the calling thread, as the certificates assume it.
#
# Every other entry of the native core enters and leaves by itself; these two are for what Python
# and NumPy compute between the calls.
# A part of tools.pyx, which includes this file.

# What one thread had is of no use to another process.
@cython.auto_pickle(False)
cdef class Environment:
    """What :func:`enter` changed."""

    cdef acct_environment saved


def enter():
    """Round to nearest, with subnormal numbers, from here on; return what was before.

    None where there was nothing to change.
    """
    cdef acct_environment saved
    acct_enter(&saved)
    if not saved.changed:
        return None
    cdef Environment before = Environment.__new__(Environment)
    before.saved = saved
    return before


def leave(Environment before not None):
    """Go back to what :func:`enter` returned."""
    acct_leave(&before.saved)

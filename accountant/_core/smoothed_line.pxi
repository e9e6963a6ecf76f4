# The product of transforms on a smoothed line: a part of answers.pyx, which includes this file.

cdef extern from "smoothed_line.h" nogil:
    ctypedef struct acct_line_part:
        int kind
        double runs, spread, damping, distance, frequency
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
        acct_line_nodes *nodes
    )


def fill_line_nodes(
    const double[:, ::1] parts,
    const double[::1] losses,
    const double[::1] weights,
    double c,
    double step,
    int64_t last,
    double[:, ::1] nodes,
):
    """Fill the columns y, real and imaginary part, error and modulus; return (kept, pruned).

    A row of ``parts`` is kind, runs, spread, damping, distance, frequency, the first atom and how many
    there are, and the relative error of their weights.
    """
    cdef acct_environment saved
    cdef acct_line_nodes out
    cdef acct_line_part *rows
    cdef Py_ssize_t j, n = parts.shape[0]
    cdef int status
    if parts.shape[1] != 9 or nodes.shape[0] != 5 or losses.shape[0] != weights.shape[0] or n < 1:
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
        rows[j].loss = &losses[0] + <int64_t>parts[j, 6]
        rows[j].weight = &weights[0] + <int64_t>parts[j, 6]
        rows[j].atoms = <int64_t>parts[j, 7]
        rows[j].weight_err = parts[j, 8]
    out.room = nodes.shape[1]
    out.y, out.re, out.im = &nodes[0, 0], &nodes[1, 0], &nodes[2, 0]
    out.err, out.most = &nodes[3, 0], &nodes[4, 0]
    with nogil:
        acct_enter(&saved)
        status = acct_line_product(rows, n, c, step, last, &out)
        acct_leave(&saved)
    free(rows)
    check(status)
    return out.kept, out.pruned

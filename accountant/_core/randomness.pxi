# The ChaCha20 stream and the integer noises made from it: the C entry points, one to one.
# A part of training.pyx, which includes this file.

cdef extern from "chacha.h" nogil:
    void acct_chacha20(const uint32_t key[8], uint64_t counter, uint8_t *out, size_t blocks)

cdef extern from "rounded_normal.h" nogil:
    size_t acct_rounded_normal(
        const uint64_t *bits, size_t n, double scale, double *out, size_t *undecided
    )
    double acct_normal_tail_quantile(double p)

cdef extern from "discrete_gaussian.h" nogil:
    struct acct_words:
        const uint64_t *words
        size_t count
        size_t used

    size_t acct_discrete_gaussian(acct_words *source, uint64_t scale, size_t n, int64_t *out)


def chacha20(const uint32_t[::1] key, uint64_t counter, uint8_t[::1] out):
    """Fill ``out``, whole blocks of 64 bytes, with the keystream from block ``counter`` on."""
    cdef acct_environment saved
    if key.shape[0] != 8 or out.shape[0] % 64:
        raise ValueError("a key has eight words, and the keystream comes in blocks of 64 bytes")
    if not out.shape[0]:
        return
    with nogil:
        acct_enter(&saved)
        acct_chacha20(&key[0], counter, &out[0], <size_t>out.shape[0] // 64)
        acct_leave(&saved)


def rounded_normal(
    const uint64_t[::1] bits, double scale, double[::1] out, size_t[::1] undecided
):
    """Fill ``out`` with rounded normals; return how many indices went to ``undecided``."""
    cdef acct_environment saved
    cdef size_t count
    same(bits.shape[0], out.shape[0])
    same(bits.shape[0], undecided.shape[0])
    if not bits.shape[0]:
        return 0
    with nogil:
        acct_enter(&saved)
        count = acct_rounded_normal(
            &bits[0], <size_t>bits.shape[0], scale, &out[0], &undecided[0]
        )
        acct_leave(&saved)
    return count


def normal_tail_quantile(double p):
    """Return z with tail probability P{Z > z} = p, 0 < p < 1/2, to about 2^-49 (1 + z)."""
    cdef acct_environment saved
    cdef double z
    acct_enter(&saved)
    z = acct_normal_tail_quantile(p)
    acct_leave(&saved)
    return z


def discrete_gaussian(const uint64_t[::1] words, uint64_t scale, int64_t[::1] out):
    """Fill a front part of ``out``; return ``(draws made, words used)``."""
    cdef acct_environment saved
    cdef size_t made
    cdef acct_words source
    if not out.shape[0] or not words.shape[0]:
        return 0, 0
    source.words = &words[0]
    source.count = <size_t>words.shape[0]
    source.used = 0
    with nogil:
        acct_enter(&saved)
        made = acct_discrete_gaussian(&source, scale, <size_t>out.shape[0], &out[0])
        acct_leave(&saved)
    return made, source.used

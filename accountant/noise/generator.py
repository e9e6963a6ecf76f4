"""A cryptographically secure generator for sampling and noise.

The stream is ChaCha20, keyed from the operating system's entropy. :meth:`SecureGenerator.erase`
replaces the key by a part of the stream, so that a state saved afterwards does not reveal the
numbers drawn before.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Context, Decimal
from fractions import Fraction
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from accountant import checks
from accountant._core import training
from accountant.errors import ArgumentTypeError, DomainError

CHUNK = 2**17  # words drawn at a time for Bernoulli trials: 1 MiB
PIECE = 2**14  # words turned into noise at a time: they stay in the cache


# Threads that draw noise: as many as the matrix library has, at most four.
_told = map(os.environ.get, ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"))
_given = next((text for text in _told if text and text.isdigit()), os.cpu_count() or 1)
THREADS = max(1, min(4, int(_given)))

# The number of forks in the ancestry of this process. Together with the process number, which may
# be reused, it identifies the process that owns a key.
_forks = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)
LARGEST_SCALE = 2.0**40
GRID_SCALE = checks.Argument(
    "scale",
    "a number in (0, 2**40)",
    lambda x: (x > 0.0) & (x < LARGEST_SCALE),
    "Choose a coarser grid",
)
LARGEST_DISCRETE_SCALE = 2**20


# Thirty digits more than the error claimed: the series below has a few hundred terms.
CONTEXT = Context(prec=150, Emin=-(10**6), Emax=10**6)
ERROR = Fraction(1, 10**100)
TWO_PI = Decimal(
    "6.28318530717958647692528676655900576839433879875021164194988918461563281257241799725606965"
    "068423413596429617302656461329418768921910116446345"
)


def tail_probability(x: Fraction) -> Fraction:
    """Return P{Z > x} for 0 <= x <= 40, with absolute error at most 1e-100.

    Notes
    -----
    *Algorithm.* 1/2 - φ(x) Σ x^{2k+1} / (1·3···(2k+1)), a sum of positive terms.
    """
    at = CONTEXT.divide(Decimal(x.numerator), Decimal(x.denominator))
    square = CONTEXT.multiply(at, at)
    term = total = at
    k = 1
    while term > Decimal("1e-130"):
        k += 2
        term = CONTEXT.divide(CONTEXT.multiply(term, square), Decimal(k))
        total = CONTEXT.add(total, term)
    density = CONTEXT.divide(CONTEXT.exp(CONTEXT.divide(square, Decimal(-2))), CONTEXT.sqrt(TWO_PI))
    return Fraction(1, 2) - Fraction(CONTEXT.multiply(density, total))


def nearest_integer(word: int, scale: float, more: Callable[[], int]) -> float:
    """Return the integer nearest to ``scale · Z`` for the Z that ``word`` begins.

    Parameters
    ----------
    word : int
        64 bits: the lowest is the sign, the other 63 the leading bits of the tail probability of
        ``|Z|``, in (0, 1/2).
    scale : float
        As in :meth:`accountant.noise.SecureGenerator.rounded_normal`.
    more : callable
        Returns 64 further random bits.
    """
    bits, length = word >> 1, 64

    def extend() -> None:
        nonlocal bits, length
        bits, length = (bits << 64) | more(), length + 64

    def inside(boundary: Fraction) -> bool:
        """Tell whether |Z| < boundary, that is, the tail probability is above the boundary's."""
        threshold = tail_probability(boundary)
        while True:
            if Fraction(bits, 2**length) > threshold + ERROR:
                return True
            if Fraction(bits + 1, 2**length) < threshold - ERROR:
                return False
            extend()

    extend()
    while bits == 0:
        extend()
    exact = Fraction(scale)
    half = Fraction(1, 2)
    start = training.normal_tail_quantile(float(Fraction(2 * bits + 1, 2 ** (length + 1))))
    j = round(start * scale)
    while not inside((j + half) / exact):
        j += 1
    while j > 0 and inside((j - half) / exact):
        j -= 1
    return float(-j if word & 1 else j)


class SecureGenerator:
    """Random words, Poisson samples and integer noise from one ChaCha20 stream.

    Parameters
    ----------
    seed : int, optional
        For tests only: the same seed gives the same numbers, so nothing drawn from a seeded
        generator is private, and results made with one say so. None keys the generator from the
        operating system.

    Attributes
    ----------
    seeded : bool
        Whether somebody may know the drawn numbers: a seed or a key was given, or the class is a
        subclass, which may draw anything. Results of such a generator are not private.

    Notes
    -----
    The time of rejection loops and of rare undecided roundings depends on the random numbers;
    the guarantee does not cover timing. A generator cannot be copied or pickled, because two
    copies would release the same noise twice. After a fork the child draws a fresh key. Several
    threads may draw from one generator; no two of them get the same word.

    Examples
    --------
    >>> generator = SecureGenerator()
    >>> generator.words(2).dtype
    dtype('uint64')
    """

    # No method of one instance can be replaced by another.
    __slots__ = ("__weakref__", "_block", "_key", "_lock", "_process", "_spare", "_why")

    _key: NDArray[np.uint32]
    _block: int
    _spare: NDArray[np.uint64]
    _process: tuple[int, int]
    _lock: threading.RLock
    _why: str

    def __init__(self, seed: int | None = None) -> None:
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, (int, np.integer))):
            raise ArgumentTypeError(
                f"seed must be None or an integer; got {seed!r}. Leave it out for secure noise"
            )
        self._why = "" if seed is None else "not private: seeded, so the noise can be recomputed"
        if type(self) is not SecureGenerator:
            self._why = "not private: a subclass of SecureGenerator may draw anything"
        key = (
            secrets.token_bytes(32)
            if seed is None
            else hashlib.sha256(f"accountant: not private: {int(seed)}".encode()).digest()
        )
        self._lock = threading.RLock()
        self._set_key(key)

    def words(self, n: int) -> NDArray[np.uint64]:
        """Return ``n`` uniform 64-bit words."""
        self._settle_process()
        with self._lock:
            if n > self._spare.size:
                missing = n - self._spare.size
                fresh = np.empty(-(-missing // 8) * 64, np.uint8)
                training.chacha20(self._key, self._block, fresh)
                self._block += fresh.size // 64
                drawn = fresh.view("<u8").astype(np.uint64, copy=False)
                if self._spare.size:
                    drawn = np.concatenate([self._spare, drawn])
            else:
                drawn = self._spare
            self._spare = drawn[n:]
            return drawn[:n]

    def subset(self, n: int, probability: float) -> NDArray[np.intp]:
        """Return the sorted indices of a Poisson sample: each of ``n`` is in with ``probability``.

        Notes
        -----
        *Guarantee.* Each index is included independently with probability
        ``floor(probability 2⁶⁴) / 2⁶⁴``, never above ``probability``.
        """
        if probability >= 1.0:
            return np.arange(n, dtype=np.intp)
        threshold = np.uint64(int(Fraction(probability) * 2**64))
        parts = [
            start + np.flatnonzero(self.words(min(CHUNK, n - start)) < threshold)
            for start in range(0, n, CHUNK)
        ]
        return np.concatenate(parts) if parts else np.empty(0, np.intp)

    def rounded_normal(self, n: int, scale: float) -> NDArray[np.float64]:
        """Return ``n`` integers (as float64), each ``scale · Z`` rounded, Z standard normal.

        Notes
        -----
        *Guarantee.* Exact in law: a word that does not decide the integer is extended by further
        random bits and compared with the normal tail to 100 digits (docs/theorems_training.md,
        Theorem T6).
        """
        checks.number(GRID_SCALE, scale)
        self._settle_process()
        out = np.empty(n)
        starts = range(0, n, PIECE)
        with self._lock:
            # The cipher counts blocks, so pieces can be made in any order, by several threads.
            key, first = self._key, self._block
            self._block += -(-n // 8)

        def fill(start: int) -> list[tuple[int, int]]:
            piece = out[start : start + PIECE]
            stream = np.empty(-(-piece.size // 8) * 64, np.uint8)
            training.chacha20(key, first + start // 8, stream)
            words = stream.view("<u8").astype(np.uint64, copy=False)[: piece.size]
            undecided = np.empty(piece.size, np.uintp)
            count = training.rounded_normal(words, scale, piece, undecided)
            return [(start + i, int(words[i])) for i in undecided[:count].tolist()]

        if n > 4 * PIECE and THREADS > 1:
            with ThreadPoolExecutor(THREADS) as pool:
                open_ends = list(pool.map(fill, starts))
        else:
            open_ends = [fill(start) for start in starts]
        for i, word in (pair for pairs in open_ends for pair in pairs):
            out[i] = nearest_integer(word, scale, lambda: int(self.words(1)[0]))
        return out

    def discrete_gaussian(self, n: int, scale: int) -> NDArray[np.int64]:
        """Return ``n`` integers j with probabilities proportional to ``exp(-j² / (2 scale²))``.

        Notes
        -----
        *Guarantee.* Exact: integer arithmetic on uniform words only (Theorem T7).
        """
        checks.integer("scale", scale, 1, LARGEST_DISCRETE_SCALE, advice="Round it up")
        out = np.empty(n, np.int64)
        done = 0
        pending = np.empty(0, np.uint64)
        while done < n:
            fresh = self.words(16 * (n - done) + 64)
            pending = np.concatenate([pending, fresh])
            made, used = training.discrete_gaussian(pending, int(scale), out[done:])
            done += made
            pending = pending[used:]
        return out

    def erase(self) -> None:
        """Replace the key by fresh output: earlier numbers can no longer be recomputed."""
        with self._lock:
            self._set_key(self.words(4).astype("<u8").tobytes())

    def state(self) -> bytes:
        """Return the key. It reveals all later numbers and no earlier ones."""
        self._settle_process()
        with self._lock:
            if self._block:
                self.erase()
            return self._key.astype("<u4").tobytes()

    @classmethod
    def from_state(cls, key: bytes, *, seeded: bool = True) -> SecureGenerator:
        """Return the generator that continues from :meth:`state`.

        It counts as seeded for any value of ``seeded``: the caller who gives a key knows the drawn
        numbers, and nothing shows that the key was random. A trainer that resumes from a checkpoint
        reads the key from the checkpoint itself.
        """
        generator = cls()
        generator._why = (
            "not private: the generator's key was given, so the noise can be recomputed"
        )
        generator._set_key(key)
        return generator

    def _continued(self, key: bytes) -> SecureGenerator:
        """Return the generator of an earlier process that this process continues.

        For checkpoints, which are as secret as the data. It is as private as this generator.
        """
        generator = SecureGenerator.from_state(key)
        generator._why = self._why
        return generator

    def _branch(self) -> SecureGenerator:
        """Return a generator with a stream of its own, as private as this one.

        For who saves states: a saved key that is gone on with draws nothing that this one draws.
        """
        generator = self._continued(self.words(4).astype("<u8").tobytes())
        self.erase()
        return generator

    @property
    def seeded(self) -> bool:
        """Whether somebody may know the drawn numbers."""
        return bool(self._why) or type(self) is not SecureGenerator

    @property
    def why_not_private(self) -> str:
        """The reason, in words; empty for a generator keyed by the operating system."""
        return self._why

    def _set_key(self, key: bytes) -> None:
        if len(key) != 32:
            raise DomainError(f"a generator's key has 32 bytes; got {len(key)}")
        self._key = np.frombuffer(key, "<u4").astype(np.uint32)
        self._block = 0
        self._spare = np.empty(0, np.uint64)
        self._process = (os.getpid(), _forks)

    def _settle_process(self) -> None:
        """Draw a fresh key in a forked child, whose stream would be its parent's."""
        if self._process == (os.getpid(), _forks):
            return
        # Another thread of the parent may have held the lock, and the child would never release it.
        self._lock = threading.RLock()
        if self.seeded:
            self._process = (os.getpid(), _forks)
        else:
            self._set_key(secrets.token_bytes(32))

    def __init_subclass__(cls, **given: object) -> None:
        """Prevent a subclass from declaring itself private."""
        super().__init_subclass__(**given)
        for name in ("seeded", "why_not_private", "_continued", "_why"):
            if name in cls.__dict__:
                raise TypeError(f"a subclass of SecureGenerator cannot define {name}")

    def __reduce__(self) -> NoReturn:
        raise TypeError("a SecureGenerator cannot be copied: a copy would repeat its noise")

    def __repr__(self) -> str:
        return "SecureGenerator(seed=…)" if self.seeded else "SecureGenerator()"

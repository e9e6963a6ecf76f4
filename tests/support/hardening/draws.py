"""From bytes to arguments, and what an answer must be: a wrong one raises Finding.

A call may raise an AccountantError. Anything else it raises, a NaN, a bracket upside down or a
number outside its range is a finding.
"""

import math
import struct

import numpy as np

import accountant as ac
from accountant.bounds import Bounds


class Finding(Exception):  # noqa: N818 (what is found, not what goes wrong)
    """What no input may bring about."""


CORNERS = (
    0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 1e-5, 1e-9, 1e-300, 5e-324, 2.2250738585072014e-308, 1e300,
    1.7976931348623157e308, 2.0**53, 2.0**53 + 2.0, math.inf, -math.inf, math.nan,
    1.0 - 2.0**-53, 1.0 + 2.0**-52, 2.0**-53, 700.0, 745.2, 1e15, 0.1, 4.0, 100.0,
)  # fmt: skip
INTEGERS = (0, 1, 2, 3, 10, 1000, 10**6, 10**12, 2**53, 2**53 + 1, -1, 10**400, 64)
JUNK = (
    None, True, False, "1.0", b"x", 1j, [], {}, [1.0, True], [[1.0], [1.0, 2.0]], np.array(["a"]),
    np.float32(0.1), np.int8(3), np.bool_(True), np.array([]), np.array([[0.5, 1.0]]), object, ...,
    np.longdouble("0.1"), np.float16(2.0), np.array([None]), (1, 2), range(3), float,
    np.datetime64(3, "s"),
)  # fmt: skip


class Draw:
    """Numbers, words and choices from bytes; zeros once they are used up."""

    def __init__(self, data):
        self._data = data
        self._at = 0

    @property
    def used(self):
        """What has been read, in hexadecimal."""
        return self._data[: self._at].hex()

    def take(self, size):
        part = self._data[self._at : self._at + size]
        self._at += size
        return part.ljust(size, b"\0")

    def below(self, n):
        return int.from_bytes(self.take(2 if n <= 1 << 16 else 4), "little") % n

    def choice(self, items):
        return items[self.below(len(items))]

    def unit(self):
        return int.from_bytes(self.take(4), "little") / 2**32

    def log_uniform(self, low, high):
        return math.exp(math.log(low) + self.unit() * (math.log(high) - math.log(low)))

    def wild(self):
        """Anything at all."""
        kind = self.below(4)
        if kind == 0:
            return self.choice(CORNERS)
        if kind == 1:
            return self.choice(INTEGERS)
        if kind == 2:
            return struct.unpack("<d", self.take(8))[0]
        return self.choice(JUNK)

    def sane(self, low, high, odds=12):
        """Mostly a number that makes sense."""
        if self.below(odds) == 0:
            return self.wild()
        return self.log_uniform(low, high)

    def probability(self):
        return self.sane(1e-9, 1.0)

    def delta(self):
        return self.sane(1e-30, 0.99)

    def loss(self):
        return self.sane(1e-6, 1e3)

    def noise(self):
        return self.sane(0.2, 100.0)

    def count(self, most=10**6):
        return self.wild() if self.below(12) == 0 else round(self.log_uniform(1, most))


def judged(call, *arguments, most=math.inf, **named):
    """Call, and look at what comes back."""
    try:
        result = call(*arguments, **named)
    except ac.AccountantError as error:
        # The core's own "no certified answer" is a refusal too, but one it asks to be told of.
        if "no certified answer" in str(error) or not str(error):
            raise Finding(f"{call.__name__}{arguments}{named}: {error!r}") from error
        return None
    except Exception as error:
        raise Finding(f"{call.__name__}{arguments}{named} raised {error!r}") from error
    if isinstance(result, Bounds):
        ends = [result.lower, result.upper]
        good = np.all(np.asarray(ends[0]) <= np.asarray(ends[1]))
    else:
        ends, good = [result], True
    if isinstance(result, (Bounds, float, np.ndarray)):
        values = [np.asarray(end, dtype=float) for end in ends]
        good = good and all(np.all(v >= 0.0) and np.all(v <= most) for v in values)
        if not good:
            raise Finding(f"{call.__name__}{arguments}{named} returned {result!r}")
    return result

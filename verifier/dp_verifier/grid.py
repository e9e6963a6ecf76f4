"""Compositions on equidistant losses, in integers that are rounded up (Theorem K5)."""

from functools import reduce
from itertools import pairwise
from math import floor

from flint import arb, fmpz, fmpz_poly

from dp_verifier.document import need
from dp_verifier.laws import ball

MOST_WORK = 10**9  # knots times products times bits


class Knots:
    """Masses are whole multiples of 2^-bits, at the losses k*spacing, low <= k <= high."""

    def __init__(self, given, remove):
        self.low, self.high, self.bits, self.remove = given.low, given.high, given.bits, remove
        self.spacing = spacing = ball(given.spacing)
        self.x = [(k * spacing).exp() for k in range(self.low, self.high + 1)]
        self.falls = [self._up((-k * spacing).exp()) for k in range(1, len(self.x))]

    def _up(self, mass):
        """Return a mass in multiples of 2^-bits, rounded up (K5, c)."""
        return max((mass * arb(2) ** self.bits).upper().ceil().unique_fmpz(), fmpz(0))

    def law(self, law):
        """Return the masses at the knots, and that at infinity, of a law that dominates."""
        masses, infinite = self._split(law) if hasattr(law, "outcomes") else self._chords(law)
        return [self._up(mass) for mass in masses], self._up(infinite)

    def _chords(self, law):
        """Return the law whose profile joins (0, 1), the points and the constant above (K5, a)."""
        need(law.rate, "a grid takes noise with one shift that is listed")
        heights = [self._height(law, x) for x in self.x]
        points = pairwise(zip([0, *self.x], [1, *heights], strict=True))
        slopes = [(v - u) / (y - x) for (x, u), (y, v) in points]
        rises = pairwise([*slopes, 0])
        return [x * (v - u) for x, (u, v) in zip(self.x, rises, strict=True)], heights[-1]

    def _height(self, law, x):
        """Return the profile at log x on a Poisson sample (K5, 2), from that without one."""
        rate = law.rate
        y = (x - (1 - rate)) / rate if self.remove else 1 - x * (1 - rate)
        if y > 0:
            return rate * law.profile(y) if self.remove else y * law.profile(x * rate / y)
        need(y < 0, "a knot is too close to a bound of the losses")
        return 1 - x if self.remove else arb(0)

    def _split(self, law):
        """Return each outcome's mass on the knots around its loss, perhaps infinite (K5, b)."""
        x, masses = [arb(0), *self.x], [arb(0)] * (len(self.x) + 2)
        for p, q in law.outcomes if self.remove else [(q, p) for p, q in law.outcomes]:
            if p == 0:
                continue
            k = len(self.x)  # of the knot below the loss
            if q != 0:
                k = min(max(floor(float((p / q).log() / self.spacing) + 1e-9) - self.low + 1, 0), k)
            need(k == len(self.x) or p <= q * x[k + 1], "an outcome is too close to a knot")
            fall = x[k] / x[k + 1] if k < len(self.x) else 0
            rise = ((p - q * x[k]) / (1 - fall)).max(arb(0))
            masses[k] += (p - rise).max(arb(0))
            masses[k + 1] += rise
        return [masses[0] + masses[1], *masses[2:-1]], masses[-1]

    def power(self, one, n):
        """Return the law of n equal steps."""
        if n == 1:
            return one
        half = self.power(one, n // 2)
        even = self.product(half, half)
        return self.product(even, one) if n % 2 else even

    def product(self, first, second):
        """Return the law of a sum of losses.

        One below the knots moves up to them; one above is shared by the last and infinity (K5, d).
        """
        (u, s), (v, t) = first, second
        full, none = (fmpz_poly(u) * fmpz_poly(v)).coeffs(), fmpz(0)  # the first is at 2 low
        full += [none] * (len(u) + len(v) - 1 - len(full))
        start, end = -self.low, self.high - 2 * self.low + 1
        total = sum(full[end:], none)
        shared = sum((m * w for m, w in zip(full[end:], self.falls, strict=False)), none)
        # A share in falls is less than two units too large: one by rounding, the rest by its ball.
        infinite = s * sum(v, t) + t * sum(u, none) + total - ((shared - 2 * total) >> self.bits)
        kept = [full[start] + sum(full[:start], none), *full[start + 1 : end]]
        kept[-1] += (shared >> self.bits) + 1
        return [-(-mass >> self.bits) for mass in kept], -(-infinite >> self.bits)

    def profile(self, law, epsilon):
        """Return the profile of a law on the knots."""
        limit, pairs = epsilon.exp(), zip(self.x, law[0], strict=True)
        found = sum((m * (1 - limit / x).max(arb(0)) for x, m in pairs if m), arb(law[1]))
        return found / arb(2) ** self.bits


def grid(laws, given, remove, epsilon):
    """Return the profile of the composition at epsilon."""
    size = (given.high - given.low + 1) * (given.bits + 64)
    work = size * sum(2 * law.count.bit_length() for law in laws)
    need(work <= MOST_WORK, "the knots are too many")
    knots = Knots(given, remove)
    powers = (knots.power(knots.law(law), law.count) for law in laws)
    return knots.profile(reduce(knots.product, powers), epsilon)

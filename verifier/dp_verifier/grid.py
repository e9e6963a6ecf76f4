"""Compositions on equidistant losses, in integers that are rounded up (Theorem K5)."""

from flint import arb, fmpz, fmpz_poly

from dp_verifier.document import Refused, count, fields, number
from dp_verifier.laws import ball

MOST_KNOTS = 300_000
MOST_WORK = 4_000_000  # knots times products


class Grid:
    """Masses are whole multiples of 2^-bits, at the losses k*spacing, low <= k <= high."""

    def __init__(self, laws, given, remove):
        fields(given, "evidence", ("kind", "spacing", "low", "high", "bits"))
        self.laws, self.remove = laws, remove
        self.exact_spacing = number(given["spacing"], "spacing", "1e-30", "1e6")
        self.low = count(given["low"], "low", 0, -MOST_KNOTS)  # (K5, 1)
        self.high = count(given["high"], "high", MOST_KNOTS, 0)
        self.bits = count(given["bits"], "bits", 2000)
        self.precision = self.bits + 64
        products = sum(2 * law.count.bit_length() for law in laws)
        if (self.high - self.low + 1) * products > MOST_WORK:
            raise Refused("the knots are too many")

    def bound(self, epsilon):
        """Return the profile of the composed law at epsilon."""
        spacing, whole = ball(self.exact_spacing), None
        x = [(k * spacing).exp() for k in range(self.low, self.high + 1)]
        self.falls = [self._up((-k * spacing).exp()) for k in range(1, self.high - self.low + 1)]
        for law in self.laws:
            masses, infinite = law.on_knots(x, spacing, self.low, self.remove)
            one = [self._up(mass) for mass in masses], self._up(infinite)
            power = self._power(one, law.count)
            whole = power if whole is None else self._product(whole, power)
        found = arb(whole[1])
        limit = epsilon.exp()
        for y, mass in zip(x, whole[0], strict=True):
            if not y <= limit:
                found += mass * (1 - limit / y).max(arb(0))
        return found / arb(2) ** self.bits

    def _up(self, mass):
        """Return a mass in multiples of 2^-bits, rounded up (K5, c)."""
        return max((mass * arb(2) ** self.bits).upper().ceil().unique_fmpz(), fmpz(0))

    def _power(self, one, n):
        found = one
        for bit in bin(n)[3:]:
            found = self._product(found, found)
            found = self._product(found, one) if bit == "1" else found
        return found

    def _product(self, first, second):
        """Return the law of a sum of losses.

        One below the knots moves up to them; one above is shared by the last and infinity (K5, d).
        """
        (u, s), (v, t) = first, second
        full, none = (fmpz_poly(u) * fmpz_poly(v)).coeffs(), fmpz(0)  # the first is at 2 low
        full += [none] * (len(u) + len(v) - 1 - len(full))
        start, end = -self.low, self.high - 2 * self.low + 1
        total = sum(full[end:], none)
        shared = sum((m * w for m, w in zip(full[end:], self.falls, strict=False)), none)
        infinite = s * sum(v, t) + t * sum(u, none) + total - ((shared - total) >> self.bits)
        kept = [full[start] + sum(full[:start], none), *full[start + 1 : end]]
        kept[-1] += (shared >> self.bits) + 1
        return [-(-mass >> self.bits) for mass in kept], -(-infinite >> self.bits)

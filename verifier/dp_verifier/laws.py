"""One step of each kind, with an enclosure of everything that the evidence asks of it.

(K3, 2) cites assumption 2 of Theorem K3 of docs/theorems_certificates.md, (Theorem 2, 3) one of
docs/theorems.md. Counts are whole, which all compositions rely on (Theorem 3, 1; Theorem 16, 1).
"""

from fractions import Fraction
from itertools import pairwise
from math import floor, isqrt

from flint import acb, arb, ctx, fmpq

from dp_verifier.document import Refused, count, fields, number, numbers

MOST_STEPS = 10**15
MOST_OUTCOMES = 100_000
MOST_MISSING = Fraction(1, 10**9)  # of the sum of listed masses
NUMBERS = {  # a number and its range, a whole number and its range
    "randomised_response": (0, 700, "categories", 2, 10**9),
    "discrete_gaussian": ("1e-3", "1e4", "sensitivity", 1, 10**4),
    "discrete_laplace": ("1e-3", "1e4", "sensitivity", 1, 10**4),
}


def ball(fraction):
    """Return a ball around an exact fraction, as narrow as the precision allows."""
    return arb(fmpq(fraction.numerator, fraction.denominator))


def _normalised(given, name):
    """Return masses whose sum is one: what a sum misses by rounding is shared (K5, 3)."""
    masses = numbers(given, name, 0, 1)
    total = sum(masses)
    if not abs(total - 1) <= MOST_MISSING:
        raise Refused(f"{name} must be masses of all outcomes: their sum is not 1")
    return [mass / total for mass in masses]


def rate_of(part):
    """Return the sampling probability, 1 without one."""
    return number(part["sampled"], "sampled", "1e-12", 1) if "sampled" in part else 1


def above(x):
    """Return the probability that a standard normal variable is above x."""
    return (x / arb(2).sqrt()).erfc() / 2


def both_signs(bound):
    """Return the ball of all real numbers whose modulus is at most a bound."""
    return arb(0, bound.upper())


def sampled_profile(profile, rate, x, remove):
    """Return the profile on a Poisson sample at log x (K5, 2), from that without one."""
    y = (x - (1 - rate)) / rate if remove else 1 - x * (1 - rate)
    if y > 0:
        return rate * profile(y) if remove else y * profile(x * rate / y)
    if not y < 0:
        raise Refused("a knot is too close to a bound of the losses")
    return 1 - x if remove else arb(0)


def chords(heights, x):
    """Return the law whose profile joins (0, 1), the points and (infinity, the last) (K5, a)."""
    steps = [
        (v - u) / (y - w) for (u, v), (w, y) in zip(pairwise(heights), pairwise(x), strict=True)
    ]
    slopes = [(heights[0] - 1) / x[0], *steps, arb(0)]
    masses = [w * (right - left) for w, (left, right) in zip(x, pairwise(slopes), strict=True)]
    return masses, heights[-1]


class Shifted:
    """N(0, sigma^2) whose mean moves by d_j with probability w_j, otherwise not at all."""

    def __init__(self, part):
        fields(part, "part", ("sigma", "shifts", "weights", "count"), ("lost",))
        self.count = count(part["count"], "count", MOST_STEPS)
        self.exact_sigma = number(part["sigma"], "sigma", "1e-9", "1e9")
        self.exact_shifts = numbers(part["shifts"], "shifts", "1e-9", "1e9")
        self.exact_weights = numbers(part["weights"], "weights", 0, 1)
        self.still = 1 - sum(self.exact_weights)
        if len(self.exact_shifts) != len(self.exact_weights) or self.still < 0:
            raise Refused("shifts and weights must have one length, the weights a sum of at most 1")
        self.lost = number(part["lost"], "lost", 0, 1) if "lost" in part else 0
        if not self.still >= 2 * self.lost:
            raise Refused("lost must be less than half of the weight of no shift")  # (D9)
        self.plain = len(self.exact_shifts) == 1 and self.still == 0
        self.furthest = max(self.exact_shifts)

    def refresh(self):
        """Make the balls of the parameters anew, at the precision that now holds."""
        self.sigma, self.shift = ball(self.exact_sigma), ball(self.furthest)
        pairs = zip(self.exact_shifts, self.exact_weights, strict=True)
        self.terms = [(ball(d), ball(w)) for d, w in pairs if w]
        self.w0 = ball(self.still)

    def transform(self, s):
        """Return A(s) of plain noise: exp(s (s - 1) d^2 / 2 sigma^2) (Theorem 10, 3)."""
        return (s * (s - 1) * self.shift**2 / (2 * self.sigma**2)).exp()

    def ratio(self, z):
        """Return e^{L(z)} for a real or complex z."""
        return sum(self._moved(z), self.w0 + 0 * z)

    def _moved(self, z):
        return [w * (d * (2 * z - d) / (2 * self.sigma**2)).exp() for d, w in self.terms]

    def density(self, z):
        """Return N(z)."""
        return (-(z**2) / (2 * self.sigma**2)).exp() / (self.sigma * (2 * arb.pi()).sqrt())

    def mean_shift(self, x):
        """Return the mean of the shift under its posterior law at a real x (Theorem D1)."""
        parts = self._moved(x)
        shifts = sum((d * p for (d, _), p in zip(self.terms, parts, strict=True)), arb(0))
        return shifts / sum(parts, self.w0)

    def mass_above(self, x, moved, sigma=None):
        """Return P{X > x} of the law that moves, otherwise Q{X > x}; sigma may be another one."""
        sigma = self.sigma if sigma is None else sigma
        still = above(x / sigma)
        if not moved:
            return still
        return sum((w * above((x - d) / sigma) for d, w in self.terms), self.w0 * still)

    def on_knots(self, x, spacing, first, remove):
        """Return masses at the knots log x, and at infinity, of a law that dominates."""
        if len(self.terms) != 1 or self.lost:
            raise Refused("a grid takes noise with one shift")
        mu, rate = self.shift / self.sigma, self.terms[0][1]

        def profile(y):
            at = y.log() / mu
            return above(at - mu / 2) - y * above(at + mu / 2)  # (Theorem 10, 3)

        return chords([sampled_profile(profile, rate, y, remove) for y in x], x)


class Laplace:
    """Laplace noise: losses up to ``laplace``, the sensitivity over the scale (Theorem M5)."""

    def __init__(self, part):
        fields(part, "part", ("laplace", "count"), ("sampled",))
        self.count = count(part["count"], "count", MOST_STEPS)
        self.exact_reach = number(part["laplace"], "laplace", "1e-9", 700)
        self.exact_rate = rate_of(part)

    def refresh(self):
        """Do nothing: no ball is kept."""

    def transform(self, s):
        """Return A(s) without a sample; no more than |A(s)| <= A(Re s) is known of its decay."""
        if self.exact_rate != 1:
            raise Refused("a line takes no Laplace noise on a sample")
        a = ball(self.exact_reach)
        return (s * ((s - 1) * a).exp() + (s - 1) * (-s * a).exp()) / (2 * s - 1)

    def on_knots(self, x, spacing, first, remove):
        """Return masses at the knots log x, and at infinity, of a law that dominates."""
        factor = (-ball(self.exact_reach)).exp()

        def profile(y):
            return 1 - y.min((y * factor).sqrt()).min(arb(1))

        rate = ball(self.exact_rate)
        return chords([sampled_profile(profile, rate, y, remove) for y in x], x)


class Finite:
    """Finitely many outcomes, p their masses under P and q under Q; on a Poisson sample or not.

    A mass of 0 under Q makes a loss infinite. Tails that are not listed are outcomes of P alone
    and of Q alone, which tell more (K5, 3).
    """

    def __init__(self, part):
        self.kind = next((key for key in NUMBERS if key in part), "p")
        low, high, other, least, most = NUMBERS.get(self.kind, (0, 1, "q", 0, 0))
        fields(part, "part", (self.kind, other, "count"), ("sampled", "infinite"))
        self.count = count(part["count"], "count", MOST_STEPS)
        self.exact_rate = rate_of(part)
        self.infinite = number(part["infinite"], "infinite", 0, 1) if "infinite" in part else 0
        if most:
            self.exact = number(part[self.kind], self.kind, low, high)
            self.whole = count(part[other], other, most, least)
        else:
            self.exact = [_normalised(part[key], key) for key in (self.kind, other)]
            if len(self.exact[0]) != len(self.exact[1]):
                raise Refused("p and q must have one length")

    def refresh(self):
        """Do nothing: outcomes are computed when they are asked for."""

    def outcomes(self, remove):
        """Return (p, q) of each outcome, p of the first law of the direction."""
        make = {"p": self._listed, "randomised_response": self._response}
        pairs = make.get(self.kind, self._noise)()
        if self.infinite:  # Theorem M7
            rest = ball(self.infinite)
            pairs = [((1 - rest) * p, (1 - rest) * q) for p, q in pairs]
            pairs += [(rest, arb(0)), (arb(0), rest)]
        rate = ball(self.exact_rate)
        pairs = [(rate * p + (1 - rate) * q, q) for p, q in pairs]  # (K5, 2)
        return pairs if remove else [(q, p) for p, q in pairs]

    def _listed(self):
        return [(ball(p), ball(q)) for p, q in zip(*self.exact, strict=True)]

    def _response(self):
        grown, k = ball(self.exact).exp(), self.whole
        total = grown + k - 1
        equal = arb(k - 2) / total
        return [(grown / total, 1 / total), (equal, equal), (1 / total, grown / total)]

    def _noise(self):
        """Return the outcomes of noise on the integers, moved by a whole number (Theorem M13)."""
        scale, move = ball(self.exact), self.whole
        if self.kind == "discrete_laplace":
            r = (-1 / scale).exp()
            between = [(r ** (move - j), r**j) for j in range(1, move)]
            inner = [((1 - r) / (1 + r) * p, (1 - r) / (1 + r) * q) for p, q in between]
            end, other = 1 / (1 + r), r**move / (1 + r)
            return [(other, end), *inner, (end, other)]
        reach = isqrt(int(2 * self.exact**2 * ctx.prec)) + 1
        if reach + move > MOST_OUTCOMES:
            raise Refused("the outcomes are too many")
        mass = [(-(arb(j) ** 2) / (2 * scale**2)).exp() for j in range(reach + 2)]
        tail = (2 * mass[-1] / (1 - (-(reach + 1) / scale**2).exp())).upper()
        total = mass[0] + 2 * sum(mass[1 : reach + 1], arb(0)) + tail.union(arb(0))
        law = {j: mass[abs(j)] / total for j in range(-reach, reach + 1)}
        outer = tail / mass[0]
        pairs = [
            (law.get(j - move, arb(0)), law.get(j, arb(0))) for j in range(-reach, reach + move + 1)
        ]
        return [*pairs, (outer, arb(0)), (arb(0), outer)]

    def on_knots(self, x, spacing, first, remove):
        """Return masses at the knots log x, and at infinity, of a law that dominates (K5, b)."""
        masses, infinite, last = [arb(0)] * len(x), arb(0), len(x) - 1
        for p, q in self.outcomes(remove):
            if p == 0:
                continue
            k = last if q == 0 else floor(float((p / q).log() / spacing) + 1e-9) - first
            if k >= last:
                infinite += (p - q * x[last]).max(arb(0))
                masses[last] += q * x[last]
                continue
            k = max(k, -1)
            if not p <= q * x[k + 1]:
                raise Refused("an outcome is too close to a knot")
            rise = ((p - q * x[k]) / (1 - x[k] / x[k + 1])).max(arb(0)) if k >= 0 else p
            masses[k + 1] += rise
            masses[max(k, 0)] += (p - rise).max(arb(0))
        return masses, infinite

    def transform(self, s):
        """Return A(s), which is entire; no more than |A(s)| <= A(Re s) is known of its decay."""
        if not all(p > 0 and q > 0 for p, q in self.outcomes(True)):  # (K4, 1)
            raise Refused("a line takes outcomes that both laws have")
        terms = ((s * p.log() + (1 - s) * q.log()).exp() for p, q in self.outcomes(True))
        return sum(terms, acb(0))

"""One step of each kind, with an enclosure of everything that the evidence asks of it.

(K3, 2) cites assumption 2 of Theorem K3 of docs/theorems_certificates.md, (Theorem 2, 3) one of
docs/theorems.md. Counts are whole, which all compositions rely on (Theorem 3, 1; Theorem 16, 1).
"""

from fractions import Fraction
from math import isqrt
from types import SimpleNamespace

from flint import arb, ctx, fmpq

from dp_verifier.document import need

MOST_OUTCOMES, MOST_MISSING = 100_000, Fraction(1, 10**9)  # the latter of a sum of listed masses


def ball(fraction):
    """Return a ball around an exact fraction, as narrow as the precision allows."""
    return arb(fmpq(fraction.numerator, fraction.denominator))


def above(x):
    """Return the probability that a standard normal variable is above x."""
    return (x / arb(2).sqrt()).erfc() / 2


class Shifted:
    """N(0, sigma^2) whose mean moves by d_j with probability w_j, otherwise not at all."""

    def __init__(self, given):
        still, lost = 1 - sum(given.weights), given.lost or 0
        need(still >= 2 * lost, "the weights' sum must be at most 1 - 2 lost")
        self.count, self.size = given.count, len(given.shifts)
        self.plain = self.size == 1 and still == 0
        self.sigma, self.shift, self.w0 = ball(given.sigma), ball(max(given.shifts)), ball(still)
        pairs = zip(given.shifts, given.weights, strict=True)
        self.terms = [(ball(d), ball(w)) for d, w in pairs if w]
        self.rate = self.terms[0][1] if len(self.terms) == 1 and not lost else None
        self.lost = self.count * ball(lost / (still - lost)) if lost else arb(0)  # (D9)

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

    def tilted(self, x, c, away):
        """Return N(x) e^{cL(x - away)} at a real x."""
        return self.density(x) * self.ratio(x - away) ** c

    def mean_shift(self, x):
        """Return the mean of the shift under its posterior law at a real x (Theorem D1)."""
        parts = self._moved(x)
        shifts = sum((d * p for (d, _), p in zip(self.terms, parts, strict=True)), arb(0))
        return shifts / sum(parts, self.w0)

    def mass_above(self, x, moved, sigma=None):
        """Return P{X > x} of the law that moves, otherwise Q{X > x}; sigma may be another one."""
        sigma = sigma or self.sigma
        terms = [*self.terms, (0, self.w0)] if moved else [(0, 1)]
        return sum(w * above((x - d) / sigma) for d, w in terms)

    def profile(self, y):
        """Return the profile at log y of plain noise (Theorem 10, 3)."""
        mu = self.shift / self.sigma
        return above(y.log() / mu - mu / 2) - y * above(y.log() / mu + mu / 2)


def laplace(given):
    """Return Laplace noise: losses up to the sensitivity over the scale (Theorem M5)."""
    factor, rate = (-ball(given.laplace)).exp(), ball(given.sampled or 1)
    heights = {"profile": lambda y: 1 - y.min((y * factor).sqrt()).min(arb(1))}
    return SimpleNamespace(count=given.count, lost=0, rate=rate, **heights)


def finite(given, pairs):
    """Return finitely many outcomes (p, q), with their masses under P and Q; q may be 0 (K5, 2)."""
    rate = ball(given.sampled or 1)
    outcomes = [(rate * p + (1 - rate) * q, q) for p, q in pairs]
    return SimpleNamespace(count=given.count, lost=0, outcomes=outcomes)


def listed(given):
    """Return masses whose sums are one: what a sum misses by rounding is shared (K5, 3)."""
    m, n = sum(given.p), sum(given.q)
    need(max(abs(m - 1), abs(n - 1)) <= MOST_MISSING, "p or q is not whole: their sum is not 1")
    pairs = zip(given.p, given.q, strict=True)
    return finite(given, [(ball(p / m), ball(q / n)) for p, q in pairs])


def response(given):
    """Return randomised response; ``infinite`` is a mass of infinite losses (Theorem M7)."""
    grown, k = ball(given.randomised_response).exp(), given.categories
    rest = ball(given.infinite or 0)
    part = (1 - rest) / (grown + k - 1)
    pairs = [(grown * part, part), ((k - 2) * part, (k - 2) * part), (part, grown * part)]
    return finite(given, [*pairs, (rest, arb(0)), (arb(0), rest)])


def discrete_laplace(given):
    """Return Laplace noise on the integers: a loss each below, between and above the centres."""
    r, move = (-1 / ball(given.discrete_laplace)).exp(), given.sensitivity
    unit, end, other = (1 - r) / (1 + r), 1 / (1 + r), r**move / (1 + r)
    between = [(unit * r ** (move - j), unit * r**j) for j in range(1, move)]
    return finite(given, [(other, end), *between, (end, other)])


def discrete_gaussian(given):
    """Return Gaussian noise on the integers, moved by a whole number (Theorem M13).

    Tails that are not listed are outcomes of P alone and of Q alone, which tell more (K5, 3).
    """
    scale, move = ball(given.discrete_gaussian), given.sensitivity
    reach = isqrt(int(2 * given.discrete_gaussian**2 * ctx.prec)) + 1
    need(reach + move <= MOST_OUTCOMES, "the outcomes are too many")
    mass = {j: (-(arb(j) ** 2) / (2 * scale**2)).exp() for j in range(-reach, reach + 1)}
    first = (-(arb(reach + 1) ** 2) / (2 * scale**2)).exp()  # of the tails
    tail = (2 * first / (1 - (-(reach + 1) / scale**2).exp())).upper()
    total = sum(mass.values()) + tail.union(arb(0))  # at least 1
    places = range(-reach, reach + move + 1)
    pairs = [(mass.get(j - move, 0) / total, mass.get(j, 0) / total) for j in places]
    return finite(given, [*pairs, (tail, arb(0)), (arb(0), tail)])


MAKERS = {"sigma": Shifted, "laplace": laplace, "randomised_response": response, "p": listed}
MAKERS |= {"discrete_laplace": discrete_laplace, "discrete_gaussian": discrete_gaussian}


def law_of(part):
    """Return the law of a part, which has a key that only its kind has."""
    return next(make(part) for key, make in MAKERS.items() if hasattr(part, key))

"""One step of each kind: its transform A(s), the integral of N e^{sL}, with a bound on every error.

(K2, 3) cites assumption 3 of Theorem K2 of docs/theorems_certificates.md.
"""

from flint import acb, arb, fmpq

from dp_verifier.document import Refused, count, fields, number, numbers

MOST_STEPS = 10**15


def ball(fraction):
    """Return a ball around an exact fraction, as narrow as the precision allows."""
    return arb(fmpq(fraction.numerator, fraction.denominator))


def above(x):
    """Return the probability that a standard normal variable is above x."""
    return (x / arb(2).sqrt()).erfc() / 2


def largest(value):
    """Return an exact upper bound of what a real ball holds, or of a complex ball's modulus."""
    return value.abs_upper() if isinstance(value, acb) else value.upper()


def both_signs(bound):
    """Return the ball of all real numbers whose modulus is at most a bound."""
    return arb(0, largest(bound))


class Finite:
    """Finitely many outcomes, p their masses under P and q under Q."""

    def __init__(self, part):
        fields(part, "part", ("randomised_response", "categories", "count"))
        self.count = count(part["count"], "count", MOST_STEPS)
        self.strength = number(part["randomised_response"], "randomised_response", 0, 700)
        self.categories = count(part["categories"], "categories", 10**9)
        if self.categories < 2:
            raise Refused("categories must be at least 2")

    def refresh(self):
        """Do nothing: outcomes are computed when they are asked for."""

    def lost_mass(self):
        """Return 0: all outcomes are listed."""
        return arb(0)

    def outcomes(self):
        """Return (how many, p, q, the loss in units of the strength) of the kinds of outcomes."""
        grown, k = ball(self.strength).exp(), self.categories
        total = grown + k - 1
        kinds = ((1, grown, arb(1), 1), (k - 2, arb(1), arb(1), 0), (1, arb(1), grown, -1))
        return [(m, p / total, q / total, loss) for m, p, q, loss in kinds if m]

    def transform(self, s):
        """Return A(s), which is entire; no more than |A(s)| <= A(Re s) is known of its decay."""
        terms = (m * (s * p.log() + (1 - s) * q.log()).exp() for m, p, q, _ in self.outcomes())
        return sum(terms, acb(0))


class Shifted:
    """N(0, sigma^2) whose mean moves by d_j with probability w_j, otherwise not at all."""

    def __init__(self, part):
        fields(part, "part", ("sigma", "shifts", "weights", "count"), ("lost",))
        self.count = count(part["count"], "count", MOST_STEPS)
        self.exact_sigma = number(part["sigma"], "sigma", "1e-9", "1e9")
        self.exact_shifts = numbers(part["shifts"], "shifts", "1e-9", "1e9")
        self.exact_weights = numbers(part["weights"], "weights", 0, 1)
        if len(self.exact_shifts) != len(self.exact_weights):
            raise Refused("shifts and weights must have one length")
        if sum(self.exact_weights) > 1:
            raise Refused("the weights must not add up to more than 1")
        self.still = 1 - sum(self.exact_weights)
        self.lost = number(part["lost"], "lost", 0, 1) if "lost" in part else 0
        if not self.still >= 2 * self.lost:
            raise Refused("lost must be less than half of the weight of no shift")  # (D9)
        self.plain = len(self.exact_shifts) == 1 and self.still == 0
        self.furthest = max(self.exact_shifts)

    def refresh(self):
        """Make the balls of the parameters anew, at the precision that now holds."""
        self.sigma, self.shift = ball(self.exact_sigma), ball(self.furthest)
        shifts = [ball(d) for d in self.exact_shifts]
        self.terms = [(d, ball(w)) for d, w in zip(shifts, self.exact_weights, strict=True) if w]
        self.w0 = ball(self.still)

    def lost_mass(self):
        """Return what shifts of the weight ``lost``, which are not listed, add (Theorem D9)."""
        return self.count * ball(self.lost / (self.still - self.lost)) if self.lost else arb(0)

    def transform(self, s):
        """Return A(s) of plain noise: exp(s (s - 1) d^2 / 2 sigma^2) (Theorem 10)."""
        return (s * (s - 1) * self.shift**2 / (2 * self.sigma**2)).exp()

    def ratio(self, z):
        """Return e^{L(z)} for a real or complex z."""
        return sum(
            (w * (d * (2 * z - d) / (2 * self.sigma**2)).exp() for d, w in self.terms),
            self.w0 + 0 * z,
        )

    def density(self, z):
        """Return N(z)."""
        return (-(z**2) / (2 * self.sigma**2)).exp() / (self.sigma * (2 * arb.pi()).sqrt())

    def mean_shift(self, x):
        """Return the mean of the shift under its posterior law at a real x (Theorem D1)."""
        parts = [(d, w * (d * (2 * x - d) / (2 * self.sigma**2)).exp()) for d, w in self.terms]
        return sum((d * p for d, p in parts), arb(0)) / sum((p for _, p in parts), self.w0)

    def mass_above(self, x, moved, sigma=None):
        """Return P{X > x} of the law that moves, otherwise Q{X > x}; sigma may be another one."""
        sigma = self.sigma if sigma is None else sigma
        still = above(x / sigma)
        if not moved:
            return still
        return sum((w * above((x - d) / sigma) for d, w in self.terms), self.w0 * still)

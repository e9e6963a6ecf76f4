"""The transform of one step on a line, by a trapezoid sum along a shifted path (Theorem K1)."""

from itertools import pairwise
from math import isqrt

from flint import acb, acb_mat, arb

from dp_verifier.document import need
from dp_verifier.laws import above, ball

ALL, KEPT, MIDDLING, SMALL, LARGE = "all", "kept", "middling", "small", "large"


class Rule:
    """Nodes x_j + ia, x_j = first + jh, and cells [x_j - h/2, x_j + h/2] that fill the window."""

    def __init__(self, law, given):
        self.law, self.rise, self.spacing = law, ball(given.rise), ball(given.spacing)
        self.low = ball(given.first) - self.spacing / 2
        self.edges = [self.low + j * self.spacing for j in range(given.nodes + 1)]  # (K1, 4)
        self.high = self.edges[-1]
        self.nodes = [acb(edge + self.spacing / 2, self.rise) for edge in self.edges[:-1]]
        self.angle = 2 * self.rise * law.shift / law.sigma**2
        need(self.angle < arb.pi(), "rise: the path is above the first zero of e^L")  # (K1, 1)
        self.loss = [law.ratio(z).log() for z in self.nodes]  # principal: 0 <= arg < pi/2
        self.knots = [ball(each) for each in given.decay or ()]
        cuts = given.labels
        self.labelled, self.splits = cuts is not None, cuts is not None and cuts.lower is not None
        if self.labelled:
            self.upper, self.width = ball(cuts.upper), ball(cuts.width)
            self.wide = (law.sigma**2 + self.width**2).sqrt()  # of the noise with the label's
            self.lower = ball(cuts.lower if self.splits else cuts.upper)
            need(not self.splits or cuts.lower <= cuts.upper, "lower is above upper")  # (K3, 1)

    def label(self, kind, z):
        """Return the probability that a step at z, real or complex, is of this kind (K1, 2)."""
        if kind == ALL or not self.labelled:
            return arb(kind != LARGE)
        if kind == MIDDLING:
            return self.label(KEPT, z) - self.label(SMALL, z)
        away = z - (self.lower if kind == SMALL else self.upper)
        return ((-away if kind == LARGE else away) / (self.width * arb(2).sqrt())).erfc() / 2

    def over_cells(self, c, away, kind):
        """Return a bound on the integral of label N e^{cL(x - away)}, c < 0, label increasing."""
        total = arb(0)
        for left, right in pairwise(self.edges):
            nearest = left if left > 0 else right if right < 0 else arb(0)
            grown = self.law.ratio(left - away) ** c
            total += self.law.density(nearest) * grown * self.label(kind, right)
        return self.spacing * total

    def outside(self, m, kind):
        """Return a bound on the integral of label N e^{-mL} outside the window."""
        law = self.law
        need(law.w0 > 0, "reverse: a step that always moves has no bound there")  # (K3, 3)
        under = self.label(kind, self.low) * law.w0**-m * above(-self.low / law.sigma)
        return under + law.ratio(self.high) ** -m * law.mass_above(self.high, False)

    def drop(self, c, y):
        """Return d such that |A(c + iy')| <= A(c) - d for all y' >= y > 0 (K2, b; Theorem 7, 2)."""
        law, total = self.law, arb(0)
        for ends in pairwise(self.knots):
            left, right = ends
            need(self.low <= left and left < right and right <= self.high, "decay")  # (K2, 1)
            losses = [law.ratio(x).log() for x in ends]
            height, length = law.sigma**2 / law.mean_shift(right), losses[1] - losses[0]
            if c >= 0:  # the tangent at the middle is below the convex loss, else the chord above
                middle = (left + right) / 2
                slope = law.mean_shift(middle) / law.sigma**2
                losses = [law.ratio(middle).log() + slope * (x - middle) for x in ends]
            pairs = zip(ends, losses, strict=True)
            first, last = (law.density(x) * (c * u).exp() for x, u in pairs)
            height *= first.min(last) * self.label(KEPT, right)  # (K2, 2)
            total += (height * length * (1 - _sinc(y * length / 2))).max(arb(0))
        return total


class Sum:
    """The integral of (label) N e^{(c+iy)L} over the window, for every y >= 0 (Theorem K1).

    It is within the error of the sum over j of weight_j e^{iy loss_j}.
    """

    def __init__(self, rule, c, kind):
        law, self.loss = rule.law, rule.loss
        noise = [rule.spacing * rule.label(kind, z) * law.density(z) for z in rule.nodes]
        self.weights = [u * (c * v).exp() for u, v in zip(noise, self.loss, strict=True)]
        value = sum(self.weights, acb(0)).real
        stretch, away = 2 * rule.rise**2 / law.sigma**2, 0
        if kind != ALL and rule.labelled:
            stretch += 2 * rule.rise**2 / rule.width**2
        if not c >= 0:  # (K1, 3)
            need(2 * rule.angle < arb.pi(), "rise: too high for an order below 0")
            away = -(law.sigma**2) / law.shift * rule.angle.cos().log()
        ends = sum(rule.label(kind, x) * law.tilted(x, c, away) for x in (rule.low, rule.high))
        alias = 2 * stretch.exp() / ((2 * arb.pi() * rule.rise / rule.spacing).exp() - 1)
        self.error = 2 * rule.rise * stretch.exp() * ends
        if c >= 0:
            need(alias < 1, "spacing: too wide for this rise")
            self.error = (self.error + alias * abs(value)) / (1 - alias)
        else:
            self.error += alias * rule.over_cells(c, away, ALL)
        self.slack = arb(0, self.error.upper())
        self.real = value + self.slack  # the value at y = 0, of ALL on the whole line
        if kind == ALL:
            self.real += rule.outside(-c, ALL)

    def along(self, step, orders):
        """Return the values at y = k*step, k < orders, as one product of two matrices."""
        block = isqrt(orders - 1) + 1
        near = [self._turned(k * step) for k in range(block)]
        far = [self._turned(k * step) for k in range(0, orders, block)]
        far = [[u * v for u, v in zip(self.weights, row, strict=True)] for row in far]
        values = (acb_mat(far) * acb_mat(near).transpose()).entries()
        return [each + acb(self.slack, self.slack) for each in values[:orders]]

    def _turned(self, y):
        return [(acb(0, y) * each).exp() for each in self.loss]

    def beyond(self, y):
        """Return a bound on the modulus for all y' >= y (K2, a)."""
        pairs = zip(self.weights, self.loss, strict=True)
        return sum((abs(w) * (-y * each.imag).exp() for w, each in pairs), self.error)


def _sinc(t):
    """Return a bound on |sin(t')/t'| for all t' >= t: beyond 3 it is below 0.2173."""
    return (t.sin() / t).max(arb("0.2173")) if t < 3 else 1 / t

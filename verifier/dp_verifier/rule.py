"""The transform of one step on a line, by a trapezoid sum along a shifted path (Theorem K1)."""

from itertools import pairwise
from math import isqrt

from flint import acb, acb_mat, arb

from dp_verifier.document import Refused, count, fields, number, numbers
from dp_verifier.laws import above, ball, both_signs

MOST_NODES = 10_000
ALL, KEPT, MIDDLING, SMALL = "all", "kept", "middling", "small"


class Rule:
    """Nodes x_j + ia, x_j = first + jh, and cells [x_j - h/2, x_j + h/2] that fill the window."""

    def __init__(self, law, given):
        fields(given, "rule", ("rise", "spacing", "first", "nodes"), ("decay", "labels"))
        self.law = law
        self.nodes = count(given["nodes"], "nodes", MOST_NODES)
        lows = {"rise": "1e-30", "spacing": "1e-30", "first": "-1e12"}
        self.exact = [number(given[key], key, low, "1e12") for key, low in lows.items()]
        self.exact_decay = []
        if "decay" in given:
            self.exact_decay = numbers(given["decay"], "decay", "-1e12", "1e12")
        self.points = self.nodes + len(self.exact_decay)  # where all shifts are summed
        self.cuts = {}
        if "labels" in given:
            labels = fields(given["labels"], "labels", ("upper", "width"), ("lower",))
            self.exact_width = number(labels["width"], "width", "1e-30", "1e12")
            for key in labels.keys() - {"width"}:
                self.cuts[key] = number(labels[key], key, "-1e12", "1e12")
            if self.cuts.get("lower", self.cuts["upper"]) > self.cuts["upper"]:
                raise Refused("the lower threshold must not be above the upper one")  # (K3, 1)
        self.splits = "lower" in self.cuts

    def refresh(self):
        """Compute nodes, losses and labels at the precision that now holds."""
        law = self.law
        self.a, self.h, first = (ball(each) for each in self.exact)
        self.edges = [first + (j - arb("0.5")) * self.h for j in range(self.nodes + 1)]  # (K1, 4)
        self.low, self.high = self.edges[0], self.edges[-1]
        self.angle = 2 * self.a * law.shift / law.sigma**2
        if not self.angle < arb.pi():  # (K1, 1)
            raise Refused("rise: the path must stay below the first zero of e^L")
        z = [acb(first + j * self.h, self.a) for j in range(self.nodes)]
        self.loss = [law.ratio(each).log() for each in z]  # 0 <= arg < pi/2: the principal branch
        self.noise = [self.h * law.density(each) for each in z]
        self.edge_loss = [law.ratio(each).log() for each in self.edges]
        self.edge_noise = [law.density(each) for each in self.edges]
        self.stretch = (2 * self.a**2 / law.sigma**2).exp()  # (K1, proof): |N| on the strip
        if self.cuts:
            self.width = ball(self.exact_width)  # positive (K1, 2)
        self.below = {key: [self._below(each, key) for each in z] for key in self.cuts}
        self.edge_below = {key: [self._below(u, key) for u in self.edges] for key in self.cuts}
        self.last_kept = self.edge_below["upper"][-1] if self.cuts else arb(1)

    def _below(self, z, key):
        """Return the probability that z and noise of the labels' width are below a threshold."""
        return ((z - ball(self.cuts[key])) / (self.width * arb(2).sqrt())).erfc() / 2

    def labels(self, kind):
        """Return the label at each node, the label's supremum on each cell, and at both edges."""
        if not self.cuts or kind == ALL:
            one = [arb(1)] * self.nodes
            return one, one, (arb(1), arb(1))
        key = "lower" if kind == SMALL else "upper"
        values, edge = self.below[key], self.edge_below[key]
        if kind != MIDDLING:  # decreases
            return values, edge[:-1], (edge[0], edge[-1])
        less, edge_less = self.below["lower"], self.edge_below["lower"]
        values = [u - v for u, v in zip(values, less, strict=True)]
        cells = [u.min(1 - v) for u, v in zip(edge[:-1], edge_less[1:], strict=True)]
        return values, cells, (edge[0] - edge_less[0], edge[-1] - edge_less[-1])

    def noise_on(self, j):
        """Return the supremum of N on a cell."""
        if self.edges[j] > 0:
            return self.edge_noise[j]
        return self.edge_noise[j + 1] if self.edges[j + 1] < 0 else self.law.density(arb(0))

    def large(self, m):
        """Return a bound on the integral of N e^{-mL} over large steps up to the window's end."""
        law = self.law
        root, cut = self.width * arb(2).sqrt(), ball(self.cuts["upper"])
        label = [((cut - each) / root).erfc() / 2 for each in self.edges]  # increases
        grown = [(-m * each).exp() for each in self.edge_loss]  # decreases
        cells = enumerate(label[1:])
        inside = self.h * sum((self.noise_on(j) * grown[j] * u for j, u in cells), arb(0))
        return inside + label[0] * law.w0**-m * above(-self.low / law.sigma)

    def growth(self, c):
        """Return bounds on |e^{cL}| over the strip above each edge of a cell (K1, 3)."""
        if c >= 0:
            return [(c * each).exp() for each in self.edge_loss]
        if not 2 * self.angle < arb.pi():
            raise Refused("rise: too high for an order below 0")
        away = -(self.law.sigma**2) / self.law.shift * self.angle.cos().log()
        return [(c * self.law.ratio(each - away).log()).exp() for each in self.edges]

    def drop(self, c, y):
        """Return d such that |A(c + iy')| <= A(c) - d for all y' >= y > 0 (K2, b; Theorem 7, 2)."""
        law, total = self.law, arb(0)
        knots = [ball(each) for each in self.exact_decay]
        for ends in pairwise(knots):
            left, right = ends
            if not (self.low <= left and left < right and right <= self.high):  # (K2, 1)
                raise Refused("decay: the knots must increase and stay in the window")
            losses = [law.ratio(each).log() for each in ends]
            length = losses[1] - losses[0]
            lines = losses
            if c >= 0:  # the tangent at the middle is below the convex loss, else the chord above
                middle = (left + right) / 2
                slope = law.mean_shift(middle) / law.sigma**2
                lines = [law.ratio(middle).log() + slope * (x - middle) for x in ends]
            left, right = (law.density(x) * (c * u).exp() for x, u in zip(ends, lines, strict=True))
            height = left.min(right) * law.sigma**2 / law.mean_shift(ends[1])
            if self.cuts:
                height *= self._below(ends[1], "upper")  # (K2, 2)
            total += (height * length * (1 - _sinc(y * length / 2))).max(arb(0))
        return total


class Sum:
    """The integral of (label) N e^{(c+iy)L} over the window, for every y >= 0 (Theorem K1).

    It is within the error of the sum over j of weight_j e^{iy loss_j}.
    """

    def __init__(self, rule, c, kind):
        self.loss, (labels, cells, ends) = rule.loss, rule.labels(kind)
        grown, factor = rule.growth(c), rule.stretch
        if rule.cuts and kind != ALL:
            factor = factor * (2 * rule.a**2 / rule.width**2).exp()
        total = arb(0)
        for j, label in enumerate(cells):
            total += rule.noise_on(j) * label * grown[j].max(grown[j + 1])
        ended = rule.edge_noise[0] * grown[0] * ends[0] + rule.edge_noise[-1] * grown[-1] * ends[1]
        aliased = 2 * rule.h * total / ((2 * arb.pi() * rule.a / rule.h).exp() - 1)
        self.error = factor * (aliased + 2 * rule.a * ended)
        terms = zip(rule.noise, labels, self.loss, strict=True)
        self.weights = [noise * label * (c * loss).exp() for noise, label, loss in terms]

    def real(self):
        """Return the value at y = 0."""
        return sum(self.weights, acb(0)).real + both_signs(self.error)

    def along(self, step, orders):
        """Return the values at y = k*step, k < orders, as one product of two matrices."""
        block = isqrt(orders - 1) + 1
        turn = [(acb(0, 1) * step * each).exp() for each in self.loss]
        near = _powers(turn, block)
        far = [
            [u * v for u, v in zip(self.weights, each, strict=True)]
            for each in _powers(near.pop(), (orders - 1) // block)
        ]
        slack = acb(both_signs(self.error), both_signs(self.error))
        values = (acb_mat(far) * acb_mat(near).transpose()).entries()
        return [each + slack for each in values[:orders]]

    def beyond(self, y):
        """Return a bound on the modulus for all y' >= y (K2, a)."""
        pairs = zip(self.weights, self.loss, strict=True)
        return sum((abs(w) * (-y * each.imag).exp() for w, each in pairs), self.error)


def _powers(base, most):
    """Return the powers 0 to ``most`` of each element, by squaring: products widen balls."""
    found = [[acb(1)] * len(base), base]
    for k in range(2, most + 1):
        found.append([u * v for u, v in zip(found[k // 2], found[k - k // 2], strict=True)])
    return found[: most + 1]


def _sinc(t):
    """Return a bound on |sin(t')/t'| for all t' >= t."""
    if t > arb("4.6"):
        return 1 / t
    return (t.sin() / t).max(arb("0.2173")) if t < 3 else arb("0.2173") if t > 3 else arb(1)

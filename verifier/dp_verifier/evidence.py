"""Upper bounds on the profile of one direction, a class for each kind of evidence.

Each is made from the laws of the steps, what the document gives, and whether the direction is
removal; ``bound`` returns a ball, the upper end of which is the bound.
"""

from flint import acb, arb

from dp_verifier.document import Refused, count, fields, items, number
from dp_verifier.grid import Grid
from dp_verifier.laws import Shifted, above, ball
from dp_verifier.rule import ALL, KEPT, MIDDLING, SMALL, Rule, Sum

MOST_ORDERS = 100_000
MOST_PRODUCTS = 3 * 10**8
MOST_TERMS = 500_000


def product(factors):
    """Return a product."""
    found = arb(1)
    for each in factors:
        found = found * each
    return found


def chernoff_factor(b):
    """Return b^b / (1 + b)^(1 + b), b > 0 (Theorem 5, 2)."""
    return (b * b.log() - (1 + b) * (1 + b).log()).exp()


def sometimes(laws, chance):
    """Return the probability that an event with a chance for each law's step ever happens."""
    return 1 - product((1 - chance(law)) ** law.count for law in laws)


class NeverMoved:
    """delta is at least the probability that some step moves, 1 - prod w_0^n (Theorem K6)."""

    def __init__(self, laws, given, remove):
        fields(given, "evidence", ("kind",))
        self.laws, self.remove = laws, remove
        if not all(isinstance(law, Shifted) for law in laws):  # (K6, 2)
            raise Refused("this evidence is for noise with random shifts")

    def bound(self, epsilon):
        if not self.remove and epsilon >= -sum((u.count * u.w0.log() for u in self.laws), arb(0)):
            return arb(0)  # no loss is larger; (K6, 1) is checked with the claim
        return sometimes(self.laws, lambda law: 1 - law.w0)


class Plain:
    """All noise is plain: one Gaussian pair at the distance mu, its own reverse (Theorem 10, 3)."""

    def __init__(self, laws, given, remove):
        fields(given, "evidence", ("kind",))
        self.laws = laws
        if not all(isinstance(law, Shifted) and law.plain for law in laws):
            raise Refused("this evidence is for plain noise")

    def bound(self, epsilon):
        mu = sum((law.count * (law.shift / law.sigma) ** 2 for law in self.laws), arb(0)).sqrt()
        return above(epsilon / mu - mu / 2) - epsilon.exp() * above(epsilon / mu + mu / 2)


class OneStep:
    """One step: its profile where the loss at a threshold is at most epsilon (Theorem D13)."""

    def __init__(self, laws, given, remove):
        fields(given, "evidence", ("kind", "threshold"))
        self.threshold = number(given["threshold"], "threshold", "-1e15", "1e15")
        self.law, self.remove = laws[0], remove
        if not (len(laws) == 1 and isinstance(self.law, Shifted) and self.law.count == 1):
            raise Refused("this evidence is for one step of noise with a random shift")

    def bound(self, epsilon):
        law, x = self.law, ball(self.threshold)
        ratio = law.ratio(x)
        if self.remove:
            if not ratio.log() <= epsilon:
                raise Refused("threshold: the loss there must be at most epsilon")
            return law.mass_above(x, True) - ratio * law.mass_above(x, False)
        if not -ratio.log() <= epsilon:
            raise Refused("threshold: the loss there must be at most epsilon")
        return 1 - law.mass_above(x, False) - (1 - law.mass_above(x, True)) / ratio


class Windowed:
    """What the sums on lines share: a rule for each part with a random shift, and its window."""

    def __init__(self, laws, rules, remove, orders):
        if len(items(rules, "rules")) != len(laws):
            raise Refused("there must be one rule a part")
        self.laws, self.remove, self.rules, self.reverse = laws, remove, {}, None
        for law, rule in zip(laws, rules, strict=True):
            if isinstance(law, Shifted) and not law.plain:
                self.rules[law] = Rule(law, rule)
            elif rule is not None:
                raise Refused("plain noise and finite laws have no rule")
        if (orders + 100) * sum(rule.nodes for rule in self.rules.values()) > MOST_PRODUCTS:
            raise Refused("the nodes are too many")
        terms = sum(len(u.exact_shifts) * rule.points for u, rule in self.rules.items())
        if terms + orders * len(laws) > MOST_TERMS:
            raise Refused("the shifts are too many")
        if any(rule.cuts for rule in self.rules.values()) and not remove:
            raise Refused("labels are for removal")  # (K3, 2)

    def moment(self, s, kind=KEPT):
        """Return the product of A(s)^n at a real order; only rules with two labels know SMALL."""
        found = arb(1)
        for law in self.laws:
            rule = self.rules.get(law)
            if rule is None:
                found *= law.transform(acb(s)).real ** law.count
            else:
                found *= Sum(rule, s, kind if rule.splits else KEPT).real() ** law.count
        return found

    def chernoff(self, b, epsilon, kind=KEPT):
        """Return Theorem 5's bound on the outcomes inside the windows."""
        s = 1 + b if self.remove else -b
        return chernoff_factor(b) * (-b * epsilon).exp() * self.moment(s, kind)

    def outside(self, epsilon):
        """Return a bound on the outcomes with a step outside its window or labelled large."""
        rules = self.rules
        low = sum((law.count * above(-rules[law].low / law.sigma) for law in rules), arb(0))
        high = sometimes(
            rules, lambda law: rules[law].last_kept * law.mass_above(rules[law].high, self.remove)
        )
        labelled = [law for law in rules if rules[law].cuts]
        if not labelled:
            return low + high  # (K3): with their mass under the first law of the pair

        def large(law, moved):  # closed forms: the label adds N(0, width^2) to the noise
            wide = (law.sigma**2 + rules[law].width ** 2).sqrt()
            return law.mass_above(ball(rules[law].cuts["upper"]), moved, wide)

        mass = sometimes(labelled, lambda law: large(law, True))
        if self.reverse is not None:  # (K3, 3)
            unlikely = sometimes(labelled, lambda law: large(law, False))
            mass = mass.min(mass - epsilon.exp() * unlikely + self.reversed(epsilon))
        return low + high + mass

    def reversed(self, epsilon):
        """Return Theorem 15's bound on the reverse term of the outcomes with a large step."""
        m = ball(self.reverse)
        found, jumps = chernoff_factor(m) * ((m + 1) * epsilon).exp(), arb(0)
        for law in self.laws:
            rule = self.rules.get(law)
            if rule is None:
                found *= law.transform(acb(-m)).real ** law.count
                continue
            if not law.w0 > 0:
                raise Refused("reverse: a step that always moves has no bound below its window")
            over = law.ratio(rule.high) ** -m * law.mass_above(rule.high, False)
            under = law.w0**-m * above(-rule.low / law.sigma)
            if rule.cuts:
                jumps += law.count * (rule.large(m) + over)
            found *= (Sum(rule, -m, ALL).real() + over + under) ** law.count
        return found * jumps


class Chernoff(Windowed):
    """Theorem 5: one moment, and what is outside the windows."""

    def __init__(self, laws, given, remove):
        fields(given, "evidence", ("kind", "distance", "rules"))
        super().__init__(laws, given["rules"], remove, 1)
        self.distance = number(given["distance"], "distance", "1e-12", "1e12")

    def bound(self, epsilon):
        for rule in self.rules.values():
            rule.refresh()
        return self.chernoff(ball(self.distance), epsilon) + self.outside(epsilon)


class Line(Windowed):
    """Theorem 2's trapezoid sum on a vertical line, and all that it leaves out (Theorem K4)."""

    def __init__(self, laws, given, remove):
        keys = ("kind", "distance", "step", "orders", "rules")
        fields(given, "evidence", keys, ("small", "reverse"))
        self.orders = count(given["orders"], "orders", MOST_ORDERS)
        super().__init__(laws, given["rules"], remove, self.orders)
        self.distance = number(given["distance"], "distance", "1e-12", "1e12")
        self.step = number(given["step"], "step", "1e-30", "1e12")
        self.splits = any(rule.splits for rule in self.rules.values())
        if self.splits != ("small" in given):
            raise Refused("small and a lower threshold go together")
        if self.splits:
            self.small = number(given["small"], "small", "1e-12", "1e12")
        if "reverse" in given:
            self.reverse = number(given["reverse"], "reverse", "1e-12", "1e12")

    def bound(self, epsilon):
        for rule in self.rules.values():
            rule.refresh()
        found = self.line(epsilon) + self.outside(epsilon)
        if self.splits:  # (K3): outcomes whose steps are all small
            found += self.chernoff(ball(self.small), epsilon, SMALL)
        return found

    def line(self, epsilon):
        """Return the sum up to the last order, and a bound on the orders beyond it."""
        # Both are positive (K4, 2; Theorem 1, 3; Theorem 2, 2), transforms entire (Theorem 2, 3).
        b, step = ball(self.distance), ball(self.step)
        c, end = 1 + b if self.remove else -b, step * self.orders
        orders = [acb(c, step * k) for k in range(self.orders)]
        values, left = [acb(1)] * self.orders, [acb(1)] * self.orders
        beyond, middling = (-b * epsilon).exp(), arb(0)
        for law in self.laws:
            n, rule = law.count, self.rules.get(law)
            if rule is None:
                values = [v * law.transform(s) ** n for v, s in zip(values, orders, strict=True)]
                last = acb(c, end) if isinstance(law, Shifted) else acb(c)  # |A| at and beyond
                beyond *= abs(law.transform(last)) ** n
                continue
            kept = Sum(rule, c, KEPT)
            along, mass = kept.along(step, self.orders), kept.real()
            values = [v * a**n for v, a in zip(values, along, strict=True)]
            decays = mass if self.splits else kept.beyond(end).min(mass - rule.drop(c, end))
            beyond *= decays**n
            if rule.splits:
                part = Sum(rule, c, MIDDLING)
                pairs = zip(left, part.along(step, self.orders), along, strict=True)
                left = [v * (1 - u / a) ** n for v, u, a in pairs]
                middling += n * part.beyond(end) / mass
        if self.splits:
            values = [v * (1 - u) for v, u in zip(values, left, strict=True)]
            beyond *= middling
        total = -_term(values[0], orders[0], epsilon, self.remove) / 2
        for value, s in zip(values, orders, strict=True):
            total += _term(value, s, epsilon, self.remove)
        pi = arb.pi()
        return step / pi * total + beyond / pi * (step / end**2 + 1 / end)  # (K4, 3)


def _term(value, s, epsilon, remove):
    """Return the real part of Theorem 1's integrand."""
    return (value * (epsilon * (1 - s if remove else s)).exp() / (s * (s - 1))).real


KINDS = {
    "never_moved": NeverMoved,
    "plain": Plain,
    "one_step": OneStep,
    "grid": Grid,
    "chernoff": Chernoff,
    "line": Line,
}

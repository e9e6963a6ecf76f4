"""Upper bounds on the profile of one direction: a function for each kind of evidence.

Each takes the laws of the steps, what the document gives, whether the direction is removal, and
epsilon; it returns a ball, the upper end of which is the bound.
"""

from math import prod

from flint import acb, arb

from dp_verifier.document import need
from dp_verifier.grid import grid
from dp_verifier.laws import above, ball
from dp_verifier.rule import ALL, KEPT, LARGE, MIDDLING, SMALL, Rule, Sum

MOST_WORK = 3 * 10**8


def sometimes(chances):
    """Return the probability that an event ever happens, with a chance p in each of n steps."""
    return 1 - prod(((1 - p) ** n for n, p in chances), start=arb(1))


def never_moved(laws, given, remove, epsilon):
    """Show that hardly any step moves, or that no loss exceeds epsilon (Theorem K6)."""
    if not remove and epsilon >= -sum(law.count * law.w0.log() for law in laws):
        return arb(0)  # (K6, 1) is checked with the claim
    return sometimes((law.count, 1 - law.w0) for law in laws)


def plain(laws, given, remove, epsilon):
    """Return the profile of plain noise alone: one pair, its own reverse (Theorem 10, 3)."""
    need(all(law.plain for law in laws), "this evidence is for plain noise")
    mu = sum(law.count * (law.shift / law.sigma) ** 2 for law in laws).sqrt()
    return above(epsilon / mu - mu / 2) - epsilon.exp() * above(epsilon / mu + mu / 2)


def one_step(laws, given, remove, epsilon):
    """Return the profile of one step where the loss at a threshold is at most epsilon (D13)."""
    law, x = laws[0], ball(given.threshold)
    need(len(laws) == law.count == 1, "this evidence is for one step")
    first, second, ratio = law.mass_above(x, True), law.mass_above(x, False), law.ratio(x)
    if not remove:
        first, second, ratio = 1 - second, 1 - first, 1 / ratio
    need(ratio.log() <= epsilon, "threshold: the loss there must be at most epsilon")
    return first - ratio * second


def windowed(laws, given, remove, epsilon):
    """Return one moment's bound, or a line's, and what is outside the windows (K4)."""
    paths, orders = given.rules, getattr(given, "orders", 1)
    need([not path for path in paths] == [law.plain for law in laws], "plain noise has no rule")
    nodes, pairs = sum(path.nodes for path in paths if path), list(zip(laws, paths, strict=True))
    terms = sum(law.size * (u.nodes + len(u.decay or ())) for law, u in pairs if u)
    work = (orders + 100) * nodes + 600 * (terms + orders * len(laws))
    need(work <= MOST_WORK, "the nodes or the shifts are too many")
    steps = [(law, path and Rule(law, path)) for law, path in pairs]
    rules = [rule for _, rule in steps if rule]
    need(remove or not any(rule.labelled for rule in rules), "labels are for removal")  # (K3, 2)
    b = ball(given.distance)
    order = 1 + b if remove else -b
    back = getattr(given, "reverse", None)
    found = outside(rules, remove) + large(steps, rules, back, epsilon)
    if given.kind == "chernoff":
        return found + chernoff(b, -b * epsilon) * moments(steps, order, KEPT)
    splits = any(rule.splits for rule in rules)
    need(splits == (given.small is not None), "small and a lower threshold go together")
    if splits:  # (K3): outcomes whose steps are all small
        small = ball(given.small)
        found += chernoff(small, -small * epsilon) * moments(steps, 1 + small, SMALL)
    return found + line(steps, order, b, given, remove, epsilon, splits)


def chernoff(b, exponent):
    """Return e^exponent b^b / (1 + b)^(1 + b), b > 0 (Theorem 5, 2)."""
    return (exponent + b * b.log() - (1 + b) * (1 + b).log()).exp()


def moments(steps, order, kind):
    """Return the product of A(order)^n of steps of a kind."""
    ones = [Sum(rule, order, kind).real if rule else law.transform(order) for law, rule in steps]
    return prod((u**law.count for u, (law, _) in zip(ones, steps, strict=True)), start=arb(1))


def outside(rules, remove):
    """Return a bound on the outcomes with a kept step outside its window (K3)."""
    low = sum((u.law.count * above(-u.low / u.law.sigma) for u in rules), arb(0))
    high = [u.label(KEPT, u.high) * u.law.mass_above(u.high, remove) for u in rules]
    return low + sometimes((u.law.count, p) for u, p in zip(rules, high, strict=True))


def large(steps, rules, reverse, epsilon):
    """Return a bound on the outcomes with a large step: (K3) in closed form, or less."""
    marked = [u for u in rules if u.labelled]  # the others are never large: their 1 - chi is 0
    cut = [(u.law, u.law.count, u.upper, u.wide) for u in marked]
    p = sometimes((n, law.mass_above(x, True, wide)) for law, n, x, wide in cut)
    q = sometimes((n, law.mass_above(x, False, wide)) for law, n, x, wide in cut)
    if not reverse:
        return p
    m = ball(reverse)
    jumps = sum(u.law.count * (u.over_cells(-m, 0, LARGE) + u.outside(m, LARGE)) for u in marked)
    back = chernoff(m, (m + 1) * epsilon) * moments(steps, -m, ALL) * jumps
    return p.min(p - epsilon.exp() * q + back)


def line(steps, c, b, given, remove, epsilon, splits):
    """Return Theorem 2's trapezoid sum on Re s = c, and a bound on the orders beyond it (K4)."""
    # b, step > 0 (K4, 2; Theorem 1, 3; Theorem 2, 2); transforms are entire (Theorem 2, 3).
    step, orders = ball(given.step), given.orders
    places, end = [acb(c, step * k) for k in range(orders)], step * orders
    values, left = [acb(1)] * orders, [acb(1)] * orders
    beyond, middling = (-b * epsilon).exp(), arb(0)
    for law, rule in steps:
        if rule is None:
            along, most = [law.transform(s) for s in places], abs(law.transform(acb(c, end)))
        else:
            kept = Sum(rule, c, KEPT)
            along, mass = kept.along(step, orders), kept.real
            most = mass if splits else kept.beyond(end).min(mass - rule.drop(c, end))
        values = [v * u**law.count for v, u in zip(values, along, strict=True)]
        beyond *= most**law.count
        if rule and rule.splits:
            part = Sum(rule, c, MIDDLING)
            pairs = zip(left, part.along(step, orders), along, strict=True)
            left = [v * (1 - u / a) ** law.count for v, u, a in pairs]
            middling += law.count * part.beyond(end) / mass
    if splits:
        values = [v * (1 - u) for v, u in zip(values, left, strict=True)]
        beyond *= middling
    # (Theorem 1)
    kernel = [(epsilon * (1 - s if remove else s)).exp() / (s * (s - 1)) for s in places]
    terms = [(v * u).real for v, u in zip(values, kernel, strict=True)]
    total = step * (sum(terms) - terms[0] / 2)
    return (total + beyond * (step / end**2 + 1 / end)) / arb.pi()  # (K4, 3)


BOUNDS = {"never_moved": never_moved, "plain": plain, "one_step": one_step, "grid": grid}
BOUNDS |= {"chernoff": windowed, "line": windowed}

"""Privacy profiles of compositions in ball arithmetic, from their definitions.

Shares no code with the package. Arguments are exact: floats, integers or rationals.
"""

from fractions import Fraction
from math import comb, factorial

from flint import arb, ctx, fmpq


def ball(x):
    if isinstance(x, Fraction):
        return arb(fmpq(x.numerator, x.denominator))
    return arb(x)


def positive(x):
    """max(x, 0); the sign of x must be certain, or x tiny."""
    if x > 0:
        return x
    if x < 0:
        return arb(0)
    return x.union(arb(0))


precision = ctx.workprec


def randomized_response(eps0, count, epsilon, bits=400):
    """Binary randomised response at eps0, count times."""
    with precision(bits):
        e0, e = ball(eps0), ball(epsilon)
        mass = (1 / (1 + (-e0).exp())) ** count
        odds = (-e0).exp()
        total = arb(0)
        # from the largest loss down; every factor is positive, so nothing cancels
        for j in range(count, -1, -1):
            loss = (2 * j - count) * e0
            if loss <= e:
                break
            total += mass * positive(1 - (e - loss).exp())
            mass = mass * odds * j / (count - j + 1)
        return total


def gaussian(mu, epsilon, count=1, bits=400):
    """Gaussian of sensitivity over noise mu, count times."""
    with precision(bits):
        m, e = ball(mu) * arb(count).sqrt(), ball(epsilon)
        phi = lambda x: (-x / arb(2).sqrt()).erfc() / 2
        return phi(m / 2 - e / m) - e.exp() * phi(-m / 2 - e / m)


def laplace(b, count, epsilon, bits=1500):
    """Laplace noise of scale b, sensitivity one, count times.

    One loss has atoms 1/2 at t = 1/b and e^{-t}/2 at -t, and the density e^{-(t - l)/2}/4 between;
    the sum of m uniform losses has Irwin and Hall's density, integrated in closed form.
    """
    with precision(bits):
        t, e = 1 / ball(b), ball(epsilon)
        total = arb(0)
        for top in range(count + 1):
            for bottom in range(count + 1 - top):
                m = count - top - bottom
                ways = factorial(count) // (factorial(top) * factorial(bottom) * factorial(m))
                weight = ways * arb(2) ** (-top - bottom) * (-bottom * t).exp()
                total += weight * _between(m, t, e - (top - bottom) * t)
        return total


def _between(m, t, e):
    """E[(1 - e^{e - S})_+] over the sum S of m losses between the atoms (a measure)."""
    if m == 0:
        return positive(1 - e.exp())
    if not e < m * t:
        return arb(0)
    low = e if e > -m * t else -m * t
    total = arb(0)
    for j in range(m + 1):
        shift = (m - 2 * j) * t
        # y = s + shift >= 0, s from low to m t
        start = low + shift
        if not start > 0:
            start = arb(0)
        end = m * t + shift
        if not end > start:
            continue
        up = _power_exp(m - 1, arb(1) / 2, start, end) * (-shift / 2).exp()
        down = _power_exp(m - 1, arb(-1) / 2, start, end) * (shift / 2).exp() * e.exp()
        total += (-1) ** j * comb(m, j) * (up - down)
    return total * arb(4) ** (-m) * (-m * t / 2).exp() / factorial(m - 1)


def _power_exp(n, c, low, high):
    def primitive(y):
        terms = (
            (-1) ** (n - i) * arb(factorial(n) // factorial(i)) * y**i / c ** (n - i + 1)
            for i in range(n + 1)
        )
        return (c * y).exp() * sum(terms, arb(0))

    return primitive(high) - primitive(low)

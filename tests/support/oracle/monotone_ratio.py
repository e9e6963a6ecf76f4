"""Profiles of Gaussian laws in ball arithmetic where the likelihood ratio rises with the noise.

The best test is a threshold. Its place is found in numbers as long as the precision; the test at
that place is a bound from below, and the profile is flat there: what is missing is of second order.
Shares no code with the package.
"""

from flint import arb, ctx

ZERO, ONE = arb(0), arb(1)


def _above(x):
    return (x / arb(2).sqrt()).erfc() / 2


def _grown(e, x):
    """e^ε times the normal tail above x, where either alone may leave every exponent."""
    if not x > 8:
        return e.exp() * _above(x)
    half = arb(1) / 2
    return (e - x * x / 2).exp() * (x * x / 2).hypgeom_u(half, half) / (2 * arb.pi().sqrt())


def gaussian(mu):
    """Return the profile of N(μ, 1) against N(0, 1), for a ball μ."""

    def profile(e):
        a, b = e / mu - mu / 2, e / mu + mu / 2
        return _grown(ZERO, a) - _grown(e, b)

    return profile


def threshold(sigma, rows, level):
    """Where Σ w e^{d(2x - d)/2σ²}, d > 0, has the logarithm ``level``: Newton from the right."""
    x = min(((level - w.log()) * sigma**2 / d + d / 2).mid() for d, w in rows)
    for _ in range(400):
        terms = [(w.log() + d * (2 * x - d) / (2 * sigma**2), d) for d, w in rows]
        top = max(term.mid() for term, _ in terms)
        parts = [((term - top).exp(), d) for term, d in terms]
        total = sum((p for p, _ in parts), ZERO)
        slope = sum((p * d for p, d in parts), ZERO) / total / sigma**2
        step = ((top + total.log() - level) / slope).mid()
        x = (x - step).mid()
        if abs(step) <= (abs(x) + sigma) * arb(2) ** (8 - 0.9 * ctx.prec):
            break
    return x


def shifted(sigma, shifts, weights):
    """Return the profiles of Σ w_j N(d_j, σ²) against N(0, σ²), and of the reverse; d_j >= 0.

    The weights add up to one.
    """
    rows = [(d, w) for d, w in zip(shifts, weights, strict=True) if w != 0]
    moving = [(d, w) for d, w in rows if d != 0]
    moved = sum((w for _, w in moving), ZERO)

    def mixed(at, side):
        return sum((w * side((at - d) / sigma) for d, w in rows), ZERO)

    def below(x):
        return _above(-x)

    def removed(e):
        # The ratio is e^ε where that of the shifts is e^ε - w_0.
        if not (level := arb(e).expm1() + moved) > 0:
            return -arb(e).expm1()
        at = threshold(sigma, moving, level.log())
        return (mixed(at, _above) - _grown(arb(e), at / sigma)).max(ZERO)

    def added(e):
        if not (level := (-arb(e)).expm1() + moved) > 0:
            return ZERO
        at = threshold(sigma, moving, level.log())
        return (below(at / sigma) - arb(e).exp() * mixed(at, below)).max(ZERO)

    return removed, added


def sampled(sigma, rate):
    """Return the same of one Poisson-sampled Gaussian release."""
    return shifted(arb(sigma), (ZERO, ONE), (1 - arb(rate), arb(rate)))


def _bisected(rising, start):
    low, high = -start, start
    for _ in range(40):
        if rising(high) > 0:
            break
        low, high = high, 4 * high
    for _ in range(ctx.prec):
        middle = ((low + high) / 2).mid()
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)
    return high


def replaced(sigma, q):
    """Return the profile of (1-q)N(0,σ²) + qN(1,σ²) against (1-q)N(0,σ²) + qN(-1,σ²)."""
    rest = 1 - q

    def profile(e):
        e = arb(e)

        def mixed(u):
            return u + (q + rest * (-u).exp()).log() if u > 0 else (rest + q * u.exp()).log()

        def over(x):
            return mixed((2 * x - 1) / (2 * sigma**2)) - mixed((-2 * x - 1) / (2 * sigma**2)) - e

        start = sigma**2 * (e + 2 - q.log() - rest.log()) + 1 + sigma
        at = _bisected(over, start.mid())
        p = rest * _above(at / sigma) + q * _above((at - 1) / sigma)
        r = rest * _above(at / sigma) + q * _above((at + 1) / sigma)
        return (p - e.exp() * r).max(ZERO)

    return profile


def one_draw(sigma, q):
    """The same for one draw of n records, of which all but one are opposite: shifts -1 and 1."""

    def profile(e):
        base = gaussian(2 / sigma)
        # q N(1) + (1-q) N(-1) against N(-1): the mixture of an amplification.
        return q * base((arb(e).expm1() / q).log1p())

    return profile

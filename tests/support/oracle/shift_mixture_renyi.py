"""Reference Rényi divergence of Gaussian noise whose record shifts it at random.

P = sum of w_j N(d_j, s^2) against Q = N(0, s^2), or reversed; the first weight is what the others
leave of one. E_Q[(dP/dQ)^c] by Arb's integrator (adaptive Gauss-Legendre in ball arithmetic), over
the noise where the integrand is not far below its largest value on a mesh; the enclosure is widened
by 10^-20 for the rest.
"""

import math

from flint import acb, arb, ctx

DIGITS = 20


def divergence(s, shifts, weights, order, add):
    """A ball that contains the divergence."""
    # What is asked for is about (order - 1) times the square of the weights, beside one.
    small = max(-math.log2(order - 1.0), 0.0) - 2.0 * min(math.log2(max(weights[1:])), 0.0)
    small += 2.0 * max(math.log2(s / shifts[-1]), 0.0)
    ctx.prec = 110 + int(small) + int(2.0 * math.log2(order))
    left_out = 65.0 + math.log(2.0) * small
    reach = s * math.sqrt(2.0 * left_out + 10.0)
    S = arb(s)
    D, W = [arb(d) for d in shifts], [arb(w) for w in weights]
    W[0] = 1 - sum(W[1:], arb(0))
    C = 1 - arb(order) if add else arb(order)
    rate = 1 / (2 * S * S)
    front = 1 / (S * (2 * arb.pi()).sqrt())

    def ratio(x):
        terms = (w * (d * (2 * x - d) * rate).exp() for d, w in zip(D, W, strict=True))
        return sum(terms, acb(0))

    heights = {}

    def height(x):
        if x not in heights:
            at = arb(x)
            heights[x] = float(C * ratio(acb(at)).real.log() - at * at * rate)
        return heights[x]

    def pull(x):
        """The order times the posterior mean of the shift, where modes have their x."""
        at = arb(x)
        terms = [w * (d * (2 * at - d) * rate).exp() for d, w in zip(D, W, strict=True)]
        return order * float(sum(map(arb.__mul__, D, terms), arb(0)) / sum(terms, arb(0)))

    mesh = [
        (a + (b - a) * i / n, a + (b - a) * (i + 1) / n)
        for a, b in _intervals(s, shifts, order, add, height, pull, reach)
        for n in [max(8, math.ceil((b - a) / s))]
        for i in range(n)
    ]
    top = max(height(x) for ends in mesh for x in ends)
    shift = arb(top)

    def integrand(x, _):
        value = ratio(x)
        # The logarithm is cut where the ratio is negative.
        if not value.real > 0 and value.imag.contains(0):
            return acb(float("nan"))
        return (C * value.log() - x * x * rate - shift).exp() * front

    total = acb(0)
    tight = arb(2) ** (10 - ctx.prec)
    for a, b in mesh:
        if max(height(a), height(b)) > top - left_out - 30.0:
            total += acb.integral(integrand, a, b, rel_tol=tight, abs_tol=tight)
    cumulant = total.real.log() + shift
    found = cumulant / (arb(order) - 1)
    return found + abs(found) * arb(0, arb(10) ** -DIGITS)


def _intervals(s, shifts, order, add, height, pull, reach):
    """Where the noise may matter: from every order times a shift to a mode, or at the one mode."""
    if add:
        low, high = -s, 0.0

        def rises(x):
            return height(x + 1e-3 * s) > height(x - 1e-3 * s)

        while not rises(low):
            low *= 2.0
        for _ in range(80):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if rises(middle) else (low, middle)
        centres = [low]
    else:
        centres = [0.0, *(order * d for d in shifts)]
        for x in centres.copy():
            for _ in range(200):
                x = pull(x)
            centres.append(x)
        if order < 8.0:
            span = int((order * shifts[-1]) / s)
            centres += [k * s for k in range(0, span, 20)] if span < 4000 else []
    merged = []
    for a, b in sorted((x - reach, x + reach) for x in centres):
        if merged and a <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], b)
        else:
            merged.append([a, b])
    return merged

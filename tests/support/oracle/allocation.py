"""Puts and calls on a mean of lognormal variables, at many digits; shares nothing with the package.

The transform of the put along Re z = c: all outcomes, no threshold, every expectation by the
trapezoid rule along a line in the complex plane on which the integrand does not oscillate. Sums
stop where terms are below 1e-36 of the first; aliases and quadrature errors are below 1e-26.
"""

from flint import acb, arb, ctx


def allocation_delta(noise, steps, epsilon, add, nodes_apart="0.05"):
    """Return H(epsilon) of one of ``steps`` Gaussian releases as an arb number."""
    ctx.prec = 160
    mu, times = 1 / arb(noise), arb(steps)
    strike = (-arb(epsilon)).exp() if add else arb(epsilon).exp()
    spread = (((mu * mu).exp() - 1) / times).sqrt()
    c = 1.5 / (spread + (abs(strike - 1) if not add else 0))
    c = c if bool(c > 1) else arb(1)
    # E(K - S)₊ at K + p, K + 2p, … is added, e^{-cp} times
    period = 80 / c + strike
    step = 2 * arb.pi() / period
    total, first = acb(0), None
    k = quiet = 0
    while quiet < 4:
        z = acb(c, step * k)
        term = (z * strike).exp() * _mean(mu, z / times, nodes_apart) ** steps / (z * z)
        first = first or abs(term)
        total += term / 2 if k == 0 else term
        quiet = quiet + 1 if bool(abs(term) < first * arb("1e-36")) else 0
        k += 1
    put = (step / arb.pi()) * total.real
    ctx.prec = 160
    return put / strike if add else put + 1 - strike


def _mean(mu, w, apart):
    """Return E e^{-wY}: the path turns Y by minus the argument of w."""
    turn = w.arg() * arb("0.97")
    h, low = arb(apart), -14
    total = acb(0)
    shift = -turn / mu
    size = abs(w)
    for j in range(round((28 + 2 * float(mu)) / float(apart)) + 1):
        t = acb(low + h * j, shift)
        y = (mu * t - mu * mu / 2).exp()
        if bool((size * abs(y)) > 400) and bool((w * y).real > 200):
            break
        total += (-t * t / 2 - w * y).exp()
    return total * h / (2 * arb.pi()).sqrt()

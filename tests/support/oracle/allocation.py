"""Puts and calls on a mean of lognormal variables, at many digits; shares nothing with the package.

The transform of the put along Re z = c: all outcomes, no threshold, every expectation by the
trapezoid rule along a line in the complex plane on which the integrand does not oscillate. Sums
stop where terms are below 1e-36 of the first; aliases and quadrature errors are below 1e-26.
"""

import math

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


def put_of_few(noise, steps, kappa, fineness=1):
    """Return E(K - S)₊ at K = 1 + kappa of few ratios, to some 30 digits, as an arb number.

    By Hankel's contour, two rays and an arc, whose pieces are integrals to 1e-40 of plain sums; the
    package takes a parabola. Nothing is bounded: a larger ``fineness`` must give the same digits.
    """
    ctx.prec = 200
    mu, times, strike = 1 / arb(noise), arb(steps), 1 + arb(kappa)
    log_radius = min(
        (float(strike) * steps * math.exp(x) + steps * _log_real(float(mu), x) - x, x)
        for x in (0.25 * i for i in range(-100, 40))
    )[1]
    angle = arb(13) / 5

    def value(z):
        return (z * strike).exp() * _mean(mu, z / times, "0.04") ** steps / (z * z)

    radius = arb(math.exp(log_radius)) * times
    total = arb(0)
    # tanh-sinh on the arc from 0 to the angle, and on the ray in the logarithm of the radius.
    h = arb("0.06") / fineness
    for k in range(-56 * fineness, 56 * fineness + 1):
        u = arb.pi() / 2 * (h * k).sinh()
        weight = h * arb.pi() / 2 * (h * k).cosh() / u.cosh() ** 2
        arc = angle / 2 * (1 + u.tanh())
        z = radius * acb(0, arc).exp()
        total += (value(z) * z).real * weight * angle / 2
        far = (1 + u.tanh()) * arb(5)
        z = radius * far.exp() * acb(0, angle).exp()
        total += (value(z) * z).imag * weight * arb(5)
    return total / arb.pi()


def _log_real(mu, log_rate):
    """Return about log E e^{-rY}."""
    rate, total = math.exp(log_rate), 0.0
    for j in range(-120, 121):
        t = 0.1 * j
        total += 0.1 * math.exp(-0.5 * t * t - rate * math.exp(min(mu * t - 0.5 * mu * mu, 600.0)))
    return math.log(max(total / math.sqrt(2.0 * math.pi), 1e-300))

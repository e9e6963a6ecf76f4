"""What mechanisms must agree with: laws of the privacy loss in mpmath, written from definitions.

Shares no code with the package. A law is a function ``below(t)`` -> (P{L <= t}, Q{L <= t},
P{L > t}, Q{L > t}) of a loss t, in forty digits.
"""

import math
from itertools import pairwise

import numpy as np
from mpmath import mp, mpf

mp.dps = 40


def tail(x):
    """Return P{N(0, 1) > x}."""
    return mp.erfc(x / mp.sqrt(2)) / 2


def sampled_step(q, sigma, epsilon, remove):
    """H of one Poisson-sampled Gaussian step at any real ε, from two Gaussian tails."""
    odds = (mp.expm1(epsilon if remove else -epsilon) + q) / q
    if odds <= 0:
        return -mp.expm1(epsilon) if remove else mpf(0)
    x = sigma * sigma * mp.log(odds) + mpf(1) / 2
    if remove:
        mass_q, mass_1 = tail(x / sigma), tail((x - 1) / sigma)
        return (1 - q) * mass_q + q * mass_1 - mp.exp(epsilon) * mass_q
    mass_q, mass_1 = tail(-x / sigma), tail((1 - x) / sigma)
    return mass_q - mp.exp(epsilon) * ((1 - q) * mass_q + q * mass_1)


def gaussian_at(x, sigma, parts):
    """Return the four probabilities of x' <= x, x' > x for Σ w·N(s, σ²) against N(0, σ²)."""
    p_below = sum(w * tail(-(x - s) / sigma) for s, w in parts)
    p_above = sum(w * tail((x - s) / sigma) for s, w in parts)
    return p_below, tail(-x / sigma), p_above, tail(x / sigma)


def mixture_loss(x, sigma, parts):
    return mp.log(sum(w * mp.exp((2 * s * x - s * s) / (2 * sigma**2)) for s, w in parts))


def mixture(sigma, parts):
    """The law of Σ w·N(s, σ²) against N(0, σ²), s >= 0."""
    sigma = mpf(sigma)
    parts = [(mpf(s), mpf(w)) for s, w in parts]
    least = mp.log(parts[0][1]) if parts[0][0] == 0 else mp.ninf

    def below(t):
        t = mpf(t)
        if t <= least:
            return mpf(0), mpf(0), mpf(1), mpf(1)
        low, high = mpf(-200) * sigma, mpf(200) * sigma + 10
        for _ in range(260):
            middle = (low + high) / 2
            if mixture_loss(middle, sigma, parts) <= t:
                low = middle
            else:
                high = middle
        return gaussian_at(low, sigma, parts)

    return below


def laplace(scale, distance):
    """The law of Lap(distance) against Lap(0), by the position of the noise."""
    b, d = mpf(scale), mpf(distance)

    def cdf(x, centre):
        z = (x - centre) / b
        return mp.exp(z) / 2 if z <= 0 else 1 - mp.exp(-z) / 2

    def sf(x, centre):
        return cdf(-x, -centre)

    def below(t):
        t = mpf(t)
        if t < -d / b:
            return mpf(0), mpf(0), mpf(1), mpf(1)
        if t >= d / b:
            return mpf(1), mpf(1), mpf(0), mpf(0)
        x = (t * b + d) / 2
        return cdf(x, d), cdf(x, 0), sf(x, d), sf(x, 0)

    return below


def atoms(rows):
    """The law of outcomes (p, q), all positive."""
    losses = sorted((mp.log(mpf(p) / mpf(q)), mpf(p), mpf(q)) for p, q in rows)

    def below(t):
        low = [row for row in losses if row[0] <= t]
        high = [row for row in losses if row[0] > t]
        return tuple(
            mp.fsum(row[column] for row in rows_)
            for rows_, column in ((low, 1), (low, 2), (high, 1), (high, 2))
        )

    return below


def discrete(weight, distance, reach):
    """Outcomes of integer noise with weights ``weight(x)`` around ``distance`` and 0."""
    total = mp.fsum(weight(x) for x in range(-reach, reach + 1))
    return [
        (weight(x - distance) / total, weight(x) / total)
        for x in range(-reach, reach + distance + 1)
        if weight(x - distance) / total > mpf(10) ** -320 or weight(x) / total > mpf(10) ** -320
    ]


def discrete_gaussian(sigma, distance):
    reach = math.ceil(39 * sigma)
    return discrete(lambda x: mp.exp(-(mpf(x) ** 2) / (2 * mpf(sigma) ** 2)), distance, reach)


def sampled(below, q, add):
    """The law of the Poisson-sampled pair, from the law of the pair itself."""
    q = mpf(q)

    def remove(t):
        t = mpf(t)
        inside = mp.expm1(t) / q
        if inside < -1 and t < mp.log1p(-q):
            return mpf(0), mpf(0), mpf(1), mpf(1)
        p0, q0, p1, q1 = below(mp.log1p(inside) if inside > -1 else mp.ninf)
        return (1 - q) * q0 + q * p0, q0, (1 - q) * q1 + q * p1, q1

    def reverse(t):
        t = mpf(t)
        if t >= -mp.log1p(-q):
            return mpf(1), mpf(1), mpf(0), mpf(0)
        p0, q0, p1, q1 = below(-mp.log1p(mp.expm1(-t) / q))
        return p0, (1 - q) * p0 + q * q0, p1, (1 - q) * p1 + q * q1

    return reverse if add else remove


def cells(below, edges):
    """Return the masses of the cells between edges, under P and under Q."""
    at = [below(t) for t in edges]
    p, q = [at[0][0]], [at[0][1]]
    for (a0, b0, a1, b1), (c0, d0, c1, d1) in pairwise(at):
        p.append(c0 - a0 if c0 < a1 else a1 - c1)
        q.append(d0 - b0 if d0 < b1 else b1 - d1)
    return [*p, at[-1][2]], [*q, at[-1][3]]


def agrees(pair, law, edges):
    """Masses must lie between the truth for edges moved apart and for edges moved together."""
    found = pair.masses(np.array(edges))
    shift, slack = mpf(pair.loss_error), mpf(found.relative_error)
    assert slack < 1e-9
    inner_low, outer_low = [mpf(t) + shift for t in edges], [mpf(t) - shift for t in edges]
    for column in (0, 1):
        got = found.p if column == 0 else found.q
        assert len(got) == len(edges) + 1
        for i, mass in enumerate(got):
            low = [outer_low[i - 1], inner_low[i - 1]] if i else [None, None]
            high = [inner_low[i], outer_low[i]] if i < len(edges) else [None, None]
            widest, narrowest = (_cell(law, low[k], high[k], column) for k in (0, 1))
            assert mpf(float(mass)) <= widest * (1 + slack) + mpf("1e-300"), (i, column)
            assert mpf(float(mass)) >= narrowest * (1 - slack) - mpf("1e-300"), (i, column)


def _cell(law, low, high, column):
    if low is None:
        return law(high)[column]
    if high is None:
        return law(low)[column + 2]
    if high <= low:
        return mpf(0)
    a, b = law(low), law(high)
    return b[column] - a[column] if b[column] < a[column + 2] else a[column + 2] - b[column + 2]


def renyi_of_atoms(rows, order):
    order = mpf(order)
    moment = mp.fsum(mpf(p) ** order * mpf(q) ** (1 - order) for p, q in rows)
    return mp.log(moment) / (order - 1)


def renyi_of_densities(p, q, order, points):
    """Return D_order by quadrature of two densities between break points."""
    order = mpf(order)
    moment = mp.quad(lambda x: p(x) ** order * q(x) ** (1 - order), points)
    return mp.log(moment) / (order - 1)

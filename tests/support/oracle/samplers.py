"""Brute force for the samplers: quadrature and enumeration, sharing nothing with the package."""

from itertools import product
from math import comb

import numpy as np
from mpmath import exp, mp, mpf
from scipy.special import ndtr

mp.dps = 40


def black_scholes(strike, deviation):
    """E(Y - K)₊ and E(K - Y)₊ for a log-normal Y of mean 1, whatever the sign of K."""
    with np.errstate(divide="ignore", invalid="ignore"):
        d = 0.5 * deviation - np.log(strike) / deviation
        call = ndtr(d) - strike * ndtr(d - deviation)
        put = strike * ndtr(deviation - d) - ndtr(-d)
    return np.where(strike > 0.0, call, 1.0 - strike), np.where(strike > 0.0, put, 0.0)


def allocation_profile(noise, steps, epsilon, add=False, nodes=240):
    """E(S - γ)₊ or E(1 - γS)₊, S the mean of ``steps`` ratios: nested trapezoid rules, steps ≤ 4.

    The last ratio is integrated in closed form (Black and Scholes), which leaves a smooth function
    of the others.
    """
    z = np.linspace(-9.0, 9.0 + 1.0 / noise, nodes)
    w = (z[1] - z[0]) * np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
    y = np.exp(z / noise - 0.5 / noise**2)
    gamma = np.exp(epsilon) if not add else np.exp(-epsilon)
    sums, masses = np.zeros(1), np.ones(1)
    for _ in range(steps - 1):
        sums = np.add.outer(sums, y).ravel()
        masses = np.multiply.outer(masses, w).ravel()
    strike = steps * gamma - sums
    call, put = black_scholes(strike, 1.0 / noise)
    # remove: E(S - γ)₊; add: γ' E(1/γ' - S)₊ with γ' = e^ε.
    if add:
        return float(np.exp(epsilon) / steps * (masses @ put))
    return float(masses @ call / steps)


def allocation_moment(noise, steps, order):
    """E S^order by enumerating which ratio every factor is."""
    unit = 1 / mpf(noise) ** 2
    total = mpf(0)
    for factors in product(range(steps), repeat=order):
        counts = [factors.count(i) for i in range(steps)]
        total += exp(sum(j * (j - 1) for j in counts) * unit / 2)
    return total / mpf(steps) ** order


def two_of_several(noise, steps, epsilon, nodes=34):
    """E(e₂(Y)/C(T,2) - γ)₊ by trapezoid rules over all steps but one, and about its error.

    The last ratio is integrated in closed form, as in :func:`allocation_profile`.
    """

    def rule(nodes):
        z = np.linspace(-6.5, 6.5 + 2.0 / noise, nodes)
        w = (z[1] - z[0]) * np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
        y = np.exp(z / noise - 0.5 / noise**2)
        first, second, masses = np.zeros(1), np.zeros(1), np.ones(1)
        for _ in range(steps - 1):
            second = np.add(second[:, None], first[:, None] * y).ravel()
            first = np.add.outer(first, y).ravel()
            masses = np.multiply.outer(masses, w).ravel()
            kept = masses > 1e-17
            first, second, masses = first[kept], second[kept], masses[kept]
        strike = (comb(steps, 2) * np.exp(epsilon) - second) / first
        call, _ = black_scholes(strike, 1.0 / noise)
        return float(masses @ (call * first)) / comb(steps, 2)

    found = rule(nodes)
    return found, 4.0 * abs(found - rule(nodes - 7)) + 1e-9

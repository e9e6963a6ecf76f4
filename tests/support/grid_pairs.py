"""Dominating pairs for tests of the grid, each with masses of honest relative error."""

import math

import numpy as np
from scipy import special

from accountant.pairs.base import DominatingPair, Masses


def difference(lower, upper):
    """erfc-based mass of N(0, 1) between increasing points, relative accuracy in both tails."""
    a, b = np.asarray(lower), np.asarray(upper)
    with np.errstate(invalid="ignore"):
        flip = a + b > 0
    lo, hi = np.where(flip, -b, a), np.where(flip, -a, b)  # both mostly on the left
    top = special.ndtr(hi)
    with np.errstate(all="ignore"):
        mass = top - special.ndtr(lo)
        # close points: 24-point Gauss-Legendre of the density
        x, w = np.polynomial.legendre.leggauss(24)
        half, mid = 0.5 * (hi - lo), 0.5 * (hi + lo)
        near = np.isfinite(half) & (half < 0.5)
        if near.any():
            h, m = half[near], mid[near]
            s = np.zeros_like(h)
            for xi, wi in zip(x, w, strict=True):
                z = m + h * xi
                s += wi * np.exp(-0.5 * z * z)
            mass[near] = h * s / math.sqrt(2 * math.pi)
    return mass


class Atoms(DominatingPair):
    """Finitely many outcomes with masses p and q (both may hold zeros)."""

    def __init__(self, p, q, lattice=None, loss=None):
        self.p, self.q = np.asarray(p, float), np.asarray(q, float)
        if loss is None:
            with np.errstate(divide="ignore"):
                loss = np.log(self.p) - np.log(self.q)
        self.loss = np.asarray(loss)
        self._lattice = lattice

    @property
    def support(self):
        finite = self.loss[np.isfinite(self.loss)]
        return float(finite.min()) - 1e-15, float(finite.max()) + 1e-15

    @property
    def infinite_mass(self):
        return float(self.p[self.q == 0].sum())

    @property
    def lattice(self):
        return self._lattice

    def masses(self, edges):
        cell = np.searchsorted(edges, self.loss, side="left")
        size = len(edges) + 1
        return Masses(
            np.bincount(cell, self.p, size), np.bincount(cell, self.q, size), 1e-15 * len(self.p)
        )


def randomized_response(eps0):
    t = 1.0 / (1.0 + math.exp(-eps0))
    # complementary mass computed apart, so that p/q is e^{±eps0} to a few ulps
    s = 1.0 / (1.0 + math.exp(eps0))
    return Atoms([s, t], [t, s], (-eps0, 2 * eps0), [-eps0, eps0])


class Laplace(DominatingPair):
    """Noise of scale b on a query of sensitivity one: L = (|x - 1| - |x|)/b under P at 0."""

    def __init__(self, b):
        self.b, self.e = b, 1.0 / b

    @property
    def support(self):
        return -self.e, self.e

    @property
    def lattice(self):
        return -self.e, 2 * self.e

    def masses(self, edges):
        # between the atoms L = (1 - 2x)/b, x in (0, 1): P has density e^{-x/b}/(2b),
        # Q e^{-(1-x)/b}/(2b); atoms P(L=e)=1/2, P(L=-e)=e^{-1/b}/2.
        e = self.e
        t = np.clip(np.concatenate([[-np.inf], edges, [np.inf]]), -e, e)
        lo, hi = t[:-1], t[1:]
        # P mass of lo < L <= hi: e^{-(e-hi)/2}/2 - e^{-(e-lo)/2}/2
        p = 0.5 * np.exp(-(e - hi) / 2) * -np.expm1((lo - hi) / 2)
        q = 0.5 * np.exp(-(e + lo) / 2) * -np.expm1((lo - hi) / 2)
        i = np.searchsorted(edges, e, side="left")
        j = np.searchsorted(edges, -e, side="left")
        p[i] += 0.5
        q[i] += 0.5 * math.exp(-e)
        p[j] += 0.5 * math.exp(-e)
        q[j] += 0.5
        return Masses(p, q, 2e-15)


class Gaussian(DominatingPair):
    """L ~ N(mu^2/2, mu^2) under P, N(-mu^2/2, mu^2) under Q."""

    def __init__(self, mu):
        self.gap = mu

    def masses(self, edges):
        mu = self.gap
        t = np.concatenate([[-np.inf], edges, [np.inf]])
        p = difference((t[:-1] - mu * mu / 2) / mu, (t[1:] - mu * mu / 2) / mu)
        q = difference((t[:-1] + mu * mu / 2) / mu, (t[1:] + mu * mu / 2) / mu)
        return Masses(p, q, 1e-13)


class SubsampledGaussian(DominatingPair):
    """(1-q) N(0, s^2) + q N(1, s^2) against N(0, s^2), or the reverse."""

    def __init__(self, q, sigma, add=False):
        self.q, self.sigma, self.add = q, sigma, add

    @property
    def support(self):
        low = math.log1p(-self.q)
        return (-math.inf, -low) if self.add else (low, math.inf)

    def masses(self, edges):
        t = np.asarray(edges, float)
        if self.add:
            t = -t[::-1]
        s, q = self.sigma, self.q
        with np.errstate(all="ignore"):
            x = s * s * np.log1p(np.expm1(np.minimum(t, 600)) / q) + 0.5
            big = t > 600
            x[big] = s * s * (t[big] - math.log(q)) + 0.5
        x[~(t > math.log1p(-q))] = -np.inf
        x = np.concatenate([[-np.inf], x, [np.inf]]) / s
        base = difference(x[:-1], x[1:])
        shifted = difference(x[:-1] - 1 / s, x[1:] - 1 / s)
        mixed = (1 - q) * base + q * shifted
        if self.add:
            return Masses(base[::-1].copy(), mixed[::-1].copy(), 1e-12)
        return Masses(mixed, base, 1e-12)


def discrete_gaussian(sigma):
    """Integer Gaussian of scale sigma at 0 against the same at 1: losses (1 - 2x)/(2 sigma^2)."""
    n = int(37 * sigma + 3)
    x = np.arange(-n, n + 1, dtype=float)
    p = np.exp(-(x**2) / (2 * sigma**2))
    q = np.exp(-((x - 1) ** 2) / (2 * sigma**2))
    loss = (1 - 2 * x) / (2 * sigma**2)
    total = math.fsum(p)
    return Atoms(p / total, q / total, (0.5 / sigma**2, 1.0 / sigma**2), loss)

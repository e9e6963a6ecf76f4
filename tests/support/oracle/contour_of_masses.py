"""δ of many equal releases with listed masses, by plain quadrature on a line: no certificate."""

import numpy as np

__all__ = ["delta_of_masses"]


def delta_of_masses(p, q, count, epsilon, points=2001):
    """Return the expectation of (1 - e^{ε - L})_+ for the sum L of ``count`` losses log p/q.

    ``p`` and ``q`` are mpmath numbers. The line goes through the saddle point; the trapezoid rule
    on it converges geometrically, and the tail is cut where the integrand is below rounding.
    """
    from mpmath import log

    loss = np.array([float(log(a / b)) for a, b in zip(p, q, strict=True)])
    mass = np.array([float(a) for a in p])

    def cumulant(s):
        exponents = s * loss
        top = exponents.real.max()
        return top + np.log(np.sum(mass * np.exp(exponents - top)))

    low, high = 1e-6, 1e6
    for _ in range(200):  # where count·K'(s) = ε, by bisection on a numeric slope
        middle = np.sqrt(low * high)
        slope = (cumulant(middle * (1 + 1e-6)) - cumulant(middle)) / (middle * 1e-6)
        low, high = (middle, high) if count * slope < epsilon else (low, middle)
    s = low
    weights = mass * np.exp(s * loss - (s * loss).max())
    weights /= weights.sum()
    spread = np.sqrt(count * (weights @ loss**2 - (weights @ loss) ** 2))
    u = np.linspace(0.0, 14.0 / spread, points)
    transform = np.array([weights @ np.exp(1j * v * loss) for v in u])
    z = s + 1j * u
    values = (transform**count * np.exp(-1j * u * epsilon) / (z * (z + 1.0))).real
    scale = np.exp(count * cumulant(s) - s * epsilon)
    return float(scale * u[1] * (values.sum() - 0.5 * values[0]) / np.pi)

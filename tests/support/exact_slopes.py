"""Slopes of the convex losses in as many digits as mpmath is told, from their formulas."""

import mpmath as mp

from accountant.learn.convex.losses import Huber, HuberHinge, Logistic, Softmax


def exact_slopes(loss, u, label):
    """Return the slopes of a record's loss at its scores, one a score."""
    if isinstance(loss, Softmax):
        e = [mp.exp(v - max(u)) for v in u]
        return [v / mp.fsum(e) - t for v, t in zip(e, label, strict=True)]
    (u,), y = u, mp.mpf(label)
    if isinstance(loss, Logistic):
        return [-y / (1 + mp.exp(y * u))]
    if isinstance(loss, Huber):
        t = mp.mpf(loss.threshold)
        return [max(-t, min(t, u - y))]
    if isinstance(loss, HuberHinge):
        h = mp.mpf(loss.half_width)
        return [-y * max(mp.mpf(0), min(mp.mpf(1), (1 - y * u + h) / (2 * h)))]
    return [mp.exp(min(u, mp.mpf(loss.max_score))) - y]

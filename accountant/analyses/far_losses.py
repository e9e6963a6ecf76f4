"""Losses whose exponentials overflow, which the Rényi analysis answers for and no grid reaches."""

from __future__ import annotations

from accountant.pairs.base import DominatingPair, has_rdp

# Losses beyond it, in nats.
FAR = 300.0


def is_far(pair: DominatingPair) -> bool:
    """Tell whether a single loss exceeds the range of the grid's exponentials."""
    return has_rdp(pair) and pair.loss_atoms is None and pair.finite_rdp(1.0001) > FAR

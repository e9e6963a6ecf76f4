"""Amplification of local reports by shuffling."""

from __future__ import annotations

from accountant.mechanisms import ShuffledResponses


def shuffled_epsilon(
    epsilon: float, *, dataset_size: int, delta: float, k: int | None = None
) -> float:
    """Return the central ε at ``delta`` of shuffled reports, all made by one ε-private randomiser.

    Parameters
    ----------
    epsilon : float
        Of the randomiser that all users share, in the local model.
    dataset_size : int
        Number of users, each with one report.
    delta : float
        In (0, 1).
    k : int, optional
        When the randomiser is k-ary randomised response.

    Notes
    -----
    *Guarantee.* That of :class:`ShuffledResponses`, and under its assumptions (Theorem P14 of
    docs/theorems_selection.md): randomisers of the users' own, each ε-private, are not covered.

    Examples
    --------
    >>> shuffled_epsilon(1.0, dataset_size=10_000, delta=1e-6) < 0.1
    True
    """
    return ShuffledResponses(epsilon, dataset_size=dataset_size, k=k).epsilon(delta)

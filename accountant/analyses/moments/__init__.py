"""Moments of the privacy loss that a filter may add up (Theorem L17).

``truncated``
    Upper bounds on exponential moments of the losses up to an end, and on the mass beyond it.
``mixture``
    Whether sums of such moments at several orders keep an (ε, δ).
"""

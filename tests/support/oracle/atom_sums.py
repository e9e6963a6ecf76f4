"""Profiles of sums of finitely many losses in ball arithmetic: every outcome, one by one.

Shares no code with the package. Losses and masses are doubles, taken to be exact.
"""

from math import comb

from flint import arb

from tests.support.oracle.composed import precision


def profile(parts, epsilon, bits=200):
    """Return E[(1 - e^{ε - Σ L})₊] over parts (losses, masses, count) as a ball.

    Where ε is itself a sum of losses, the ball has both of what lies on either side.
    """
    with precision(bits):
        end, total = arb(epsilon), arb(0)
        rows = [
            (arb(loss), arb(mass), first, count)
            for losses, masses, count in parts
            for first, (loss, mass) in _last_marked(losses, masses)
        ]

        def walk(place, left, weight, loss):
            nonlocal total
            if place == len(rows):
                gap = end - loss
                if not gap > 0:
                    term = -gap.expm1()
                    total += weight * (term if gap < 0 else term.union(arb(0)))
                return
            value, mass, is_last, _ = rows[place]
            for n in [left] if is_last else range(left + 1):
                following = rows[place + 1][3] if is_last and place + 1 < len(rows) else left - n
                walk(place + 1, following, weight * comb(left, n) * mass**n, loss + n * value)

        walk(0, rows[0][3], arb(1), arb(0))
        return total


def _last_marked(losses, masses):
    return [
        (place == len(losses) - 1, (loss, mass))
        for place, (loss, mass) in enumerate(zip(losses, masses, strict=True))
    ]

"""What a plan leaves to Gaussian releases that are chosen as one goes (Theorem L14)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from accountant.errors import AccountantError
from accountant.ledger import evaluation
from accountant.mechanisms.base import Mechanism

# The last halving of the search costs this part of μ at most.
_HALVINGS = 24


def squared_mu_beside(
    menu: Sequence[tuple[Mechanism, int]], epsilon: float, delta: float
) -> Fraction | None:
    """Return a sum of μ² that the product with a menu certifies within (ε, δ); None for no plan.

    The product of the menu's pairs and one Gaussian pair is composed exactly; its profile grows
    with μ, so the largest μ is searched for, and the last composition that fits counts.
    """
    from accountant.calibration import calibrate_sigma
    from accountant.mechanisms import Gaussian

    relation = menu[0][0].relation

    def fits(sigma: float | None) -> bool:
        rest = () if sigma is None else ((Gaussian(sigma, relation=relation), 1),)
        try:
            return evaluation.epsilon((*menu, *rest), delta) <= epsilon
        except AccountantError:
            return False  # what could not be certified is too dear

    if not fits(None):
        return None
    alone = calibrate_sigma(epsilon, delta)
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if fits(alone / middle) else (low, middle)
    return 1 / Fraction(alone / low) ** 2 if low > 0.0 else Fraction(0)

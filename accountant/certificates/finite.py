"""Laws that a certificate names and the checker puts on a grid, discrete ones and Laplace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from accountant.mechanisms.discrete import DiscreteGaussianPair, DiscreteLaplacePair
from accountant.mechanisms.laplace import LaplacePair
from accountant.mechanisms.user_defined import PMFPair
from accountant.pairs.base import DominatingPair
from accountant.pairs.response import ResponsePair
from accountant.sampling.sampled_atoms import SampledAtoms
from accountant.sampling.sampled_pairs import SampledPair

MOST_LISTED = 2000


@dataclass(frozen=True)
class Law:
    """``count`` releases of a law, described as the document has it."""

    described: tuple[tuple[str, Any], ...]
    count: int

    def listed(self) -> dict[str, Any]:
        """Return the part as the document has it."""
        return dict(self.described) | {"count": self.count}


def law_of(pair: DominatingPair, count: int, *, reverse: bool) -> Law | None:
    """Return the law of a pair, or of one that is the second direction of a release."""
    found = _described(pair, reverse)
    return None if found is None else Law(tuple(found.items()), count)


def _described(pair: DominatingPair, reverse: bool) -> dict[str, Any] | None:
    if isinstance(pair, SampledPair | SampledAtoms):
        # The sample of the inner pair, which is that of removal; of addition it is the reverse.
        inner = _described(pair.reverse if pair.add and pair.reverse else pair.inner, False)
        return None if inner is None or "sampled" in inner else inner | {"sampled": pair.q}
    if isinstance(pair, ResponsePair) and pair.bound > 0.0:
        found = {"randomised_response": pair.bound, "categories": pair.others + 2}
        return found | ({"infinite": pair.infinite} if pair.infinite else {})
    if isinstance(pair, LaplacePair) and pair.reach > 0.0:
        return {"laplace": pair.reach}
    if isinstance(pair, DiscreteLaplacePair) and pair.shift:
        return {"discrete_laplace": pair.scale, "sensitivity": pair.shift}
    if isinstance(pair, DiscreteGaussianPair) and pair.shift:
        return {"discrete_gaussian": pair.sigma, "sensitivity": pair.shift}
    if isinstance(pair, PMFPair) and len(pair.p) <= MOST_LISTED:
        p, q = (pair.q, pair.p) if reverse else (pair.p, pair.q)
        return {"p": list(p), "q": list(q)}
    return None

"""Mechanisms of the tests' own, which offer one capability each, and a ledger of them."""

import math
from dataclasses import dataclass

from accountant.ledger import Accountant
from accountant.mechanisms.base import Mechanism
from accountant.pairs.base import DominatingPair, GaussianPart
from accountant.relations import NeighbouringRelation

ADD = NeighbouringRelation.ADD_OR_REMOVE


@dataclass(frozen=True)
class CoinPair(DominatingPair):
    """Randomised response: losses ±ε, with the Rényi curve in closed form, rounded up."""

    epsilon: float
    leak: float = 0.0

    @property
    def support(self):
        return -self.epsilon, self.epsilon

    @property
    def infinite_mass(self):
        return self.leak

    def rdp(self, order):
        return math.inf if self.leak else self.finite_rdp(order)

    def finite_rdp(self, order):
        e, a = self.epsilon, order
        # log of p^a q^(1-a) + q^a p^(1-a), p = e^ε/(1+e^ε)
        top = max(a * e, (1 - a) * e)
        total = math.exp(a * e - top) + math.exp((1 - a) * e - top)
        value = (top + math.log(total) - math.log1p(math.exp(e))) / (a - 1)
        return max(value, 0.0) * (1 + 1e-12) + 1e-15


@dataclass(frozen=True)
class Coin(Mechanism):
    epsilon: float
    leak: float = 0.0
    relation: NeighbouringRelation = ADD

    def pairs(self):
        return (CoinPair(self.epsilon, self.leak),)


@dataclass(frozen=True)
class NoisePair(DominatingPair):
    sigma: float
    q: float = 1.0
    reversed: bool = False

    @property
    def gaussian_part(self):
        return GaussianPart(self.q, self.sigma, self.reversed)

    def rdp(self, order):
        return order / (2 * self.sigma**2) * (1 + 1e-12)


@dataclass(frozen=True)
class Noise(Mechanism):
    sigma: float
    q: float = 1.0
    relation: NeighbouringRelation = ADD

    def pairs(self):
        if self.q == 1.0:
            return (NoisePair(self.sigma),)
        return NoisePair(self.sigma, self.q), NoisePair(self.sigma, self.q, True)


@dataclass(frozen=True)
class Skewed(Mechanism):
    """A different Rényi curve for each direction, linear in the order."""

    remove: float
    add: float

    @property
    def relation(self):
        return ADD

    def pairs(self):
        return LinePair(self.remove), LinePair(self.add)


@dataclass(frozen=True)
class LinePair(DominatingPair):
    slope: float

    def rdp(self, order):
        return self.slope * order


@dataclass(frozen=True)
class Bag(Mechanism):
    """Holds values of every kind that a file can carry."""

    numbers: tuple[float, ...] = ()
    inner: Mechanism | None = None
    relation: NeighbouringRelation = ADD
    flag: bool = False
    name: str = ""
    whole: int = 0

    def pairs(self):
        return (DominatingPair(),)


def ledger_of(*counts):
    """A ledger of one record a count, no two alike."""
    ledger = Accountant()
    for position, count in enumerate(counts):
        ledger.compose(Noise(1.0 + position), count, label=f"part {position}")
    return ledger

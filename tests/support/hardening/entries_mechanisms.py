"""The fuzzer at mechanisms of every kind and their compositions."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import accountant as ac
from accountant.learn.convex.mechanism import ObjectivePerturbation
from accountant.ledger import schema
from accountant.mechanisms.base import Mechanism
from support.hardening.draws import Draw, Finding, judged

# Their parameters are functions.
SKIPPED = ("LossDistribution", "RenyiCurve")


def _field(draw: Draw, part: dataclasses.Field[Any], depth: int) -> Any:
    kind = str(part.type)
    if draw.below(20) == 0:
        return draw.wild()
    if "tuple[tuple[Mechanism" in kind:
        return tuple(
            (mechanism(draw, depth + 1), draw.count(1000)) for _ in range(1 + draw.below(2))
        )
    if "tuple[Mechanism" in kind:
        return tuple(mechanism(draw, depth + 1) for _ in range(1 + draw.below(2)))
    if "tuple[float" in kind:
        weights = [draw.unit() for _ in range(1 + draw.below(4))]
        total = math.fsum(weights) or 1.0
        return tuple(w / total for w in weights)
    if kind == "Mechanism":
        return mechanism(draw, depth + 1)
    if kind == "bool":
        return bool(draw.below(2))
    if "Relation" in kind:
        return draw.choice(list(ac.NeighbouringRelation))
    if "int" in kind:
        return draw.count(30)
    if kind == "float":
        if "probability" in part.name or "delta" in part.name:
            return draw.sane(1e-6, 1.0)
        return draw.sane(0.05, 20.0)
    return draw.choice(["gumbel", "laplace", "exponential", None, 1.0])


def mechanism(draw: Draw, depth: int = 0) -> Mechanism:
    """A mechanism of a random kind; AccountantError where its parameters are refused."""
    # Not what was registered by other tests, or when they imported more of the package: the same
    # bytes always mean the same mechanism.
    kinds = {**schema._built_in(), "ObjectivePerturbation": ObjectivePerturbation}
    registry = [kind for name, kind in sorted(kinds.items()) if name not in SKIPPED]
    if depth > 1:
        return ac.Gaussian(draw.log_uniform(0.3, 10.0))
    kind = draw.choice(registry)
    fields = [part for part in dataclasses.fields(kind) if part.init]
    values = {schema._argument(part): _field(draw, part, depth) for part in fields}
    # By far the commonest mistake would be a relation the others do not have.
    if draw.below(4) and "relation" in values:
        del values["relation"]
    return kind(**values)


def mechanisms(draw: Draw) -> None:
    try:
        value = mechanism(draw)
    except ac.AccountantError:
        return
    except Exception as error:
        raise Finding(f"a constructor raised {error!r}") from error
    calls = [
        lambda: judged(value.epsilon, draw.delta()),
        lambda: judged(value.delta, draw.loss(), most=1.0),
        lambda: judged(value.epsilon_bounds, draw.delta()),
        lambda: judged(value.delta_bounds, draw.loss(), most=1.0),
        lambda: judged(value.rdp, draw.sane(1.01, 1e4)),
        lambda: judged(value.tradeoff, draw.probability(), most=1.0),
        lambda: (judged(lambda: value.mu()), judged(lambda: value.rho())),
    ]
    kind = draw.below(len(calls) + 1)
    if kind < len(calls):
        calls[kind]()
    else:
        judged(lambda: hash(value))
        judged(lambda: value.group(draw.count(10)))
        judged(lambda: repr(value))
        judged(lambda: draw.count(100) * value + value)

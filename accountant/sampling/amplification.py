"""Amplification by sampling of one release about which only (ε, δ) is known."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from accountant import checks
from accountant.checks import DELTA, EPSILON
from accountant.environment import to_nearest
from accountant.relations import NeighbouringRelation

_RELATIONS: Mapping[str, tuple[NeighbouringRelation, ...]] = {
    "poisson": (NeighbouringRelation.ADD_OR_REMOVE, NeighbouringRelation.ZERO_OUT),
    "fixed size": (NeighbouringRelation.REPLACE_ONE,),
}


class Amplified(NamedTuple):
    """An (ε, δ) guarantee after sampling, and its relation."""

    epsilon: float
    delta: float
    relation: NeighbouringRelation


@to_nearest
def amplify(
    epsilon: float,
    *,
    delta: float,
    sampling_probability: float,
    sampler: str = "poisson",
    relation: NeighbouringRelation | None = None,
) -> Amplified:
    """Return the guarantee of an (ε, δ)-private release that runs on a random sample.

    Parameters
    ----------
    epsilon : float
        Privacy loss of the release on its sample, in nats, >= 0.
    delta : float
        In [0, 1).
    sampling_probability : float
        In [0, 1]; batch size over number of records for samples of fixed size.
    sampler : {"poisson", "fixed size"}
        Independent coins, or a uniform subset of a fixed size (without replacement).
    relation : NeighbouringRelation, optional
        The relation of the release's guarantee and of the result: add-or-remove (or zero-out) for
        Poisson sampling, replace-one for fixed size. By default the first of these.

    Returns
    -------
    Amplified
        ``epsilon = log1p(q·expm1(ε))`` and ``delta = q·δ``, both rounded up.

    Raises
    ------
    UnsupportedError
        The sampler has no theorem for the relation.

    Notes
    -----
    *Guarantee.* Theorem S3 (Balle, Barthe, Gaboardi 2018, Theorems 8 and 9). One release: to
    account for many, compose the samplers' mechanisms, which lose much less.
    Under zero-out the release must treat a sample with a blank as the sample without that record;
    one that shows the sample's size, blanks included, does not.

    Examples
    --------
    >>> from accountant.sampling import amplify
    >>> amplify(1.0, delta=1e-6, sampling_probability=0.01).epsilon < 0.01704
    True
    """
    from accountant.checks import choice

    choice("sampler", sampler, tuple(_RELATIONS))
    known = _RELATIONS[sampler]
    relation = checks.supported_relation(sampler, known[0] if relation is None else relation, known)
    epsilon = checks.number(EPSILON, epsilon)
    delta = checks.number(DELTA, delta)
    q = checks.number(checks.SAMPLING_PROBABILITY, sampling_probability)
    if q in (0.0, 1.0) or epsilon == 0.0:
        return Amplified(0.0 if q == 0.0 else epsilon, delta * q, relation)
    return Amplified(min(_amplified(q, epsilon), epsilon), _up(q * delta), relation)


def _amplified(q: float, epsilon: float) -> float:
    # log1p(q(e^ε - 1)) = ε + log(q + (1 - q)e^-ε) for large ε, where e^ε overflows.
    if epsilon < 700.0:
        value = math.log1p(q * math.expm1(epsilon))
        return value * (1.0 + 2.0**-48)
    value = epsilon + math.log(q + (1.0 - q) * math.exp(-epsilon))
    return _up(value + 2.0**-48 * (epsilon + 1.0))


def _up(value: float) -> float:
    return math.nextafter(value, math.inf) if value > 0.0 else value

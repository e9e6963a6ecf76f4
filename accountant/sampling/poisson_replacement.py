"""Former names of Poisson samples under replace-one, kept for old code and files."""

from __future__ import annotations

from accountant.mechanisms.gaussian import Gaussian
from accountant.relations import REPLACE_ONE, NeighbouringRelation
from accountant.sampling.poisson import PoissonSampled
from accountant.sampling.truncated_poisson import TruncatedPoissonSampled

__all__ = ["PoissonReplacement", "TruncatedReplacement"]


def PoissonReplacement(  # noqa: N802 (it was a class)
    noise_multiplier: float, *, sampling_probability: float
) -> PoissonSampled:
    """Return ``PoissonSampled`` of Gaussian noise under replace-one: another name of the same.

    Parameters
    ----------
    noise_multiplier : float
        Noise standard deviation over the bound on one contribution, > 0.
    sampling_probability : float
        q in [0, 1].

    Examples
    --------
    >>> from accountant.sampling.poisson_replacement import PoissonReplacement
    >>> 2.843 < (1000 * PoissonReplacement(1.0, sampling_probability=0.01)).epsilon(1e-5) < 2.844
    True
    """
    return PoissonSampled(Gaussian(noise_multiplier, relation=REPLACE_ONE), sampling_probability)


def TruncatedReplacement(  # noqa: N802 (it was a class)
    noise_multiplier: float,
    *,
    sampling_probability: float,
    cap: int,
    dataset_size: int,
    relation: NeighbouringRelation = REPLACE_ONE,
) -> TruncatedPoissonSampled:
    """Return ``TruncatedPoissonSampled`` under replace-one or zero-out: another name of the same.

    Parameters
    ----------
    noise_multiplier, sampling_probability, cap, dataset_size, relation
        As in :class:`~accountant.sampling.TruncatedPoissonSampled`.
    """
    return TruncatedPoissonSampled(
        noise_multiplier,
        sampling_probability=sampling_probability,
        cap=cap,
        dataset_size=dataset_size,
        relation=relation,
    )

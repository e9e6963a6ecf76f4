"""The one place where the ledger asks for numbers: the algebra of mechanisms and its analyses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accountant.bounds import Bounds

if TYPE_CHECKING:
    from accountant.mechanisms.base import Mechanism

__all__ = ["WRAPPERS", "delta_bounds", "dp_sgd_step", "epsilon", "epsilon_bounds", "sampled"]


def epsilon_bounds(counts: tuple[tuple[Mechanism, int], ...], delta: float) -> Bounds:
    """Bracket ε(delta) of the composition; exactly zero for nothing."""
    from accountant.composition import Composition

    return Composition(counts).epsilon_bounds(delta) if counts else Bounds(0.0, 0.0)


def epsilon(counts: tuple[tuple[Mechanism, int], ...], delta: float) -> float:
    """Bound ε(delta) of the composition from above."""
    return float(epsilon_bounds(counts, delta).upper)


def delta_bounds(counts: tuple[tuple[Mechanism, int], ...], epsilon: float) -> Bounds:
    """Bracket δ(epsilon) of the composition."""
    from accountant.composition import Composition

    return Composition(counts).delta_bounds(epsilon) if counts else Bounds(0.0, 0.0)


def dp_sgd_step(noise_multiplier: float, sampling_probability: float) -> Mechanism:
    """Return one step of DP-SGD as a mechanism."""
    from accountant.mechanisms import Gaussian

    return sampled(Gaussian(noise_multiplier), sampling_probability)


def sampled(mechanism: Mechanism, sampling_probability: float) -> Mechanism:
    """Return a mechanism that runs on a Poisson sample."""
    from accountant.sampling.poisson import PoissonSampled

    return PoissonSampled(mechanism, sampling_probability)


def WRAPPERS() -> dict[str, type[Mechanism]]:  # noqa: N802 (a table, made late)
    """Return the mechanisms made of mechanisms, and those of samplers, by name."""
    from accountant import sampling
    from accountant.composition import Composition, Parallel
    from accountant.mechanisms.joint import JointRelease
    from accountant.sampling.poisson_replacement import PoissonReplacement, TruncatedReplacement
    from accountant.sampling.sampled_replacement import SampledReplacement

    kinds = (
        Composition,
        JointRelease,
        Parallel,
        PoissonReplacement,
        SampledReplacement,
        TruncatedReplacement,
        sampling.Allocated,
        sampling.FixedSizeSampled,
        sampling.PoissonSampled,
        sampling.TruncatedPoissonSampled,
        sampling.WithReplacementSampled,
    )
    return {kind.__name__: kind for kind in kinds}

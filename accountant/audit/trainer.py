"""Audits of whole training runs: sampling, clipping, sums, noise and account."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accountant import checks
from accountant._basics.arrays import FloatArray
from accountant.audit.canaries import CanaryModel, Recorder
from accountant.audit.one_run import best_of, count_guesses, one_run_epsilon, refutes_curve
from accountant.audit.report import AuditReport, NoiseFamily, Observations, two_sample_bound
from accountant.audit.two_sample import (
    CONFIDENCE,
    Objective,
    Threshold,
    best_threshold,
    epsilon_from_rates,
    mu_from_rates,
)
from accountant.errors import DomainError
from accountant.learn.clipping import ClippingLike, as_clipping
from accountant.learn.dp_sgd import train_dp_sgd
from accountant.learn.models.base import Model
from accountant.learn.optimizers import SGD
from accountant.learn.plan import Batches, Noise
from accountant.learn.result import TrainingResult
from accountant.noise import SecureGenerator

METHODS = ("two-sample", "clopper-pearson", "one-run", "one-run-tradeoff")
# The scores are the library's own: a canary's coordinate in the direction of its gradient.
DIRECTION = "higher"
# One-run audits guess these parts of the canaries, each at a third of the error.
SHARES = (2, 8, 32)


class CanaryRun(NamedTuple):
    """What one training run with canaries in it showed.

    Attributes
    ----------
    scores : ndarray of shape (canaries,)
        Logarithm of the likelihood ratio of every canary's own coordinate, all steps together.
    included : ndarray of bool
        The fair coins that let canaries in.
    family : NoiseFamily, optional
        Of the claim, where its noise is Gaussian.
    """

    scores: FloatArray
    included: NDArray[np.bool_]
    family: NoiseFamily | None

    @property
    def observed(self) -> Observations:
        """The scores of canaries that were left out, and of those that were let in."""
        return Observations(self.scores[~self.included], self.scores[self.included])


def audit_trainer(
    model: Model,
    X: object,
    y: object,
    *,
    batches: Batches,
    noise: Noise,
    clipping_norm: ClippingLike,
    delta: float,
    canaries: int = 1000,
    confidence: float = 0.95,
    method: str = "two-sample",
    threshold: Threshold = "simulated",
    train: Callable[..., TrainingResult] = train_dp_sgd,
    rng: int | None = None,
    name: str = "DP-SGD",
    **settings: Any,
) -> AuditReport:
    """Train once with gradient canaries, and bound ε from below by the released values.

    Parameters
    ----------
    model, X, y, batches, noise, clipping_norm, delta
        As for :func:`~accountant.learn.train_dp_sgd`. The model's parameters are left alone. With
        the full sampler the batch size may be left out.
    canaries : int
        Added records, each present by a fair coin; the more, the sharper the audit.
    confidence : float
        As in :func:`~accountant.audit.error_rates`.
    threshold : {"simulated", "split", "ranks"} or float
        ``"simulated"`` tries the best one for scores drawn from the claimed law, which are no
        scores of this run, and ``"split"`` for scores of another law, each at half the error; the
        others as in :func:`~accountant.audit.error_rates`.
    method : {"two-sample", "clopper-pearson", "one-run", "one-run-tradeoff"}
        How scores become a bound. ``"two-sample"`` refutes the certified trade-off curve and is the
        sharpest. ``"clopper-pearson"`` tests ε alone. The last two count guesses of the coins
        and hold even if the canaries' scores depend on one another.
    train : callable
        A trainer with :func:`~accountant.learn.train_dp_sgd`'s arguments.
    rng : int, optional
        A seed for coins and training, to repeat an audit.
    name : str
        For the report.
    **settings
        Passed to the trainer: ``optimizer``, ``averaging``, …

    Returns
    -------
    AuditReport

    Notes
    -----
    *Guarantee.* If the claim is true, the report flags it with probability at most
    1 - confidence: Theorem A10 of docs/theorems_audit.md for the first two methods, A7 to A9 for
    the others. High scores accuse: they are the claim's own likelihood ratios.
    """
    kind = checks.choice("method", method, METHODS)
    sure = checks.number(CONFIDENCE, confidence)
    # An audit needs canaries inside and outside; with 64 coins it has both.
    count = checks.integer("canaries", canaries, 64, 2**23, advice="Each adds a coordinate")
    if "checkpoint" in settings or "ledger" in settings:
        raise DomainError("an audit trains on its own; leave out checkpoint and ledger")
    generator = SecureGenerator(rng)
    included = (generator.words(count) >> np.uint64(63)).astype(bool)
    kept, watched = model.parameters.copy(), CanaryModel(model, count)
    data, targets = watched.join(X, y, included)
    # Nothing may depend on the coins.
    batches, size = _batches(batches, len(data) - int(included.sum()) + count)
    recorder = Recorder(settings.pop("optimizer", None) or SGD(0.1), watched, size)
    try:
        result = train(
            watched, data, targets, batches=batches, noise=noise, clipping_norm=clipping_norm,
            delta=delta, optimizer=recorder, rng=generator, **settings,
        )  # fmt: skip
    finally:
        model.parameters[:] = kept
    plan = result.plan
    sigma = as_clipping(clipping_norm).gradient_noise(plan.noise_multiplier)
    scores = _log_likelihood_ratio(recorder.signals, plan.sampling_probability, sigma)
    family = None
    if plan.noise == "gaussian" and plan.noise_multiplier > 0.0:
        family = NoiseFamily(plan.sampling_probability, result.steps, plan.noise_multiplier)
    run = CanaryRun(scores, included, family)
    observed = run.observed
    bound = _one_run if kind.startswith("one-run") else _two_sample
    lower, rates, how = bound(kind, run, float(delta), sure, threshold)
    return AuditReport(
        name=name,
        epsilon_lower=lower,
        epsilon_claimed=result.epsilon,
        delta=float(delta),
        confidence=sure,
        method=how,
        observations=observed,
        rates=rates,
        curve=family,
        direction=DIRECTION,
        seeded=rng is not None,
    )


def _two_sample(
    kind: str, run: CanaryRun, delta: float, confidence: float, threshold: Threshold
) -> tuple[float, Any, str]:
    observed, family = run.observed, run.family
    by_curve = kind == "two-sample" and family is not None
    if threshold == "simulated":
        threshold = "split"
        if family is not None:
            sizes = (observed.without.size, observed.with_canary.size)
            goal = mu_from_rates if by_curve else partial(epsilon_from_rates, delta=delta)
            threshold = ("split", _simulated_threshold(family, sizes, confidence, goal))
    lower, rates = two_sample_bound(
        observed.without, observed.with_canary, family if by_curve else None, delta,
        confidence=confidence, threshold=threshold, direction=DIRECTION,
    )  # fmt: skip
    return lower, rates, f"{'trade-off curve' if by_curve else 'Clopper-Pearson'}, Theorem A10"


def _simulated_threshold(
    family: NoiseFamily, sizes: tuple[int, int], confidence: float, objective: Objective
) -> float:
    """Return the best threshold for scores of the claimed law: public, so chosen in advance."""
    public = np.random.default_rng(0)
    q, sigma = family.sampling_probability, family.noise_multiplier
    worlds = []
    for present, size in zip((False, True), sizes, strict=True):
        signals = []
        for _ in range(family.steps):
            z = sigma * public.standard_normal(size)
            signals.append(z + (public.random(size) < q) if present else z)
        worlds.append(_log_likelihood_ratio(signals, q, sigma))
    return best_threshold(worlds[0], worlds[1], 0.5 * (1.0 - confidence), objective)


def _one_run(
    kind: str, run: CanaryRun, delta: float, confidence: float, threshold: Threshold
) -> tuple[float, Any, str]:
    counts = sorted({max(1, run.scores.size // share) for share in SHARES})
    guesses = {
        made: count_guesses(run.scores, run.included, made, direction=DIRECTION) for made in counts
    }

    def bound(made: int, sure: float) -> float:
        if kind == "one-run":
            return one_run_epsilon(guesses[made], delta=delta, confidence=sure)
        if run.family is None:
            raise DomainError("method='one-run-tradeoff' needs Gaussian noise; use 'one-run'")
        return run.family.least_refuted(
            lambda curve: refutes_curve(guesses[made], curve, 1.0 - sure), delta
        )

    lower, _ = best_of(counts, bound, confidence)
    return lower, (), f"one run, Theorem {'A7' if kind == 'one-run' else 'A8'}"


def _batches(batches: Batches, most: int) -> tuple[Batches, float]:
    """Fill in batch size and sampling probability by the most records that there may be."""
    size = batches.expected_batch_size
    if size is None:
        if batches.sampler != "full":
            raise DomainError("expected_batch_size must be given, except with sampler='full'")
        size = float(most)
    if not batches.secret:
        if not (0.0 < size <= most):
            raise DomainError(f"expected_batch_size must be in (0, {most}], canaries included")
        batches = replace(batches, sampling_probability=min(1.0, size / most))
    return replace(batches, expected_batch_size=size), size


def _log_likelihood_ratio(signals: list[FloatArray], q: float, sigma: float) -> FloatArray:
    """Return log Π (1 - q + q e^((2z - 1) / 2σ²)): the best score if the claim is true.

    Any score is valid, so its rounding and a wrong claim cost power only.
    """
    if not signals:
        raise DomainError(
            "an audit needs at least one step; the trainer handed no gradient to its optimizer"
        )
    if not (sigma > 0.0):
        return np.asarray(np.sum(signals, axis=0))
    total = np.zeros(signals[0].size)
    for z in signals:
        loss = (z - 0.5) / sigma**2
        if q < 1.0:
            unsampled = math.log1p(-q)
            loss = np.logaddexp(unsampled, math.log(q) + loss) if q > 0.0 else 0.0 * loss
        total += loss
    return total

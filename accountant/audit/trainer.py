"""Audits of whole training runs: sampling, clipping, sums, noise and account.

Canaries are records whose whole gradient is on one coordinate of their own, which the model gets
besides. It is a large multiple of that coordinate's vector, passes through the same clipping, sums,
rounding and noise as every gradient, and has the clipping norm afterwards. No other record changes
the coordinate, so its released values are the canary's noisy membership bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accountant import checks
from accountant._basics.arrays import Array, FloatArray
from accountant._core import training
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
from accountant.learn.clipping import ClippingLike, Rule, as_clipping
from accountant.learn.dp_sgd import train_dp_sgd
from accountant.learn.models.base import BLOCK_ROWS, Model, Totals
from accountant.learn.optimizers import SGD, Optimizer
from accountant.learn.plan import Batches, Noise
from accountant.learn.result import TrainingResult
from accountant.noise import SecureGenerator

# A canary's gradient over the clipping norm. Automatic clipping leaves 1 / (1 + stability / …) of
# the norm, so it should be large; its square must stay below the limit of single precision.
LOUDNESS = 1e4


class CanaryModel(Model):
    """A model with coordinates for canaries added.

    Parameters
    ----------
    model : Model
        The model to train; it sees the ordinary records only.
    canaries : int
        How many, at least 1; one coordinate for each and each of the model's parameter groups.

    Notes
    -----
    A row is an ordinary record's features and a last column that is 0 for those, and i + 1 for
    canary i.
    """

    def __init__(self, model: Model, canaries: int) -> None:
        self.model, self.canaries = model, canaries
        self.shape: tuple[int, ...] = ()
        self.parameters = np.concatenate(
            [model.parameters, np.zeros(canaries * len(model.groups), model.dtype)]
        )
        self.groups = model.groups
        self.widest = max(model.widest, len(model.groups))
        self.terms, self.spread = model.terms, model.spread
        self.rule = Rule((1.0,))

    def check(self, X: object, y: object) -> tuple[Array, Array]:
        """Pass on rows made by :meth:`join`."""
        return np.ascontiguousarray(X, dtype=self.dtype), np.ascontiguousarray(y)

    def join(self, X: object, y: object, included: NDArray[np.bool_]) -> tuple[Array, Array]:
        """Return the data set of ordinary records and the included canaries."""
        data, targets = self.model.check(X, y)
        self.shape = data.shape[1:]
        numbers = np.flatnonzero(included) + 1
        rows = np.zeros((len(data) + len(numbers), math.prod(self.shape) + 1), self.dtype)
        rows[: len(data), :-1] = data.reshape(len(data), -1)
        rows[len(data) :, -1] = numbers
        return rows, np.concatenate([targets, np.repeat(targets[:1], len(numbers), axis=0)])

    def add_rows(
        self, X: Array, y: Array, rows: NDArray[np.intp] | None, rule: Rule, totals: Totals
    ) -> None:
        """Add up ordinary records by the model, and canaries on their coordinates."""
        self.model.parameters[:] = self.parameters[: self.model.size]
        self.rule = rule
        super().add_rows(X, y, rows, rule, totals)

    def add_block(self, x: Array, y: Array, filled: int, rule: Rule, totals: Totals) -> None:
        """Split a block into ordinary records and canaries."""
        numbers = self._numbers(x[:filled])
        ordinary = np.flatnonzero(numbers < 0)
        if ordinary.size:
            block = np.zeros((BLOCK_ROWS, *self.shape), self.dtype)
            targets = np.zeros_like(y)
            block[: ordinary.size] = x[ordinary, :-1].reshape(-1, *self.shape)
            targets[: ordinary.size] = y[ordinary]
            whole, totals.gradient = totals.gradient, totals.gradient[: self.model.size]
            self.model.add_block(block, targets, ordinary.size, rule, totals)
            totals.gradient = whole
        present = numbers[numbers >= 0]
        if present.size:
            self._add_canaries(present, rule, totals)

    def _add_canaries(self, numbers: NDArray[np.intp], rule: Rule, totals: Totals) -> None:
        norms2 = np.zeros(BLOCK_ROWS)
        factors = np.empty(BLOCK_ROWS)
        for group, norm in enumerate(rule.norms):
            raw = LOUDNESS * norm
            norms2[: numbers.size] = raw * raw
            training.clip_factors(norms2, numbers.size, norm, rule.stability, factors)
            start = self.model.size + group * self.canaries
            np.add.at(totals.gradient, start + numbers, factors[: numbers.size] * raw)
        totals.records += numbers.size  # all of them clipped

    def _numbers(self, x: Array) -> NDArray[np.intp]:
        """Return the canaries' numbers, -1 for ordinary records."""
        numbers = np.rint(x[:, -1]).astype(np.intp) - 1
        return np.clip(numbers, -1, self.canaries - 1)

    def row_results(self, x: Array, y: Array) -> list[Array]:
        """Return the model's own results."""
        self.model.parameters[:] = self.parameters[: self.model.size]
        return self.model.row_results(x[:, :-1].reshape(-1, *self.shape), y)

    def probe_targets(self, generator: np.random.Generator, like: Array) -> list[Array]:
        """Return targets that fit the model."""
        return self.model.probe_targets(generator, like)

    def penalty_gradient(self) -> Array | float:
        """Return the model's own; canary coordinates have none."""
        own = self.model.penalty_gradient()
        if isinstance(own, float):
            return own
        return np.concatenate([own, np.zeros(self.size - own.size, self.dtype)])

    def outputs(self, X: object) -> Array:
        """Return the model's own outputs."""
        return self.model.outputs(X)

    def signal(self, gradient: Array) -> FloatArray:
        """Return the canaries' coordinates of a gradient along the clipped canary's direction."""
        norms = np.array(self.rule.norms)
        start = self.model.size
        rows = gradient[start:].astype(np.float64).reshape(-1, self.canaries)[: norms.size]
        return np.asarray((norms / np.linalg.norm(norms)) @ rows)


class Recorder(Optimizer):
    """An optimiser that records the canaries' coordinates of each gradient and passes it on."""

    def __init__(
        self, optimizer: Optimizer, model: CanaryModel, expected_batch_size: float
    ) -> None:
        self.inner, self.model, self.divisor = optimizer, model, expected_batch_size
        self.schedule = optimizer.schedule
        self.signals: list[FloatArray] = []
        self.reset()

    def reset(self) -> None:
        """Delete the signals, because a new run starts."""
        self.signals = []
        self.inner.reset()
        self.count, self.state = 0, {}

    def restore(self, count: int, state: Mapping[str, Array]) -> None:
        """Refuse, because the signals of the earlier steps are lost."""
        raise DomainError("an audit cannot be resumed; leave out the checkpoint")

    def expect_noise(self, variance: float) -> None:
        """Pass it on."""
        self.inner.expect_noise(variance)

    def _step(self, parameters: Array, gradient: Array, rate: float) -> None:
        # The signals are in units of the sensitivity.
        scale = self.divisor / self.model.rule.sensitivity
        self.signals.append(self.model.signal(gradient) * scale)
        self.inner.step(parameters, gradient)

    def describe(self) -> dict[str, Any]:
        """Return the settings of the optimiser that trains."""
        return self.inner.describe()


METHODS = ("two-sample", "clopper-pearson", "one-run", "one-run-tradeoff")
# The scores are the library's own: a canary's coordinate in the direction of its gradient.
DIRECTION = "higher"
# One-run audits guess these parts of the canaries, each at a third of the error.
SHARES = (2, 8, 32)


class CanaryRun(NamedTuple):
    """What one training run with canaries in it showed."""

    scores: FloatArray  # log-likelihood ratios of the canaries' own coordinates, of all steps
    included: NDArray[np.bool_]  # the fair coins that let canaries in
    family: NoiseFamily | None  # of the claim, where its noise is Gaussian

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

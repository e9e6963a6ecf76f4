"""DP-SGD: Poisson sampling, per-example clipping, noise on a grid, and the account of it all.

Projected gradient descent and one-example private SGD (Bassily, Smith and Thakurta, FOCS 2014) are
settings of its loop: their constants are replaced by the exact account.
"""

from __future__ import annotations

import math
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from accountant import checks
from accountant.errors import DomainError, UnsupportedError
from accountant.learn import checkpoint as checkpoints
from accountant.learn.account import as_ledger, marked
from accountant.learn.checkpoint import Checkpoint, as_checkpoint
from accountant.learn.clipping import ClippingLike, as_clipping
from accountant.learn.models.base import Model
from accountant.learn.optimizers import SGD, Optimizer, inverse_square_root
from accountant.learn.plan import BATCH, Batches, Noise, Plan, make_plan, require_size
from accountant.learn.result import Averaging, MeanOfLast, Progress, TrainingResult, as_averaging
from accountant.learn.run import Run
from accountant.ledger import Accountant
from accountant.noise import SecureGenerator

RADIUS = checks.positive(
    "projection_radius", "Parameters are projected onto the ball of this radius after every step"
)


@dataclass(frozen=True)
class Watch:
    """Who looks on while a model is trained.

    Parameters
    ----------
    callbacks : iterable of callable
        Each is called after every step with a :class:`Progress`, which holds released values only;
        a true result ends training.
    progress : bool
        Show a progress bar, where standard error is a terminal.
    on_plan : callable, optional
        Called once with the :class:`Plan`, before any gradient: the place to charge a ledger on
        disk for the whole run.
    nonprivate_diagnostics : bool
        Also record batch sizes, losses and clipped fractions, which are not private.
    """

    callbacks: Iterable[Callable[[Progress], object]] = ()
    _: KW_ONLY
    progress: bool = True
    on_plan: Callable[[Plan], object] | None = None
    nonprivate_diagnostics: bool = False


def train_dp_sgd(
    model: Model,
    X: object,
    y: object,
    *,
    batches: Batches,
    noise: Noise,
    clipping_norm: ClippingLike,
    delta: float,
    optimizer: Optimizer | None = None,
    averaging: str | Averaging = "last",
    projection_radius: float | None = None,
    ledger: Accountant | None = None,
    rng: SecureGenerator | int | None = None,
    checkpoint: Checkpoint | str | Path | None = None,
    watch: Watch | None = None,
) -> TrainingResult:
    """Train a model by differentially private stochastic gradient descent.

    Every step draws a batch, adds up clipped per-example gradients, releases the sum with noise,
    divides by the public constant ``expected_batch_size`` and hands the result to the optimiser.
    Empty batches are released like any other.

    Parameters
    ----------
    model : Model
        Trained in place, from its present parameters, which must not depend on these data.
    X, y : array_like
        Features of shape (n, d) and n targets. A record that cannot be read or is not finite, or
        whose label is no class, adds nothing, and nothing says so.
    batches : Batches
        Which records each step uses, how many steps there are, and what sums are divided by.
    noise : Noise
        The noise multiplier, or the ε to calibrate it for, and the law.
    clipping_norm : float or Clipping
        The bound on one record's gradient, or a clipping rule.
    delta : float
        In [0, 1): of the guarantee.
    optimizer : Optimizer, optional
        ``SGD(0.1)`` when left out.
    averaging : {"last", "mean", "ema"} or Averaging
        Which function of the iterates to keep.
    projection_radius : float, optional
        Project the parameters onto a ball after every step.
    ledger : Accountant, optional
        Charged step by step, before the step; a new one when left out.
    rng : SecureGenerator or int, optional
        None draws from the operating system's entropy. A generator gives the run a stream of its
        own. An integer is for tests: the result is marked as not private.
    checkpoint : Checkpoint or path, optional
        Resume from it when it exists, and save to it.
    watch : Watch, optional
        Callbacks, the progress bar, and diagnostics that are not private.

    Returns
    -------
    TrainingResult
        Parameters, ledger, history and the guarantee.

    Raises
    ------
    DomainError, ArgumentTypeError, UnsupportedError, BudgetExceeded
        Before any gradient is computed: bad data or settings, steps the budget does not allow, a
        sampler without an account. Once training has begun nothing is raised that depends on a
        record: gradients that are not finite count as zero.
    CheckpointError
        The checkpoint was changed, cut short, or belongs to another run.

    Notes
    -----
    *Guarantee.* All iterates together are (``run_epsilon``, ``delta``)-differentially private under
    add-or-remove, for ``get_epsilon(q, noise_multiplier, steps, delta)``, with the rounding of
    norms, sums and noise inside the guarantee (docs/theorems_training.md, Theorems T1 to T8). Where
    a callback stops the run because of released values, the steps are those planned: see
    ``plan.epsilon`` in the result.

    With a strategy each block of ``bands`` steps is charged before its first step, and a run
    without sampling as a whole before the first step (docs/theorems_matrix.md, Theorems X4, X5). A
    checkpoint then holds noise of steps already made: it is as secret as the data, for ever.

    *Algorithm.* Blocks of 128 records, one forward and one backward pass, ghost norms.

    Examples
    --------
    >>> import numpy as np
    >>> from accountant.learn import Batches, LogisticRegression, Noise, train_dp_sgd
    >>> generator = np.random.default_rng(0)
    >>> X = generator.standard_normal((500, 3))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> result = train_dp_sgd(
    ...     LogisticRegression(3), X, y, batches=Batches(100, steps=50),
    ...     noise=Noise(target_epsilon=2.0), clipping_norm=1.0, delta=1e-4,
    ... )
    >>> result.private and 1.99 < result.epsilon <= 2.0
    True
    """
    checks.instance("batches", batches, Batches, "Batches, such as Batches(256, steps=100)")
    checks.instance("noise", noise, Noise, "a Noise, such as Noise(1.0)")
    require_size(X, batches)
    data, targets = model.check(X, y)
    clipping = as_clipping(clipping_norm)
    book = as_ledger(ledger)
    place = as_checkpoint(checkpoint)
    saved = None if place is None else place.load()
    generator = _generator(rng)
    plan = make_plan(
        records=len(data), clipping=clipping, groups=len(model.groups), batches=batches,
        noise=noise, delta=delta, ledger=book,
        # The label tells this run's charges from another's, and statements what a seed undoes.
        run=checkpoints.label(saved) or marked(f"DP-SGD {secrets.token_hex(8)}", generator),
    )  # fmt: skip
    seen = Watch() if watch is None else watch
    descent = SGD(0.1) if optimizer is None else optimizer
    checks.instance("optimizer", descent, Optimizer, "an Optimizer, such as SGD(0.1)")  # type: ignore[type-abstract]
    run = Run(
        model, data, targets, plan, clipping, descent, as_averaging(averaging),
        None if projection_radius is None else checks.number(RADIUS, projection_radius), book,
        generator, seen.nonprivate_diagnostics,
    )  # fmt: skip
    if place is not None:
        run.resume(saved, place.path)
    if seen.on_plan is not None:
        seen.on_plan(run.plan)
    _take_steps(run, place, list(seen.callbacks), seen.progress)
    return run.result()


def _take_steps(
    run: Run, place: Checkpoint | None, hooks: list[Callable[[Progress], object]], progress: bool
) -> None:
    """Take the steps that are left, and save where there is a place for it."""
    steps = run.plan.steps
    if place is not None and run.step == 0:
        # Before the first noise: a run killed early must not draw other noise for the same steps.
        place.save(run.saved())
    shown = progress and sys.stderr.isatty()
    with bar(steps, run.step) if shown else nullcontext(lambda _: None) as advance:
        while run.step < steps and run.take_step():
            advance(1)
            if place is not None and run.step % place.every == 0:
                place.save(run.saved())
            stop = [bool(hook(run.progress())) for hook in hooks]  # every one is called
            if any(stop):
                break
    if place is not None:
        place.save(run.saved())


def _generator(rng: object) -> SecureGenerator:
    if isinstance(rng, SecureGenerator):
        # A stream of its own: a resumed run draws again what followed its checkpoint, and another
        # run may have gone on with this generator by then. Of other types nothing is known.
        return rng._branch() if type(rng) is SecureGenerator else rng
    if rng is None or (isinstance(rng, (int, np.integer)) and not isinstance(rng, bool)):
        return SecureGenerator(None if rng is None else int(rng))
    raise UnsupportedError(
        f"rng must be None, a SecureGenerator, or an integer for tests; got {rng!r}."
        " NumPy's generators can be predicted from their output"
    )


@contextmanager
def bar(total: int, done: int) -> Iterator[Callable[[int], object]]:
    """Show steps made and the time left, which are public; yields the function that advances it."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("training", total=total, completed=done)
        yield lambda steps: shown.advance(task, steps)


def train_projected_gradient_descent(
    model: Model,
    X: object,
    y: object,
    *,
    steps: int,
    projection_radius: float,
    expected_records: float,
    learning_rate: float | None = None,
    **options: Any,
) -> TrainingResult:
    """Train by noisy gradient descent on all records, projected onto a ball.

    Parameters
    ----------
    model, X, y, steps
        As in :func:`train_dp_sgd` and :class:`Batches`.
    projection_radius : float
        Of the ball around the origin.
    expected_records : float
        A public estimate of the number of records, which the noisy sum is divided by. The number
        itself is a secret: it may be 0 to 2²⁴, and nothing depends on it.
    learning_rate : float, optional
        Of the first step; step t takes it over √(t + 1). By default the radius over the clipping
        norm.
    **options
        Further arguments of :func:`train_dp_sgd`: ``noise``, ``clipping_norm`` (a number) and
        ``delta``; ``averaging`` (the mean of all iterates by default), ``checkpoint``, …

    Returns
    -------
    TrainingResult
        As of :func:`train_dp_sgd`.

    Notes
    -----
    *Guarantee.* As :func:`train_dp_sgd` with q = 1: (√steps / noise_multiplier)-GDP.
    """
    batches = Batches(expected_records, steps=steps, sampler="full")
    options["projection_radius"] = projection_radius
    return _descend(model, X, y, batches, learning_rate, options)


def train_one_example_sgd(
    model: Model,
    X: object,
    y: object,
    *,
    noise: Noise,
    steps: int,
    projection_radius: float,
    sampling_probability: float | None = None,
    learning_rate: float | None = None,
    **options: Any,
) -> TrainingResult:
    """Train by private SGD on one expected record a step, projected onto a ball.

    The batch is a Poisson sample with expectation one, as the account needs it, where the original
    draws exactly one record. Parameters are those of :func:`train_projected_gradient_descent`; the
    default rate takes the noise into account, radius / (clipping_norm √(1 + d σ²)) with d
    parameters, when the noise multiplier is given.

    Notes
    -----
    *Guarantee.* As :func:`train_dp_sgd` with q = 1/n, which declares the number of records n
    public; with ``sampling_probability``, about one over it, n is a secret.
    """
    batches = Batches(1.0, steps=steps, sampling_probability=sampling_probability)
    options |= {"noise": noise, "projection_radius": projection_radius}
    length = math.sqrt(1.0 + model.size * (noise.noise_multiplier or 0.0) ** 2)
    return _descend(model, X, y, batches, learning_rate, options, length)


def _descend(
    model: Model,
    X: object,
    y: object,
    batches: Batches,
    rate: float | None,
    options: dict[str, Any],
    length: float = 1.0,
) -> TrainingResult:
    """Train with a rate that falls with the root of the step, unless more is asked for.

    By default it is the radius over the clipping norm and ``length``.
    """
    for name in ("batches", "optimizer"):
        if name in options:
            raise DomainError(f"{name} is fixed by this trainer; use train_dp_sgd to choose it")
    if rate is None:
        bound = BATCH.renamed("clipping_norm")
        rate = checks.number(RADIUS, options["projection_radius"])
        rate = rate / checks.number(bound, options.get("clipping_norm")) / length
    options = {"averaging": MeanOfLast(1.0), "optimizer": SGD(inverse_square_root(rate))} | options
    return train_dp_sgd(model, X, y, batches=batches, **options)

"""The release of a private sum: its sensitivity, rounding to a grid, and noise.

One record's effect on a computed sum is bounded with clipping and every rounding: Theorems T2 to T5
of docs/theorems_training.md, whose names are used here.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from accountant._basics.arrays import Array, FloatArray
from accountant._basics.rounding import U
from accountant.errors import DomainError, UnsupportedError
from accountant.learn import probes
from accountant.learn.clipping import AdaptiveQuantile, Rule
from accountant.learn.models.base import BLOCK_ROWS, Model, Totals
from accountant.learn.validation import fingerprint
from accountant.noise import Grid, SecureGenerator
from accountant.noise.generator import LARGEST_DISCRETE_SCALE, LARGEST_SCALE
from accountant.search import narrow

# A function is recognised by its values on features of these sizes: a threshold may lie far out.
SIZES = (1.0, 2.0**5, 2.0**10, 2.0**20)


class Privatiser:
    """Rounds clipped sums to a grid and adds noise for their sensitivity.

    Parameters
    ----------
    model : Model
        Whose sums are released.
    noise : {"gaussian", "discrete_gaussian"}
        The law of the noise.
    noise_multiplier : float
        Standard deviation over the sensitivity after rounding; 0 releases the sum as it is.
    expected_batch_size : float
        For the error bound of the sum, where ``cap`` is left out.
    cap : int, optional
        The most records of a sum.
    """

    def __init__(
        self,
        model: Model,
        noise: str,
        noise_multiplier: float,
        expected_batch_size: float,
        *,
        cap: int | None = None,
    ) -> None:
        self.noise, self.noise_multiplier = noise, noise_multiplier
        self.size = model.size
        self.cap = batch_cap(expected_batch_size) if cap is None else cap
        self.excess = relative_excess(model, self.cap)

    def settings(self, rule: Rule) -> tuple[Grid, float]:
        """Return the grid and the noise's standard deviation for a rule."""
        limit = LARGEST_SCALE if self.noise == "gaussian" else float(LARGEST_DISCRETE_SCALE)
        grid = grid_for(rule, self.size, self.noise_multiplier, limit, self.excess)
        sensitivity = rounded_sensitivity(rule, self.excess, grid, self.size, self.cap)
        deviation = self.noise_multiplier * sensitivity * (1.0 + 1e-12)
        if self.noise == "discrete_gaussian":
            steps = math.ceil(deviation / grid.step)
            if steps > LARGEST_DISCRETE_SCALE:
                raise DomainError("the discrete Gaussian has no grid for this much noise")
            deviation = steps * grid.step
        return grid, deviation

    def release(
        self, value: FloatArray, rule: Rule, generator: SecureGenerator
    ) -> tuple[FloatArray, float]:
        """Return the noisy sum, and the standard deviation of its noise.

        Notes
        -----
        *Guarantee.* The Gaussian mechanism with the given noise multiplier on a function whose
        sensitivity is at most the one computed, then post-processing; for the discrete Gaussian
        that mechanism itself (docs/theorems_training.md, Theorems T5 and T7).
        """
        if self.noise_multiplier == 0.0:
            return value, 0.0
        grid, deviation = self.settings(rule)
        if self.noise == "discrete_gaussian":
            scale = round(deviation / grid.step)
            return grid.release_discrete_gaussian(value, scale, generator), deviation
        return grid.release_gaussian(value, deviation, generator), deviation


def release_fraction(
    clipping: AdaptiveQuantile,
    unclipped: int,
    records: int,
    expected_batch_size: float,
    generator: SecureGenerator,
) -> float:
    """Return the noisy fraction of records that were not clipped.

    Twice the centred count is an integer that one record moves by exactly 1; its noise has standard
    deviation ``2 count_noise`` and is rounded to integers (Theorem T8).
    """
    centred = 2 * unclipped - records
    noisy = centred + float(generator.rounded_normal(1, 2.0 * clipping.count_noise)[0])
    return noisy / (2.0 * expected_batch_size) + 0.5


def function_digest(model: Model, x_like: Array, y_like: Array) -> str:
    """Return a digest of the model's rows, clipped sums and penalties on random public inputs.

    It recognises the function whose values the noise of a run covers. The same noise on another
    function of the data (another activation, loss or machine's rounding) would be a second
    release, and the difference of the two would have no noise at all.
    """
    seen: list[Array] = []

    def note(x: Array, y: Array, rows: list[Array]) -> None:
        totals = Totals(np.zeros(model.size))
        model.add_rows(x.copy(), y.copy(), None, Rule((1.0,)), totals)
        penalty = np.asarray(model.penalty_gradient(), dtype=np.float64)
        seen.extend(np.where(np.isnan(a), np.nan, a) for a in (*rows, totals.gradient, penalty))

    _try_out(model, x_like, y_like, 1, note, SIZES)
    return fingerprint(*seen)


def require_row_independence(model: Model, x_like: Array, y_like: Array) -> None:
    """Test, on random public inputs, that a row's results do not depend on the other rows.

    Assumption A1 of docs/theorems_training.md. A model that looks across records, or a library
    whose rounding does, would let one record move the gradients of all others.
    """
    generator = np.random.default_rng(2)

    def compare(x: Array, y: Array, rows: list[Array]) -> None:
        for order, other in probes.rearranged(generator, x):
            stay = order >= 0
            # Rows that gave way take targets of rows elsewhere.
            targets = y[np.where(stay, order, generator.integers(len(y), size=len(y)))]
            targets[order == probes.PADDING] = 0
            try:
                there = model.row_results(other, targets)
            except Exception:
                if (other == np.finfo(other.dtype).max).any():
                    continue  # the function has no values for such features
                raise
            if len(rows) != len(there) or not all(
                probes.same_bits(a[order[stay]], b[stay]) for a, b in zip(rows, there, strict=True)
            ):
                raise UnsupportedError(
                    "the results of one record depend on the other records of its block: the model"
                    " looks across records, or this machine's libraries do. Normalise records by"
                    " themselves; or set OPENBLAS_NUM_THREADS=1 (or MKL_CBWR=COMPATIBLE) and try"
                    " again"
                )

    _try_out(model, x_like, y_like, 0, compare)


def _try_out(
    model: Model,
    x_like: Array,
    y_like: Array,
    seed: int,
    use: Callable[[Array, Array, list[Array]], None],
    sizes: tuple[float, ...] = (1.0,),
) -> None:
    """Hand random public blocks, of features of some sizes, and the model's results to ``use``.

    The model has random parameters meanwhile. Targets on which a function of the user's raises are
    left out, unless it raises on all of them.
    """
    generator = np.random.default_rng(seed)
    drawn = probes.public_rows(generator, BLOCK_ROWS, x_like.shape[1:], model.dtype)
    blocks = [(size * block).astype(model.dtype) for size in sizes for block in drawn]
    targets = model.probe_targets(generator, y_like)
    kept = model.parameters.copy()
    failure: Exception | None = None
    tried = False
    try:
        with np.errstate(all="ignore"):
            for k in range(max(len(blocks), len(targets))):
                scale = (0.1, 1.0)[k % 2]
                model.parameters[:] = scale * generator.standard_normal(model.size)
                x, y = blocks[k % len(blocks)], targets[k % len(targets)]
                try:
                    rows = model.row_results(x.copy(), y.copy())
                except Exception as error:
                    failure = error
                    continue
                tried = True
                use(x, y, rows)
    finally:
        model.parameters[:] = kept
    if not tried:
        raise UnsupportedError(
            "the model must compute gradients for random features and targets of the data's type,"
            " on which it is tried before it sees a record; it raised an exception. Give"
            " PerExampleModel public examples of targets"
        ) from failure


# A run whose number of records is a secret accepts as many as this, and pays for the rounding of
# sums of as many as may be drawn from them: it may not look at how many there are.
MOST_RECORDS = 2**24

UNIT32 = 2.0**-24  # The unit roundoff of single precision.
OUTWARD = 1.0 + 1e-12  # It covers the roundings of these few formulas themselves.
RARE = 700.0  # An event of probability below e^-700 is left out (Theorem T4).


def batch_cap(expected_batch_size: float) -> int:
    """Return a size that a Poisson sample exceeds with probability below e⁻⁷⁰⁰.

    The number of records drawn is a sum of independent trials with mean at most
    μ = 1.01 B + 2; Chernoff: P{m >= (1 + x) μ} <= exp(-μ ((1 + x) log(1 + x) - x)).
    """
    mean = 1.01 * expected_batch_size + 2.0

    def rare(x: float) -> bool:
        return mean * ((1.0 + x) * math.log1p(x) - x) >= RARE

    high = 2.0
    while not rare(high):
        high *= 2.0
    excess, _ = narrow(rare, high, 0.0, 60)
    return math.ceil(mean * (1.0 + excess)) + 1


def relative_excess(model: Model, cap: int) -> float:
    """Return r such that one record changes the computed sum by at most sensitivity · (1 + r).

    Covers the computed norms and clip factors (η), the scaled rows, and 2 γ cap for the rounding
    of the sums of all records in both runs; not the rounding to a grid. Sums are in double
    precision whatever the model's is. Where a record adds several outer products, what may cancel
    between them, within a block, is at most ``spread`` times its norm.
    """
    spread, terms = model.spread, model.terms
    unit = UNIT32 if model.dtype == np.float32 else U
    eta = (model.widest / 8.0 + 64.0) * U + 4.0 * unit * spread
    within = (BLOCK_ROWS * terms + 4) * U
    across = (cap / BLOCK_ROWS + 4.0) * U
    inside = within / (1.0 - within) * spread
    gamma = inside + across / (1.0 - across) * (1.0 + inside)
    sums = 2.0 * gamma * cap
    return (eta + sums + eta * sums) * OUTWARD  # (1 + η) (1 + 2 γ cap) - 1, without cancellation


def grid_for(
    rule: Rule, size: int, noise_multiplier: float, largest_scale: float, excess: float = 0.0
) -> Grid:
    """Return the grid: its rounding adds at most a thousandth to the sensitivity, if it can.

    With noise of at most ``largest_scale`` grid steps (the discrete Gaussian's limit) it may have
    to be coarser.
    """
    sensitivity = rule.sensitivity
    fine = sensitivity * 2.0**-10 / math.sqrt(size)
    coarse = 2.1 * sensitivity * (1.0 + excess) * noise_multiplier / largest_scale
    return Grid.at_most(max(fine, coarse))


def rounded_sensitivity(rule: Rule, excess: float, grid: Grid, size: int, cap: int) -> float:
    """Return the sensitivity of the sum after rounding to ``grid``, Δ of Theorem T5."""
    sensitivity = rule.sensitivity
    if not math.isfinite(sensitivity):
        raise DomainError("noise needs a finite clipping_norm; got inf")
    grid.require_range(sensitivity * (1.0 + excess) * (cap + 1.0))
    return (sensitivity * (1.0 + excess) + grid.step * math.sqrt(size)) * OUTWARD

"""Noisy marginals, and a tree-shaped distribution that agrees with them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple, TypeAlias

import numpy as np

from accountant import checks
from accountant._basics.arrays import Array, FloatArray
from accountant.calibration.any_mechanism import calibrate
from accountant.errors import ArgumentTypeError, DomainError
from accountant.learn.account import charged
from accountant.learn.generation.domain import (
    MOST_CELLS,
    Codes,
    Domain,
    Synthesis,
)
from accountant.learn.selection.noisy_max import Generator, generator_of, select_exponential
from accountant.ledger import Accountant
from accountant.mechanisms import ExponentialMechanism, Gaussian
from accountant.mechanisms.base import Mechanism
from accountant.noise import Grid, SecureGenerator

Edge: TypeAlias = tuple[int, int]
# Estimates that scores compare with are rounded to one over this, and cut to the next: sums of
# scores are exact in 64 bits (Theorem P15).
STEPS = 2**16
LARGEST_COUNT = 2.0**36
CHOICE_SHARE = 0.2  # The share of the budget, in zCDP, for choosing a tree: usual, and public.
NOISE = checks.Argument(
    "noise_multiplier",
    "a number in [1e-3, 1e9]",
    lambda x: (x >= 1e-3) & (x <= 1e9),
    "It is the standard deviation of the noise on every count",
)
ROUNDS = 100  # Rounds of proportional fitting, at most.
TOLERANCE = 1e-9  # It ends where no margin is off by more.


class Measurement(NamedTuple):
    """Noisy counts of a marginal: of one column, or of two."""

    columns: tuple[int, ...]  # one or two positions, increasing
    counts: FloatArray  # of shape (size,) or (size, size)
    deviation: float  # of the noise on every count


@dataclass(frozen=True, eq=False)
class TreeModel:
    """A distribution whose columns depend on each other along a forest.

    Attributes
    ----------
    total : float
        The estimated number of records.
    singles : tuple of ndarray
        The distribution of every column.
    pairs : mapping of (int, int) to ndarray
        Joint distributions along the edges, consistent with ``singles``.
    """

    total: float
    singles: tuple[FloatArray, ...]
    pairs: Mapping[Edge, FloatArray]

    def sample(self, n: int, generator: np.random.Generator) -> Codes:
        """Draw ``n`` rows of positions, shape (n, columns)."""
        out = np.full((n, len(self.singles)), -1, np.int64)
        for child, parent in walk(len(self.singles), list(self.pairs)):
            if parent is None:
                law = np.broadcast_to(self.singles[child], (1, self.singles[child].size))
                rows = np.zeros(n, np.int64)
            else:
                low, high = min(child, parent), max(child, parent)
                joint = self.pairs[low, high]
                law = joint if parent == low else joint.T
                rows = out[:, parent]
            out[:, child] = _draw(law, rows, generator)
        return out


def fit_tree(sizes: Sequence[int], measurements: Sequence[Measurement]) -> TreeModel:
    """Return consistent distributions from noisy marginals whose pairs form a forest.

    Every column's distribution is the mean of all estimates of it, weighted by their variances, on
    the simplex; every pair is the noisy table, on the simplex, fitted to those proportionally.
    """
    weights = [1.0 / (m.counts.size * m.deviation**2) for m in measurements]
    sums = [float(m.counts.sum()) for m in measurements]
    total = max(float(np.average(sums, weights=weights)), 1.0)
    singles = tuple(_single(i, size, measurements, total) for i, size in enumerate(sizes))
    pairs: dict[Edge, FloatArray] = {}
    for found in measurements:
        if len(found.columns) == 2:
            low, high = found.columns
            pairs[low, high] = _fitted(found.counts / total, singles[low], singles[high])
    return TreeModel(total, singles, pairs)


def on_simplex(values: FloatArray) -> FloatArray:
    """Return the nearest distribution, in Euclidean distance, of the same shape."""
    flat = np.sort(values.ravel())[::-1]
    sums = np.cumsum(flat) - 1.0
    count = int(np.count_nonzero(flat * np.arange(1, flat.size + 1) > sums))
    shift = sums[max(count, 1) - 1] / max(count, 1)
    found = np.maximum(values - shift, 0.0)
    return np.asarray(found / found.sum())


def joined(component: Codes, edge: Edge) -> bool:
    """Join the components of an edge's ends; False where they are one already: a cycle."""
    a, b = component[list(edge)]
    component[component == b] = a
    return bool(a != b)


def walk(columns: int, edges: Sequence[Edge]) -> list[tuple[int, int | None]]:
    """Return all columns with their parents, every parent before its children."""
    order: list[tuple[int, int | None]] = []
    seen: set[int] = set()
    for start in range(columns):
        stack: list[tuple[int, int | None]] = [(start, None)]
        while stack:
            column, parent = stack.pop()
            if column in seen:
                continue
            seen.add(column)
            order.append((column, parent))
            stack += [(a + b - column, column) for a, b in edges if column in (a, b)]
    return order


def _single(
    column: int, size: int, measurements: Sequence[Measurement], total: float
) -> FloatArray:
    estimate, weight = np.zeros(size), 0.0
    for found in measurements:
        if column not in found.columns:
            continue
        counts, variance = found.counts, found.deviation**2
        if len(found.columns) == 2:
            other = 1 - found.columns.index(column)
            variance *= counts.shape[other]
            counts = counts.sum(axis=other)
        estimate += counts / variance
        weight += 1.0 / variance
    if weight == 0.0:
        return np.full(size, 1.0 / size)
    return on_simplex(estimate / weight / total)


def _fitted(table: FloatArray, rows: FloatArray, columns: FloatArray) -> FloatArray:
    """Return a table with the given margins, near the noisy one."""
    # The nearest table with these margins, signs aside; then on the simplex.
    table = table + ((rows - table.sum(axis=1)) / columns.size)[:, None]
    table = table + (columns - table.sum(axis=0)) / rows.size
    # A little of independence, so that proportions can be fitted everywhere.
    found = 0.9999 * on_simplex(table) + 0.0001 * np.outer(rows, columns)
    for _ in range(ROUNDS):
        found = found * _ratio(rows, found.sum(axis=1))[:, None]
        ratio = _ratio(columns, found.sum(axis=0))
        found = found * ratio
        if np.abs(found.sum(axis=1) - rows).max() < TOLERANCE:
            break
    return np.asarray(found)


def _ratio(wanted: FloatArray, found: FloatArray) -> FloatArray:
    return np.divide(wanted, found, out=np.zeros_like(wanted), where=found > 0.0)


def _draw(law: FloatArray, rows: Codes, generator: np.random.Generator) -> Codes:
    """Draw one position for each entry of ``rows``, by that row of ``law``."""
    sums = np.cumsum(law, axis=1)
    uniform = generator.random(len(rows)) * sums[rows, -1]
    return np.asarray((uniform[:, None] >= sums[rows]).sum(axis=1).clip(0, law.shape[1] - 1))


@dataclass(frozen=True, eq=False)
class MarginalSynthesis(Synthesis):
    """A model made of noisy marginals, and what they cost.

    Attributes
    ----------
    domain : Domain
        The columns.
    model : TreeModel
        The distribution; its ``total`` estimates the number of records.
    pairs : tuple of (str, str)
        The columns measured together.

    And those of :class:`Synthesis`: the mechanism is all measurements.
    """

    domain: Domain
    model: TreeModel
    pairs: tuple[tuple[str, str], ...]

    def _draw(self, n: int, generator: np.random.Generator) -> dict[str, Array]:
        return self.domain.decode(self.model.sample(n, generator), generator)


def synthesize_marginals(
    table: object,
    domain: Domain,
    *,
    delta: float,
    target_epsilon: float | None = None,
    noise_multiplier: float | None = None,
    pairs: str | Sequence[tuple[str, str]] = "tree",
    ledger: Accountant | None = None,
    rng: Generator = None,
) -> MarginalSynthesis:
    """Measure marginals with noise and fit a distribution to draw synthetic records from.

    Parameters
    ----------
    table : mapping of str to sequence, or ndarray of shape (n, columns)
        The private records; see :meth:`Domain.encode` for what is done with missing and unknown
        entries. There may be none.
    domain : Domain
        Public.
    delta : float
        In (0, 1): where ε is reported.
    target_epsilon, noise_multiplier : float
        Exactly one: the ε of the whole release, or the noise on every count.
    pairs : "tree" or sequence of (str, str)
        The pairs of columns to measure, without cycles, fixed without the data; or choose a tree of
        them privately: in each step the pair that the single columns explain worst, by the
        exponential mechanism (McKenna, Miklau, Sheldon 2021). Empty for single columns only.
    ledger : Accountant, optional
        Charged before anything is measured.
    rng : SecureGenerator, int or None
        A seed is for tests only.

    Returns
    -------
    MarginalSynthesis

    Notes
    -----
    *Guarantee.* Adding or removing a record changes one count of each marginal by one: Gaussian
    mechanisms of sensitivity one on integers, with noise exact on a grid; scores change by at most
    one, computed in integers; the rest is post-processing (docs/theorems_selection.md, Theorem
    P15). The number of records is not public.

    Examples
    --------
    >>> from accountant.learn.generation import Category, Domain, synthesize_marginals
    >>> domain = Domain({"smokes": Category((0, 1)), "coughs": Category((0, 1))})
    >>> found = synthesize_marginals(
    ...     {"smokes": [0, 1] * 500, "coughs": [0, 1] * 500}, domain, target_epsilon=1.0, delta=1e-6
    ... )
    >>> found.pairs
    (('smokes', 'coughs'),)
    """
    checks.instance("domain", domain, Domain, "a Domain")
    target = checks.number(checks.TARGET_DELTA, delta)
    fixed = _edges(domain, pairs)
    noise, choice, mechanism = _plan(domain, fixed, target_epsilon, noise_multiplier, target)
    spent = mechanism.epsilon(target)
    generator = generator_of(rng)
    codes = domain.encode(table)
    book = charged(ledger, (mechanism,), "marginals", generator)
    columns = range(len(domain.sizes))
    measured = [_measure(codes, domain, (i,), noise, generator) for i in columns]
    first = fit_tree(domain.sizes, measured)
    edges = _choose(codes, domain, first, choice, generator) if fixed is None else fixed
    measured += [_measure(codes, domain, edge, noise, generator) for edge in edges]
    names = domain.names
    return MarginalSynthesis(
        domain, fit_tree(domain.sizes, measured), tuple((names[a], names[b]) for a, b in edges),
        mechanism=mechanism, ledger=book, delta=target, run_epsilon=spent,
        private=not generator.seeded,
    )  # fmt: skip


def _edges(domain: Domain, pairs: object) -> tuple[Edge, ...] | None:
    """Return the fixed pairs, None for a tree to be chosen."""
    if isinstance(pairs, str):
        checks.choice("pairs", pairs, ("tree",))
        found: tuple[Edge, ...] | None = None
        candidates = list(combinations(range(len(domain.sizes)), 2))
    else:
        if not isinstance(pairs, Sequence) or not all(
            isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in pairs
        ):
            raise ArgumentTypeError(f"pairs must be 'tree' or pairs of names; got {pairs!r:.60}")
        places = [(domain.index(a), domain.index(b)) for a, b in pairs]
        found = tuple((min(edge), max(edge)) for edge in places)
        component = np.arange(len(domain.sizes))
        if not all(joined(component, edge) for edge in found):
            raise DomainError("pairs must be without cycles, so that the records can be drawn")
        candidates = list(found)
    for a, b in candidates:
        if domain.sizes[a] * domain.sizes[b] > MOST_CELLS:
            raise DomainError(
                f"columns {domain.names[a]!r} and {domain.names[b]!r} have more than {MOST_CELLS}"
                " cells together; use fewer values or bins"
            )
    return found


def _plan(
    domain: Domain,
    edges: tuple[Edge, ...] | None,
    target_epsilon: float | None,
    noise_multiplier: float | None,
    delta: float,
) -> tuple[float, float, Mechanism]:
    """Return the noise of all counts, the range of one choice of a pair (0: none), and the cost."""
    if (target_epsilon is None) == (noise_multiplier is None):
        raise DomainError("give exactly one of target_epsilon and noise_multiplier")
    singles = len(domain.sizes)
    pairs = singles - 1 if edges is None else len(edges)

    def plan(noise: float) -> tuple[float, float, Mechanism]:
        # ρ of all Gaussians is (singles + pairs)/(2σ²), of one choice ε²/8.
        rho = (singles + pairs) / (2.0 * noise * noise) * CHOICE_SHARE / (1.0 - CHOICE_SHARE)
        choice = math.sqrt(8.0 * rho / pairs) if edges is None and pairs else 0.0
        cost: Mechanism = (singles + pairs) * Gaussian(noise)
        return noise, choice, cost + pairs * ExponentialMechanism(choice) if choice else cost

    if noise_multiplier is not None:
        return plan(checks.number(NOISE, noise_multiplier))
    goal = checks.number(checks.TARGET_EPS, target_epsilon)
    start = math.sqrt(singles + pairs) * 4.0 / goal
    found = calibrate(
        lambda noise: plan(noise)[2], epsilon=goal, delta=delta, start=start, precision=1e-4
    )
    return plan(float(found))


def _measure(
    codes: Codes, domain: Domain, columns: tuple[int, ...], noise: float, generator: SecureGenerator
) -> Measurement:
    exact = _counts(codes, domain, columns).astype(np.float64)
    # Counts are integers and the step divides one: they are on the grid as they are.
    grid = Grid.at_most(min(noise * 2.0**-10, 1.0))
    noisy = grid.release_gaussian(exact.ravel(), noise, generator)
    return Measurement(columns, noisy.reshape(exact.shape), noise)


def _counts(codes: Codes, domain: Domain, columns: tuple[int, ...]) -> Codes:
    shape = tuple(domain.sizes[c] for c in columns)
    flat = np.ravel_multi_index(tuple(codes[:, c] for c in columns), shape)
    return np.bincount(flat, minlength=math.prod(shape)).reshape(shape).astype(np.int64)


def _choose(
    codes: Codes, domain: Domain, first: TreeModel, epsilon: float, generator: SecureGenerator
) -> tuple[Edge, ...]:
    """Choose a spanning tree by Kruskal's algorithm with private choices."""
    columns = len(domain.sizes)
    candidates = list(combinations(range(columns), 2))
    scores = {edge: _score(codes, domain, first, edge) for edge in candidates}
    component, chosen = np.arange(columns), []
    for _ in range(columns - 1):
        left = [(a, b) for a, b in candidates if component[a] != component[b]]
        pick = select_exponential([scores[e] for e in left], epsilon, rng=generator)
        chosen.append(left[pick.index])
        joined(component, left[pick.index])
    return tuple(chosen)


def _score(codes: Codes, domain: Domain, first: TreeModel, edge: Edge) -> float:
    """Return the distance, in records, of a pair's counts from independence.

    It is made of integers, exact in float64, and one record moves it by at most one.
    """
    independent = np.outer(first.singles[edge[0]], first.singles[edge[1]])
    expected = np.rint(independent * min(first.total, LARGEST_COUNT) * STEPS)
    distance = np.abs(_counts(codes, domain, edge) * STEPS - expected.astype(np.int64))
    return float(min(int(distance.sum()), 2**53)) / STEPS

"""Private hyper-parameter tuning: the best of a random number of private runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Generic, TypeAlias, TypeVar

from accountant import checks
from accountant._basics import intervals as iv
from accountant.derived.joint import one_of
from accountant.derived.repetition import BestOfPoissonRuns, BestOfRuns, FirstAboveThreshold
from accountant.errors import DomainError, UnsupportedError
from accountant.learn.account import Released, charged
from accountant.learn.selection.noisy_max import Generator, generator_of
from accountant.ledger import Accountant
from accountant.mechanisms.base import Mechanism
from accountant.noise import SecureGenerator
from accountant.noise.exact_samplers import uniform_below

Setting = TypeVar("Setting")

# η of the truncated negative binomial distribution.
DISTRIBUTIONS = {"logarithmic": 0.0, "geometric": 1.0}
MOST_RUNS = 10**7  # A search that draws more runs is refused: it would never end.
_THRESHOLD = checks.FINITE.renamed("threshold", "It is fixed without the data")
Search: TypeAlias = BestOfRuns | BestOfPoissonRuns | FirstAboveThreshold


@dataclass(frozen=True, eq=False)
class SearchResult(Released, Generic[Setting]):
    """The best run, and the cost of the whole search.

    Attributes
    ----------
    best : object
        What the trainer returned in the best run; None when there was no run (Poisson only), or
        none reached the threshold.
    setting : object
        Its setting, public with it; None when there is no such run.
    mechanism : BestOfRuns, BestOfPoissonRuns or FirstAboveThreshold
        The cost of the whole search.
    ledger : Accountant
        The ledger given, or the run's own, with the mechanism charged.
    epsilon, delta : float
        The guarantee of everything in the ledger when the run ended.
    run_epsilon : float
        The ε of this run alone, at ``delta``.
    single_epsilon : float
        What one run would have cost at that δ.
    private : bool
        False when the search was seeded.
    """

    best: Any
    setting: Setting | None
    mechanism: Search
    single_epsilon: float


def select_best(
    train: Callable[[Setting], Any],
    space: Sequence[Setting],
    score: Callable[[Any], float],
    *,
    mechanism: Mechanism | Sequence[Mechanism],
    delta: float,
    mean_runs: float = 10.0,
    distribution: str | float = "logarithmic",
    threshold: float | None = None,
    ledger: Accountant | None = None,
    rng: Generator = None,
) -> SearchResult[Setting]:
    """Train with settings drawn at random, a random number of times; return the best model.

    Parameters
    ----------
    train : callable
        ``train(setting)`` makes one private run, with fresh noise, and returns its output.
    space : sequence
        The settings; each run draws one uniformly, with replacement. Fixed without the data: what
        proposes settings by the scores of earlier runs (Bayesian optimisation) is refused.
    score : callable
        ``score(output)``, larger is better; NaN counts as the worst. It uses public data only, or
        its cost is part of ``mechanism``.
    mechanism : Mechanism or sequence of Mechanism
        A bound on one run, training and score together, with any setting of the space; or one for
        each setting, of which the largest counts (:class:`~accountant.derived.AnyOf`).
    delta : float
        Where ε is reported, in (0, 1).
    mean_runs : float
        The mean number of runs, >= 1.
    distribution : {"logarithmic", "geometric", "poisson"} or float
        The distribution of the number of runs; a number is the η > -1 of the truncated negative
        binomial. "logarithmic" (η = 0) costs least of the named ones, and varies most. With a
        threshold it is geometric.
    threshold : float, optional
        Known without the data: the first run whose score reaches it is returned, and nothing where
        none does. That costs less (:class:`~accountant.derived.FirstAboveThreshold`), and
        ``mean_runs`` is the mean number of runs were none to reach it.
    ledger : Accountant, optional
        Charged before anything runs.
    rng : SecureGenerator, int or None
        Draws the number of runs and the settings; a seed is for tests only.

    Returns
    -------
    SearchResult

    Raises
    ------
    BudgetExceeded
        The ledger does not allow the search; nothing has run.
    UnsupportedError
        The space chooses settings by what was scored.

    Notes
    -----
    *Guarantee.* That of :class:`~accountant.derived.BestOfRuns`,
    :class:`~accountant.derived.BestOfPoissonRuns` or
    :class:`~accountant.derived.FirstAboveThreshold`, for what is returned: the other runs' outputs
    and scores, and how many runs there were, must stay secret, their duration included. An
    exception raised by ``train`` is seen by everyone: let it not depend on the data.
    """
    checks.function("train", train, "a setting")
    checks.function("score", score, "an output")
    _refuse_adaptive(space)
    settings = list(space)
    if not settings:
        raise DomainError("space must have at least one setting; got none")
    if isinstance(mechanism, (list, tuple)) and len(mechanism) != len(settings):
        raise DomainError(
            f"mechanism must be one, or one for each of the {len(settings)} settings of space; got"
            f" {len(mechanism)}"
        )
    target = checks.number(checks.TARGET_DELTA, delta)
    cost = search_cost(mechanism, mean_runs, distribution, threshold)
    enough = math.inf if threshold is None else float(threshold)
    spent, single = cost.epsilon(target), cost.base.epsilon(target)
    generator = generator_of(rng)
    book = charged(ledger, (cost,), "hyper-parameter search", generator)
    best, best_score, chosen = None, -math.inf, None
    for run in range(draw_runs(cost, generator)):
        setting = settings[uniform_below(generator, len(settings))]
        output = train(setting)
        value = float(score(output))
        if threshold is not None and not value >= enough:
            continue
        # Equal scores: the first of exchangeable runs is as good as a random one.
        if run == 0 or threshold is not None or value > best_score:
            best, chosen = output, setting
            best_score = value if value == value else -math.inf
        if threshold is not None:
            break
    return SearchResult(
        best, chosen, cost, single, ledger=book, delta=target, run_epsilon=spent,
        private=not generator.seeded,
    )  # fmt: skip


def search_cost(
    mechanism: Mechanism | Sequence[Mechanism],
    mean_runs: float,
    distribution: str | float,
    threshold: float | None = None,
) -> Search:
    """Return what a search costs, as a mechanism; arguments as in :func:`select_best`."""
    if threshold is not None:
        checks.number(_THRESHOLD, threshold)
        checks.choice("distribution", distribution, ("logarithmic", "geometric"))
        runs = BestOfRuns.with_mean(mechanism, mean_runs)
        return FirstAboveThreshold(runs.base, runs.stopping_probability)
    if distribution == "poisson":
        return BestOfPoissonRuns(one_of(mechanism), mean_runs)
    if isinstance(distribution, str):
        checks.choice("distribution", distribution, (*DISTRIBUTIONS, "poisson"))
        distribution = DISTRIBUTIONS[distribution]
    return BestOfRuns.with_mean(mechanism, mean_runs, eta=distribution)


def _refuse_adaptive(space: object) -> None:
    """Refuse what proposes settings one after the other, by its usual methods."""
    if any(callable(getattr(space, name, None)) for name in ("ask", "suggest", "__call__")):
        raise UnsupportedError(
            f"space must be settings that are fixed beforehand; got a {type(space).__name__}, which"
            " may propose a setting by the scores of earlier runs. Theorem P4 needs independent"
            " runs: such a search releases every score to whoever proposes. Charge each run to one"
            " ledger with a budget (composition holds for settings chosen as one goes); the best"
            " of them is then free"
        )


def draw_runs(search: Search, generator: SecureGenerator) -> int:
    """Draw the number of runs.

    Notes
    -----
    *Guarantee.* The law of the search, but for a probability below 2^-100, by inversion of 192
    random bits in 40-digit interval arithmetic (docs/theorems_selection.md, Theorem P8).
    """
    start = 0 if isinstance(search, BestOfPoissonRuns) else 1
    word = [int(x) for x in generator.words(3)]
    bits = (word[0] << 128) + (word[1] << 64) + word[2]
    uniform = iv.of(Decimal(bits)) / iv.of(Decimal(2**192))
    total = iv.of(0.0)
    for k, chance in enumerate(_chances(search), start):
        total = total + chance
        if uniform.upper < total.lower:
            return k
        if k > MOST_RUNS:
            break
    raise UnsupportedError(f"{search!r} asks for more than {MOST_RUNS} runs; lower the mean")


def _chances(search: Search) -> Iterator[iv.Interval]:
    if isinstance(search, BestOfPoissonRuns):
        m = iv.of(search.mean)
        chance = iv.exp(-m)
        k = 0
        while True:
            yield chance
            k += 1
            chance = chance * m / float(k)
    # Until a threshold stops them, runs go on by coins: a geometric number.
    shape = search.eta if isinstance(search, BestOfRuns) else 1.0
    eta, gamma = iv.of(shape), iv.of(search.stopping_probability)
    rest = iv.of(1.0) - gamma
    if search.stopping_probability == 1.0:
        yield iv.of(1.0)
        return
    log = -iv.log(gamma)
    # (1-γ)^k/(γ^{-η} - 1)·∏(l+η)/(l+1), and (1-γ)^k/(k·log(1/γ)) at η = 0.
    chance = rest / log if shape == 0.0 else rest * eta / iv.expm1(eta * log)
    k = 1
    while True:
        yield chance
        chance = chance * rest * (eta + float(k)) / float(k + 1)
        k += 1

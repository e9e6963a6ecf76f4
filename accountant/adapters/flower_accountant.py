"""Flower's own hook: what its strategies take as ``accountant=``. Needs Flower 1.41.

:class:`ExactAccountant` goes where ``flwr.serverapp.RdpAccountant`` does.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from flwr import serverapp
from flwr.serverapp import GaussianPrivacyEvent, PrivacyConfig

from accountant import checks
from accountant._basics.rounding import ratio_up
from accountant.adapters.torch_batches import refuse_forgetting
from accountant.errors import BudgetExceeded, DomainError, UnsupportedError
from accountant.learn.account import affordable_steps
from accountant.ledger import Accountant, Budget
from accountant.mechanisms import Gaussian, Mechanism
from accountant.sampling import FixedSizeSampled, PoissonSampled

__all__ = ["ExactAccountant"]

_BACKEND, _SCHEMA = "accountant", 1
_NOISE_OVER = ("clipping norm", "sensitivity")


class ExactAccountant:
    """Flower's ``PrivacyAccountant`` protocol on a certified ledger.

    Parameters
    ----------
    config : flwr.serverapp.PrivacyConfig
        With ``max_epsilon`` the ledger has this budget at ``target_delta``. Its first round plans
        as many rounds like it as the exact composition allows (Theorem L12); others are charged
        beside them.
    noise_over : {"clipping norm", "sensitivity"}, optional
        What an event's ``noise_multiplier`` is measured in. Flower's strategies divide by the
        clipping norm, and replacing a client moves a sum by twice that. Under replace-one it must
        be said, because an event does not say it.
    path : path, optional
        A ledger on the disk: read if it is there, and written before ``compose`` returns.

    Attributes
    ----------
    ledger : accountant.Accountant
        What was composed.

    Raises
    ------
    UnsupportedError
        ``config`` is for replace-one, and ``noise_over`` is not given.

    Notes
    -----
    *Guarantee.* ε and δ are never too small for a client whose update counts as nothing in the
    other case (add or remove; Theorems M3 and M6), or is another client's (replace; Theorem S6).
    Poisson samples are those of ``sample_size / population_size``; no amplification counts every
    round in full. Flower's FedAvg asks a fixed number of clients: where another client takes the
    place of one that leaves, that is a replacement.

    Examples
    --------
    >>> strategy = DifferentialPrivacyServerSideFixedClipping(  # doctest: +SKIP
    ...     FedAvg(), 4.0, 1.0, 10, accountant=ExactAccountant(config)
    ... )
    """

    def __init__(
        self,
        config: PrivacyConfig,
        *,
        noise_over: str | None = None,
        path: str | os.PathLike[str] | None = None,
    ) -> None:
        checks.instance("config", config, PrivacyConfig, "a flwr.serverapp.PrivacyConfig")
        if noise_over is not None:
            checks.choice("noise_over", noise_over, _NOISE_OVER)
        elif config.neighboring_relation is serverapp.NeighboringRelation.REPLACE_ONE:
            raise UnsupportedError(
                "noise_over must say what the noise_multiplier of an event is over: replacing a"
                " client moves a sum by twice the clipping norm. Give 'clipping norm', which"
                " Flower's strategies divide by, or 'sensitivity' where your noise is over that"
            )
        self._config, self._noise_over = config, noise_over
        limit = config.max_epsilon
        budget = None if limit is None else Budget(float(limit), float(config.target_delta))
        self._path = None if path is None else Path(path)
        self.ledger = Accountant(budget)
        if self._path is not None and self._path.exists():
            self.ledger = Accountant.load(self._path)
            self._require_budget(self.ledger, budget)

    @property
    def config(self) -> PrivacyConfig:
        """As given."""
        return self._config

    @property
    def num_releases(self) -> int:
        """The number of rounds that were composed."""
        return len(self.ledger)

    def compose(self, event: GaussianPrivacyEvent, count: int = 1) -> None:
        """Charge rounds; with a ``path`` the disk has them when this returns.

        Raises
        ------
        BudgetExceeded
            ``max_epsilon`` does not allow them; nothing was charged.
        DomainError
            The event is of another population.
        """
        step, count = self._mechanism(event), checks.integer("count", count, 1)
        if self._is_fresh:
            affordable_steps(self.ledger, step, None)
        self.ledger.compose(step, count)
        if self._path is not None:
            self.ledger.save(self._path)

    def get_epsilon(self, delta: float) -> float:
        """Return ε at ``delta`` in [0, 1), certified never too small."""
        return self.ledger.epsilon(delta)

    def get_delta(self, epsilon: float) -> float:
        """Return δ at ``epsilon`` >= 0, certified never too small."""
        return self.ledger.delta(epsilon)

    def get_privacy_spent(self, delta: float | None = None) -> serverapp.PrivacySpent:
        """Return what was spent at ``delta``, by default at that of the configuration."""
        at = self._config.target_delta if delta is None else delta
        return serverapp.PrivacySpent(self.get_epsilon(at), at, self.num_releases, "exact")

    def would_exceed(
        self, event: GaussianPrivacyEvent, max_epsilon: float | None = None, count: int = 1
    ) -> bool:
        """Return whether rounds would exceed the budget, or another ε; nothing is charged.

        Another ``max_epsilon`` than the budget's is compared with the exact composition, which
        bounds rounds whose noise was chosen beforehand.
        """
        step, count = self._mechanism(event), checks.integer("count", count, 1)
        limit = self._config.max_epsilon if max_epsilon is None else max_epsilon
        if limit is None:
            raise DomainError("max_epsilon must be given here or in PrivacyConfig; got None")
        if limit != self._config.max_epsilon:
            total = count * step
            for mechanism, times in self.ledger.counts:
                total = total + times * mechanism
            return not total.epsilon(self._config.target_delta) <= limit
        ledger = self.ledger
        if self._is_fresh:
            return count > ledger.affordable(step, planned=True)
        try:
            ledger.require(step, count)
        except BudgetExceeded:
            return True
        return False

    def state_dict(self) -> dict[str, object]:
        """Return the state, for JSON: the configuration, and the ledger as text."""
        return {
            "schema_version": _SCHEMA,
            "backend": _BACKEND,
            "config": self._described(),
            "ledger": self.ledger.to_json(),
        }

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Continue from a state that holds all rounds composed here.

        Raises
        ------
        DomainError
            The state is another accountant's, of another configuration, or has forgotten rounds.
        """
        if state.get("backend") != _BACKEND or state.get("schema_version") != _SCHEMA:
            raise DomainError(
                f"state must be that of an ExactAccountant, of version {_SCHEMA}; got backend"
                f" {state.get('backend')!r:.40} and version {state.get('schema_version')!r:.20}."
                " Compose the events of another accountant's state one by one"
            )
        if state.get("config") != self._described():
            raise DomainError(
                f"state must have the configuration {self._described()}; got"
                f" {state.get('config')!r:.300}"
            )
        found = Accountant.from_json(str(state.get("ledger")))
        self._require_budget(found, self.ledger.budget)
        refuse_forgetting(self.ledger.history, found.history)
        if len(found) == len(self.ledger):
            return  # this one may have a file
        if self._path is not None:
            raise DomainError(
                f"state must hold no more rounds than {self._path}, which is written before each"
                f" is released; it has {len(found)} and the file {len(self.ledger)}"
            )
        self.ledger = found

    @property
    def _is_fresh(self) -> bool:
        """Whether a budget was neither spent nor planned."""
        ledger = self.ledger
        return ledger.budget is not None and not ledger.counts and not ledger.planned

    def _mechanism(self, event: GaussianPrivacyEvent) -> Mechanism:
        checks.instance("event", event, GaussianPrivacyEvent, "a GaussianPrivacyEvent")
        size, population = event.sample_size, self._config.population_size
        if event.population_size != population:
            raise DomainError(
                f"population_size of the event must be that of the configuration, {population}; got"
                f" {event.population_size}"
            )
        noise = float(event.noise_multiplier)
        match self._config.sampling_method:
            case serverapp.SamplingMethod.POISSON:
                return PoissonSampled(Gaussian(noise), min(ratio_up(size, population), 1.0))
            case serverapp.SamplingMethod.WITHOUT_REPLACEMENT:
                if self._noise_over == "sensitivity":
                    noise *= 2.0
                return FixedSizeSampled(noise, batch_size=size, dataset_size=population)
            case serverapp.SamplingMethod.NO_AMPLIFICATION:
                return Gaussian(noise)
        raise UnsupportedError(f"sampling_method {self._config.sampling_method!r} is not covered")

    def _described(self) -> dict[str, Any]:
        config = self._config
        return {
            "target_delta": config.target_delta,
            "population_size": config.population_size,
            "neighboring_relation": config.neighboring_relation.value,
            "sampling_method": config.sampling_method.value,
            "max_epsilon": config.max_epsilon,
            "noise_over": self._noise_over,
        }

    def _require_budget(self, ledger: Accountant, budget: Budget | None) -> None:
        if ledger.budget != budget:
            raise DomainError(
                f"the ledger must have the budget of the configuration, {budget!r}; it has"
                f" {ledger.budget!r}"
            )

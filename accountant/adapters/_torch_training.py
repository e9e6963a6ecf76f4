"""What the callbacks of training frameworks share: steps, ledger, checkpoints, statement."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from accountant import checks
from accountant.adapters._observer import refuse_forgetting
from accountant.adapters.torch_steps import PrivateSteps
from accountant.adapters.torch_units import Units
from accountant.errors import DomainError
from accountant.ledger import Accountant
from accountant.report import Deployment, statement
from accountant.sampling import Sampler

_KINDS = {".html": "html", ".md": "markdown", ".json": "json"}


class Training:
    """The settings of one private run, and its steps once it has begun."""

    def __init__(
        self,
        units: Units,
        sampler: Sampler | None,
        noise_multiplier: float,
        clipping_norm: float,
        delta: float,
        ledger: Accountant | None,
        path: str | Path | None,
        title: str,
    ) -> None:
        checks.instance("units", units, Units, "a Units")
        self.units, self.sampler = units, sampler
        self.noise_multiplier, self.clipping_norm = noise_multiplier, clipping_norm
        self.delta = checks.number(checks.DELTA.renamed("delta"), delta)
        self.ledger = Accountant() if ledger is None else ledger
        checks.instance("ledger", self.ledger, Accountant, "an Accountant")
        self.path = None if path is None else Path(path)
        if self.path is not None and self.path.suffix not in _KINDS:
            raise DomainError(
                f"statement must be a path that ends in {', '.join(_KINDS)}; got {str(path)!r}"
            )
        self.title = title
        self.steps: PrivateSteps | None = None

    def begin(self, model: Any) -> PrivateSteps:
        """Make the steps of a model whose frozen parameters are frozen."""
        assert self.sampler is not None
        self.steps = PrivateSteps(
            model,
            self.sampler,
            noise_multiplier=self.noise_multiplier,
            clipping_norm=self.clipping_norm,
            ledger=self.ledger,
        )
        return self.steps

    def begun(self) -> PrivateSteps:
        """Return the steps, which hold the ledger that is charged."""
        assert self.steps is not None
        return self.steps

    def epsilon(self) -> float:
        """Return the ε spent."""
        return (self.ledger if self.steps is None else self.steps.ledger).epsilon(self.delta)

    def resume(self, saved: str) -> None:
        """Take over the releases of a checkpoint that the ledger does not hold."""
        loaded = Accountant.from_json(saved)
        held, budget = self.ledger.history, self.ledger.budget
        if budget not in (None, loaded.budget):
            raise DomainError(
                f"ledger must have the budget of the checkpoint, {loaded.budget!r}; got {budget!r}"
            )
        if not held:
            # With its plan; a ledger without releases stays the caller's.
            self.ledger = loaded if loaded.history else self.ledger
            return
        try:
            # What was released after the checkpoint stays released.
            refuse_forgetting(loaded.history, held)
        except DomainError:
            raise DomainError(
                "ledger must be new, or hold the releases of the checkpoint; it holds others. Give"
                " a run that is resumed the ledger that it had, or none"
            ) from None

    def write(self) -> None:
        """Write the statement, about the units that were really sampled."""
        if self.path is None:
            return
        ledger = self.ledger if self.steps is None else self.steps.ledger
        about = Deployment(title=self.title, unit=self.units.words)
        made = statement(ledger, self.delta, deployment=about)
        self.path.write_text(getattr(made, _KINDS[self.path.suffix])(), encoding="utf-8")

"""Rounds of a federation with differential privacy for its clients, whatever carries the messages.

:class:`FederatedRounds` is the server's side; :mod:`accountant.adapters.flower` and
:mod:`accountant.adapters.nvflare` connect it with Flower and NVFlare. It needs neither.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accountant import checks, store
from accountant.adapters import _federated_state as memory
from accountant.adapters._federated_noise import CentralNoise, SecureSumNoise
from accountant.errors import BudgetExceeded, DomainError, LedgerError
from accountant.ledger import Accountant, Budget
from accountant.noise import SecureGenerator

__all__ = ["CentralNoise", "FederatedRounds", "Round", "SecureSumNoise"]

FloatArray: TypeAlias = NDArray[np.float64]

ROUNDS = checks.integers("rounds", 1, 2**40, "It is the number of rounds that are planned")
_TENANT = "federation/clients/"


@dataclass(frozen=True)
class Round:
    """A round that is paid for: whom to ask, and what they are told.

    Attributes
    ----------
    number : int
        From 1.
    participants : tuple of str
        The clients to ask, and no others. In a central round this is secret.
    clipping_norm : float
        Of this round; public.
    clients : int
        How many clients had a coin; public.
    """

    number: int
    participants: tuple[str, ...]
    clipping_norm: float
    clients: int


class FederatedRounds:
    """Federated averaging whose every round is charged to its clients before they are asked.

    Parameters
    ----------
    directory : path
        Holds the budgets (``budgets.db``) and what was released last (``released.npz``): all that
        a server needs that takes over after a crash. Never restore only one of the two.
    noise : CentralNoise or SecureSumNoise
        What a round releases.
    budgets : Mapping[str, Budget]
        The budget of every client, by its name. A client takes part until its own is spent; one
        that is new joins with the next round.
    model : array_like of float
        The model before the first round, flat: a public start. Not used again after a restart.
    rounds : int
        How many rounds are planned: each client's budget admits their exact composition, or fewer
        of them. Which rounds are made may depend on everything released.
    server_learning_rate : float
        By which the mean update is multiplied.
    generator : SecureGenerator, optional
        Of coins and noise; give one with a seed for tests only.

    Notes
    -----
    *Guarantee.* For each client all models together keep its budget, under add-or-remove for
    central noise and under zero-out for secure sums (docs/theorems_adapters.md, Theorems E11 to
    E13). A crash at any moment loses no charge of what was released. With central noise it charges
    nothing twice; a secure sum that was asked for and not released is charged, because its server
    may have seen it.

    Raises
    ------
    LedgerConflict
        Another server uses the directory.
    LedgerError
        A part of the directory is missing, damaged, or older than the rest.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        noise: CentralNoise | SecureSumNoise,
        budgets: Mapping[str, Budget],
        *,
        model: ArrayLike,
        rounds: int,
        server_learning_rate: float = 1.0,
        generator: SecureGenerator | None = None,
    ) -> None:
        checks.instance("noise", noise, (CentralNoise, SecureSumNoise), "a noise of this module")
        start = np.array(model, dtype=np.float64)
        if start.ndim != 1 or not start.size:
            raise DomainError(f"model must be flat and not empty; got the shape {start.shape}")
        self.noise = noise
        self.mechanism = noise.mechanism(start.size)
        self._planned = int(checks.whole(ROUNDS, rounds))
        self._rate = float(server_learning_rate)
        self._generator = SecureGenerator() if generator is None else generator
        self._open: Round | None = None
        place = Path(directory)
        place.mkdir(parents=True, exist_ok=True)
        self._lock: int | None = memory.hold(place / "server.lock")
        self._path = place / "released.npz"
        try:
            self._begin(place / "budgets.db", start, dict(budgets))
        except BaseException:
            self.close()
            raise

    def _begin(self, budgets: Path, start: FloatArray, clients: dict[str, Budget]) -> None:
        found = memory.read(self._path)
        if found is None and budgets.exists():
            with store.open(f"sqlite:///{budgets}") as charged:
                if any(block.releases for block in charged.blocks()):
                    raise LedgerError(
                        f"{self._path} is missing, and rounds were charged: without it a round"
                        " might be released twice. Restore the whole directory"
                    )
        self._store = store.open(f"sqlite:///{budgets}", create=True)
        noise = self.noise
        self._state = found or memory.State(start, clipping_norm=noise.rule.clipping_norm)
        if self._state.model.shape != start.shape:
            raise DomainError(
                f"model must have the {self._state.model.size} numbers of the model that was"
                f" released; got {start.size}"
            )
        if found is not None:
            self._require_same_age(found)
        self._join(clients, found is not None)
        memory.write(self._path, self._state)

    def _require_same_age(self, state: memory.State) -> None:
        """Refuse a state that is older than the charges: its next round was released already."""
        told = {
            name: min(max(state.charges - first, 0), cap)
            for name, (first, cap) in state.clients.items()
        }
        for block in self._store.blocks(_TENANT + "*"):
            name = block.address.removeprefix(_TENANT)
            # One more was charged if the server ended between recording and releasing.
            if not block.releases <= told.get(name, 0) + 1:
                raise LedgerError(
                    f"{self._path} is older than the charges of client {name}: rounds that it does"
                    " not know were released. Restore the whole directory"
                )

    def _join(self, clients: dict[str, Budget], later: bool) -> None:
        """Plan the rounds of clients that are new, those of one budget together."""
        by_budget: dict[Budget, list[str]] = {}
        for name, budget in sorted(clients.items()):
            if name not in self._state.clients:
                by_budget.setdefault(budget, []).append(name)
        for budget, names in by_budget.items():
            blocks = [_TENANT + name for name in names]
            self._store.add_blocks(blocks, budget)
            fits = Accountant(budget).affordable_by_filter(self.mechanism)["plan"]
            count = min(fits, self._planned)
            if count > 0:
                said = f"{self.mechanism!r} {blocks!r}".encode()
                key = "plan-" + hashlib.sha256(said).hexdigest()
                self._store.plan(blocks, self.mechanism, count, key=key)
            # After a restart the next charge may have been made, without those who are new.
            first = self._state.charges + later
            self._state.clients.update(dict.fromkeys(names, (first, count)))

    @property
    def model(self) -> FloatArray:
        """The model that was released last: a copy."""
        return self._state.model.copy()

    @property
    def rounds(self) -> int:
        """How many rounds were released."""
        return self._state.rounds

    @property
    def is_open(self) -> bool:
        """Whether a round was begun and not released."""
        return self._open is not None

    def paying(self, charge: int | None = None) -> tuple[str, ...]:
        """Return the clients whose budget admits the next round, sorted."""
        number = self._state.charges if charge is None else charge
        return tuple(
            name
            for name, (first, count) in sorted(self._state.clients.items())
            if first <= number < first + count
        )

    def affordable(self) -> int:
        """Return for how many more rounds some client can pay."""
        ends = [first + count for first, count in self._state.clients.values() if count]
        return max(max(ends, default=0) - self._state.charges, 0)

    def epsilon(self, delta: float, *, ahead: int = 0) -> float:
        """Return the largest ε of a client at ``delta``, after ``ahead`` more rounds.

        ``ahead=1`` is what will be spent when the next round is released.
        """
        number = self._state.charges + int(checks.integer("ahead", ahead, 0))
        most = max(
            (min(number - first, cap) for first, cap in self._state.clients.values()), default=0
        )
        return (most * self.mechanism).epsilon(delta) if most > 0 else 0.0

    def begin(self) -> Round:
        """Charge the next round to all clients that can pay, then draw who is asked.

        Raises
        ------
        BudgetExceeded
            No client can pay any more: the run is over, and nothing was charged.
        """
        state = self._state
        paying = self.paying()
        if not paying:
            raise BudgetExceeded(
                f"no client can pay for round {state.rounds + 1}: the budgets of all"
                f" {len(state.clients)} are spent. The models released so far stay private"
            )
        blocks = [_TENANT + name for name in paying]
        self._store.charge(blocks, self.mechanism, key=f"round-{state.charges}")
        if isinstance(self.noise, SecureSumNoise):
            # Whoever is asked sends noise that the server may see: another attempt is another sum.
            self._remember(replace(state, charges=state.charges + 1))
            asked = paying
        else:
            drawn = self._generator.subset(len(paying), self.noise.sampling_probability)
            asked = tuple(paying[i] for i in drawn.tolist())
        self._open = Round(state.rounds + 1, asked, state.clipping_norm, len(paying))
        return self._open

    def release(self, updates: Mapping[str, ArrayLike]) -> FloatArray:
        """Release the round that was begun, and return the model.

        Parameters
        ----------
        updates : Mapping[str, array_like]
            What the clients that were asked sent, by their names; the rest has dropped out. What
            does not have the length of the model, or was not asked for, counts as nothing. For a
            secure sum the messages.

        Returns
        -------
        ndarray of float64
            The new model, on the disk before it is returned. Of a secure sum with too few
            survivors the old one.
        """
        asked = self._asked()
        noise, length = self.noise, self._state.model.size
        secure = isinstance(noise, SecureSumNoise)
        expected = noise.length(length) if isinstance(noise, SecureSumNoise) else length
        kept = {
            name: array
            for name, sent in updates.items()
            if name in asked.participants and (array := _vector(sent, expected)) is not None
        }
        rule = replace(noise.rule, clipping_norm=asked.clipping_norm)
        if isinstance(noise, SecureSumNoise):
            opened = noise.opened(kept.values(), rule)
            if opened is None:
                return self.model
            mean, rule = opened
        else:
            mean, rule = noise.release(kept.values(), length, asked.clients, rule, self._generator)
        # A secure sum was counted when it was asked for.
        charges = self._state.charges + (not secure)
        paid = replace(self._state, charges=charges, clipping_norm=rule.clipping_norm)
        return self._released(mean, paid)

    def _asked(self) -> Round:
        if self._open is None:
            raise LedgerError("no round was begun: call begin() before release()")
        asked, self._open = self._open, None
        return asked

    def _released(self, mean: FloatArray, paid: memory.State) -> FloatArray:
        model = self._state.model + self._rate * mean
        self._remember(replace(paid, model=model, rounds=paid.rounds + 1))
        return self.model

    def _remember(self, state: memory.State) -> None:
        """Write first: what is not on the disk must be seen by nobody."""
        memory.write(self._path, state)
        self._state = state

    def close(self) -> None:
        """Give the directory up to another server."""
        if hasattr(self, "_store"):
            self._store.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _vector(sent: object, length: int) -> FloatArray | None:
    """Return a client's numbers; None for what is no vector of them. Nothing here may raise."""
    try:
        found = np.asarray(sent, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if found.shape == (length,) else None

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

import numpy as np
from numpy.typing import ArrayLike

from accountant import checks, store
from accountant._basics.arrays import FloatArray
from accountant.adapters import _federated_state as memory
from accountant.adapters._federated_noise import CentralNoise, SecureSumNoise
from accountant.composition import composed
from accountant.errors import BudgetExceeded, DomainError, LedgerError, UnsupportedError
from accountant.ledger import Accountant, Budget
from accountant.noise import SecureGenerator
from accountant.store import texts

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
        What a round releases. After a restart it may be another: earlier rounds keep their price,
        and clients pay from what their budgets hold beside the rounds planned before.
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
        Of coins and noise; give one with a seed for tests only. Charges then say in their label,
        and :attr:`reasons`, that the models are not private.

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
    DomainError
        A client had another budget before, or earlier rounds another neighbouring relation.
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
        self._planned = checks.integer("rounds", rounds, 1, 2**40)
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
        state = found or memory.State(start, clipping_norm=self.noise.rule.clipping_norm)
        if state.model.shape != start.shape:
            raise DomainError(
                f"model must have the {state.model.size} numbers of the model that was"
                f" released; got {start.size}"
            )
        # Clients draw the noise of a secure sum.
        central = isinstance(self.noise, CentralNoise)
        label = self._generator.why_not_private if central else ""
        now = state.priced(texts.text_of_mechanism(self.mechanism), label)
        if found is not None:
            for each in map(texts.mechanism_of, state.mechanisms):
                if each.relation is not self.mechanism.relation:
                    raise DomainError(
                        "noise must have the neighbouring relation of earlier rounds,"
                        f" {each.relation!r}; got {self.mechanism.relation!r}. Begin another"
                        " directory"
                    )
            unfinished = self._charged_ahead(found)
            if unfinished and (found.present, found.label) != (now.present, now.label):
                # This server cannot make that round again: it would be another charge.
                state = found.charged(unfinished)
                now = state.priced(now.mechanisms[now.present], label)
        self._remember(self._joined(now, clients, found is not None))

    def _charged_ahead(self, state: memory.State) -> list[str]:
        """Return who was charged for a round that was not released.

        A state that is older than the charges is refused: its next round was released already.
        """
        found = []
        for block in self._store.blocks(_TENANT + "*"):
            name = block.address.removeprefix(_TENANT)
            paid = sum(share.paid for share in state.clients.get(name, ()))
            # One more was charged if the server ended between recording and releasing.
            if not block.releases <= paid + 1:
                raise LedgerError(
                    f"{self._path} is older than the charges of client {name}: rounds that it does"
                    " not know were released. Restore the whole directory"
                )
            if block.releases > paid:
                found.append(name)
        return found

    def _joined(self, state: memory.State, clients: dict[str, Budget], later: bool) -> memory.State:
        """Give a share of rounds as they are now to clients without one, those alike together."""
        shared = {name for name, _ in state.shares()}
        alike: dict[tuple[Budget, tuple[memory.Share, ...] | None], list[str]] = {}
        for name, budget in sorted(clients.items()):
            held = None if name in shared else state.clients.get(name, ())
            alike.setdefault((budget, held), []).append(name)
        # After a restart the next charge may have been made, without those who are new. Where
        # nobody could pay for it, it was not.
        first = state.charges + (later and bool(state.paying()))
        joined = dict(state.clients)
        for (budget, held), names in alike.items():
            blocks = [_TENANT + name for name in names]
            self._store.add_blocks(blocks, budget)  # refuses another budget than before
            if held is not None:
                most = self._planned_on(blocks, budget) if not held else self._left_on(blocks)
                share = memory.Share(state.present, first, most)
                joined |= dict.fromkeys(names, (*held, share))
        return replace(state, clients=joined)

    def _planned_on(self, blocks: list[str], budget: Budget) -> int:
        """Plan the rounds of clients that are new; return how many."""
        fits = Accountant(budget).affordable_by_filter(self.mechanism)["plan"]
        count = min(fits, self._planned)
        if count > 0:
            said = f"{self.mechanism!r} {blocks!r}".encode()
            key = "plan-" + hashlib.sha256(said).hexdigest()
            try:
                self._store.plan(blocks, self.mechanism, count, key=key)
            except BudgetExceeded:  # a server ended after it had planned others for them
                return self._left_on(blocks)
        return count

    def _left_on(self, blocks: list[str]) -> int:
        """Return how many rounds clients can pay beside what was planned with other noise."""
        try:
            return min(self._store.affordable(blocks, self.mechanism), self._planned)
        except UnsupportedError:  # their filter has no price for this mechanism
            return 0

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

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why what was released is not private, as after a server with a seed; else empty."""
        return self._state.reasons

    def paying(self) -> tuple[str, ...]:
        """Return the clients whose budget admits the next round, sorted."""
        return self._state.paying()

    def affordable(self) -> int:
        """Return for how many more rounds some client can pay."""
        state = self._state
        ahead = [
            max(share.first - state.charges, 0) + share.most - share.paid
            for _, share in state.shares()
            if share.paid < share.most
        ]
        return max(ahead, default=0)

    def epsilon(self, delta: float, *, ahead: int = 0) -> float:
        """Return the largest ε of a client at ``delta``, after ``ahead`` more rounds.

        Each round counts with the noise it was made with. ``ahead=1`` is what will be spent when
        the next round is released.
        """
        state = self._state
        number = state.charges + checks.integer("ahead", ahead, 0)
        most: dict[tuple[tuple[int, int], ...], int] = {}
        for held in state.clients.values():
            past = tuple(
                (share.mechanism, share.paid) for share in held if share.mechanism != state.present
            )
            now = sum(
                min(share.paid + max(number - max(share.first, state.charges), 0), share.most)
                for share in held
                if share.mechanism == state.present
            )
            most[past] = max(now, most.get(past, 0))
        mechanisms = [texts.mechanism_of(text) for text in state.mechanisms]
        spent = [
            composed(tuple((mechanisms[i], n) for i, n in (*past, (state.present, now)) if n))
            for past, now in most.items()
            if now or any(n for _, n in past)
        ]
        return max((each.epsilon(delta) for each in spent), default=0.0)

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
                f"no client can pay for round {state.rounds + 1}: all {len(state.clients)} have"
                f" made the rounds, of the {self._planned} planned, that their budgets allow with"
                " this noise. The models released so far stay private"
            )
        blocks = [_TENANT + name for name in paying]
        key = f"round-{state.charges}"
        self._store.charge(blocks, self.mechanism, label=state.label or None, key=key)
        if isinstance(self.noise, SecureSumNoise):
            # Whoever is asked sends noise that the server may see: another attempt is another sum.
            self._remember(state.charged(paying))
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
        paid = self._state if secure else self._state.charged(self.paying())
        return self._released(mean, replace(paid, clipping_norm=rule.clipping_norm))

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

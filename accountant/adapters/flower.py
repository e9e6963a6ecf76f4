"""Flower: federated averaging with differential privacy for clients, as a strategy and a mod.

:class:`PrivateFedAvg` goes where ``flwr.serverapp.strategy.FedAvg`` does. Needs Flower 1.25.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import Strategy
from numpy.typing import NDArray

from accountant.adapters._federated_noise import CentralNoise, SecureSumNoise, flat, unflat
from accountant.adapters.federated import FederatedRounds
from accountant.errors import BudgetExceeded, DomainError, UnsupportedError
from accountant.ledger import Budget
from accountant.noise import SecureGenerator

__all__ = ["CentralNoise", "PrivateFedAvg", "SecureSumNoise", "answer_names", "secure_sum_mod"]

_Handler: TypeAlias = Callable[[Message, Any], Message]

LOG = logging.getLogger("flwr")
_QUESTION = "client_name"
_NAME, _SENT, _NORM = "name", "message", "clipping-norm"


def answer_names(app: Any, name: Callable[[Any], str] | None = None) -> None:
    """Let a ClientApp tell the server which client it is.

    Parameters
    ----------
    app : flwr.clientapp.ClientApp
        The client's.
    name : callable, optional
        From the Context to the name under which the client has its budget; by default the
        ``partition-id`` of the node's configuration. A node that answers with another's name spends
        that one's budget: where clients are not trusted, let Flower authenticate the nodes, and
        give the strategy a table of ``names``.
    """

    def answer(message: Message, context: Any) -> Message:
        own = str(context.node_config["partition-id"]) if name is None else name(context)
        return Message(RecordDict({_NAME: ConfigRecord({_NAME: own})}), reply_to=message)

    app.query(_QUESTION)(answer)


def secure_sum_mod(
    noise: SecureSumNoise, generator: SecureGenerator | None = None
) -> Callable[[Message, Any, _Handler], Message]:
    """Return a mod that sends a client's update as integers with the client's own noise.

    It replaces everything that the train function answers: metrics would not be private. Put it
    first in ``mods``, so that it acts last on what is sent.

    Parameters
    ----------
    noise : SecureSumNoise
        That of the strategy.
    generator : SecureGenerator, optional
        Of the client; one that is seeded hides nothing.
    """
    if generator is not None and generator.seeded:
        LOG.warning("a client's messages are %s", generator.why_not_private)

    def mod(
        message: Message, context: Any, call_next: Callable[[Message, Any], Message]
    ) -> Message:
        if not message.metadata.message_type.startswith("train"):
            return call_next(message, context)
        before = _flat(next(iter(message.content.array_records.values())))
        told = [each.get(_NORM) for each in message.content.config_records.values()]
        norm = next((float(each) for each in told if isinstance(each, float)), None)
        reply = call_next(message, context)
        if reply.has_error():
            return reply
        after = _flat(next(iter(reply.content.array_records.values())))
        # Made here and not before: an app is copied to processes, and a generator never is.
        whole = noise.message(after - before, generator or SecureGenerator(), norm)
        reply.content = RecordDict({_SENT: ArrayRecord({_SENT: Array(whole)})})
        return reply

    return mod


class PrivateFedAvg(Strategy):  # type: ignore[misc]
    """Federated averaging whose every round is charged to its clients before they are asked.

    Parameters
    ----------
    directory, noise, budgets, server_learning_rate, generator
        As in :class:`~accountant.adapters.federated.FederatedRounds`: a new strategy with the same
        directory continues after a crash, with the model that was released last.
    planned_rounds : int
        For how many rounds budgets are planned; ``num_rounds`` of :meth:`start` may be less.
    delta : float
        At which ε is logged before each round.
    names : Mapping[int, str], optional
        The names of clients by their node; by default each node is asked (:func:`answer_names`).
    least_connected : int
        How many nodes to wait for before a round; those missing then count as dropped out.
    timeout : float
        For those nodes, and for the answers about names, in seconds.

    Notes
    -----
    *Guarantee.* That of FederatedRounds, about the models that clients and server evaluation see.
    Metrics of clients are not aggregated and clients do not evaluate: their answers would be
    releases that nobody pays for. With :class:`SecureSumNoise` it holds against whoever sees the
    sums; Flower brings each client's message to this strategy by itself, so the server must be
    trusted not to look at them, unless a protocol beneath adds them up.

    Examples
    --------
    See ``examples/federated_flower.py``.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        noise: CentralNoise | SecureSumNoise,
        budgets: Mapping[str, Budget],
        *,
        planned_rounds: int,
        server_learning_rate: float = 1.0,
        delta: float = 1e-5,
        names: Mapping[int, str] | None = None,
        least_connected: int = 1,
        timeout: float = 60.0,
        generator: SecureGenerator | None = None,
    ) -> None:
        self._made_of = (directory, noise, dict(budgets))
        self._options: dict[str, Any] = {
            "rounds": planned_rounds,
            "server_learning_rate": server_learning_rate,
            "generator": generator,
        }
        self.delta, self._timeout, self._least = float(delta), timeout, least_connected
        self._names: dict[int, str] = dict(names or {})
        self._asks = names is None
        self.rounds: FederatedRounds | None = None
        self._like: dict[str, NDArray[Any]] = {}

    def summary(self) -> None:
        """Log what is released and to whom it is charged."""
        _, noise, budgets = self._made_of
        LOG.info("\t├──> %r", noise)
        LOG.info("\t└──> %d clients with a budget of their own", len(budgets))

    def start(
        self,
        grid: Any,
        initial_arrays: ArrayRecord,
        num_rounds: int = 3,
        *args: Any,
        **options: Any,
    ) -> Any:
        """Run until ``num_rounds`` are released in all, or no budget admits another.

        Returns
        -------
        flwr.serverapp.strategy.Result
            Its ``arrays`` are the model that was released last, also after a restart.
        """
        self.open(initial_arrays)
        assert self.rounds is not None
        try:
            more = max(min(num_rounds - self.rounds.rounds, self.rounds.affordable()), 0)
            if more < num_rounds:
                LOG.info(
                    "%d rounds are released already, and budgets admit %d more",
                    self.rounds.rounds,
                    self.rounds.affordable(),
                )
            result = super().start(grid, self._arrays(), more, *args, **options)
            result.arrays = self._arrays()
            for reason in self.rounds.reasons:
                LOG.warning("the models are %s", reason)
            return result
        finally:
            self.rounds.close()

    def open(self, initial_arrays: ArrayRecord) -> FederatedRounds:
        """Open the directory: begin with these arrays, or continue with what was released."""
        self._like = {name: np.asarray(each.numpy()) for name, each in initial_arrays.items()}
        for name, array in self._like.items():
            if array.dtype.kind != "f":
                raise UnsupportedError(
                    f"arrays must hold floating-point numbers; {name} holds {array.dtype}. Keep"
                    " what is not trained out of the federation"
                )
        directory, noise, budgets = self._made_of
        self.rounds = FederatedRounds(
            directory, noise, budgets, model=_flat(initial_arrays), **self._options
        )
        return self.rounds

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Any
    ) -> Iterable[Message]:
        """Charge the round, draw the clients, and write to those that are connected."""
        rounds = self._opened()
        spent = rounds.epsilon(self.delta, ahead=1)
        try:
            asked = rounds.begin()
        except BudgetExceeded as refusal:
            LOG.warning("stopped: %s", refusal)
            return []
        LOG.info(
            "round %d: ε = %.4f at δ = %g when it is released", asked.number, spent, self.delta
        )
        nodes = self._nodes(grid)
        config["server-round"] = asked.number
        config[_NORM] = asked.clipping_norm
        content = RecordDict({"arrays": self._arrays(), "config": config})
        return [
            Message(content, dst_node_id=nodes[name], message_type="train")
            for name in asked.participants
            if name in nodes
        ]

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Release the noisy sum of what arrived, even of nothing at all."""
        rounds = self._opened()
        if not rounds.is_open:
            return None, None
        model, secure = rounds.model, isinstance(self._made_of[1], SecureSumNoise)
        updates = {}
        for reply in replies:
            name = self._names.get(reply.metadata.src_node_id)
            sent = _told(reply, lambda content: _flat(next(iter(content.array_records.values()))))
            if name is not None and sent is not None and (secure or sent.shape == model.shape):
                updates[name] = sent if secure else sent - model
        rounds.release(updates)
        return self._arrays(), None

    def configure_evaluate(self, *_: Any) -> Iterable[Message]:
        """Ask nobody: what clients answer about their data is another release."""
        return []

    def aggregate_evaluate(self, *_: Any) -> None:
        """Return nothing."""

    def _opened(self) -> FederatedRounds:
        if self.rounds is None:
            raise DomainError("the strategy was not opened: call start, or open before a round")
        return self.rounds

    def _nodes(self, grid: Any) -> dict[str, int]:
        """Return the connected node of each client, asking those that are new for their names."""
        deadline = time.monotonic() + self._timeout
        while len(connected := set(grid.get_node_ids())) < self._least:
            if time.monotonic() > deadline:
                break
            time.sleep(0.2)
        new = connected - set(self._names) if self._asks else set()
        if new:
            questions = [
                Message(RecordDict(), dst_node_id=node, message_type=f"query.{_QUESTION}")
                for node in new
            ]
            for reply in grid.send_and_receive(questions, timeout=self._timeout):
                name = _told(reply, lambda content: str(content[_NAME][_NAME]))
                if name is not None:
                    self._names[reply.metadata.src_node_id] = name
        found: dict[str, list[int]] = {}
        for node in sorted(connected & set(self._names)):
            found.setdefault(self._names[node], []).append(node)
        for name, nodes in found.items():
            if len(nodes) > 1:
                # A client may come back while its former node is still listed.
                LOG.warning("%d nodes call themselves %r: none of them is asked", len(nodes), name)
        return {name: nodes[0] for name, nodes in found.items() if len(nodes) == 1}

    def _arrays(self) -> ArrayRecord:
        """Return the model as Flower's arrays, with the names, shapes and types of the start."""
        found = unflat(self._opened().model, self._like)
        return ArrayRecord({name: Array(part) for name, part in found.items()})


def _flat(arrays: ArrayRecord) -> NDArray[np.float64]:
    return flat(arrays.to_numpy_ndarrays())


def _told(reply: Message, read: Callable[[Any], Any]) -> Any:
    """Return what an answer says; None for what is no such thing. Nothing here may raise."""
    try:
        return None if reply.has_error() else read(reply.content)
    except Exception:  # whatever a client sends
        return None

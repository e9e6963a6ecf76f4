"""NVFlare: federated averaging with differential privacy for clients, a controller and a filter.

:class:`PrivateFedAvg` goes where ``nvflare.app_common.workflows.fedavg.FedAvg`` does. Needs NVFlare
2.9.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from nvflare.apis.dxo import DXO, DataKind
from nvflare.apis.dxo_filter import DXOFilter
from nvflare.app_common.abstract.fl_model import FLModel, ParamsType
from nvflare.app_common.workflows.model_controller import ModelController

from accountant.adapters import _federated_noise
from accountant.adapters._federated_noise import CentralNoise, SecureSumNoise, unflat
from accountant.adapters.federated import FederatedRounds, Round
from accountant.errors import UnsupportedError
from accountant.learn.clipping import AdaptiveQuantile
from accountant.ledger import Budget
from accountant.noise import SecureGenerator

__all__ = ["PrivateFedAvg", "SecureSumFilter"]

_SENT = "message"


class PrivateFedAvg(ModelController):  # type: ignore[misc]
    """Federated averaging whose every round is charged to its clients before they are asked.

    The arguments are plain, because NVFlare writes them into the job's configuration. Either
    ``sampling_probability``, for a server that adds the noise, or ``least_survivors``, for clients
    that do (:class:`SecureSumFilter`), says which noise it is.

    Parameters
    ----------
    directory : str
        On the server: the budgets and the model that was released last. A job with the same
        directory continues after a crash.
    budgets : Mapping[str, Sequence[float]]
        (ε, δ) of each client, by the name of its site.
    rounds : int
        How many rounds are planned; the run ends earlier when all budgets are spent.
    noise_multiplier, clipping_norm : float
        As in :class:`~accountant.adapters.federated.CentralNoise`, or ``SecureSumNoise``.
    sampling_probability : float, optional
        The chance of each client to be asked in a round.
    count_noise : float, optional
        With ``sampling_probability``: the norm moves to the median of the updates' norms, by noisy
        counts of this deviation.
    least_survivors, colluding, levels : int, optional
        As in :class:`~accountant.adapters.federated.SecureSumNoise`.
    distribution : {"discrete gaussian", "skellam"}
        Of the clients' noise, with ``least_survivors``.
    delta : float
        At which ε is logged before each round.
    server_learning_rate : float
        By which the mean update is multiplied.
    round_timeout : int
        In seconds: who has not answered has dropped out.

    Notes
    -----
    *Guarantee.* That of :class:`~accountant.adapters.federated.FederatedRounds`, about the models
    that clients and the persistor see. Metrics of clients are dropped. With ``least_survivors`` it
    holds against whoever sees the sums; NVFlare brings each message to this controller by itself,
    so the server must be trusted not to look at them, unless a protocol beneath adds them up.
    """

    def __init__(
        self,
        directory: str,
        budgets: Mapping[str, Sequence[float]],
        rounds: int,
        noise_multiplier: float,
        clipping_norm: float,
        sampling_probability: float | None = None,
        count_noise: float | None = None,
        least_survivors: int | None = None,
        colluding: int = 0,
        levels: int = 2**16,
        delta: float = 1e-5,
        server_learning_rate: float = 1.0,
        round_timeout: int = 600,
        distribution: str = "discrete gaussian",
    ) -> None:
        # What a client sends must not stop the job.
        super().__init__(ignore_result_error=True)
        self.directory, self.budgets, self.rounds = directory, budgets, rounds
        self.noise_multiplier, self.clipping_norm = noise_multiplier, clipping_norm
        self.sampling_probability, self.count_noise = sampling_probability, count_noise
        self.least_survivors, self.colluding, self.levels = least_survivors, colluding, levels
        self.delta, self.server_learning_rate = delta, server_learning_rate
        self.round_timeout, self.distribution = round_timeout, distribution
        self.noise()

    def noise(self) -> CentralNoise | SecureSumNoise:
        """Return the noise that the arguments describe."""
        if (self.sampling_probability is None) == (self.least_survivors is None):
            raise UnsupportedError(
                "give one of sampling_probability, where the server adds the noise, and"
                " least_survivors, where clients do"
            )
        if self.least_survivors is not None:
            if self.count_noise is not None:
                raise UnsupportedError(
                    "count_noise needs sampling_probability: filters of clients do not see the norm"
                    " of the round. Leave it out; the norm is fixed then"
                )
            return SecureSumNoise(
                self.noise_multiplier, self.clipping_norm, self.least_survivors, self.colluding,
                self.levels, self.distribution,
            )  # fmt: skip
        norm: float | AdaptiveQuantile = self.clipping_norm
        if self.count_noise is not None:
            norm = AdaptiveQuantile(self.clipping_norm, count_noise=self.count_noise)
        assert self.sampling_probability is not None
        return CentralNoise(self.noise_multiplier, norm, self.sampling_probability)

    def federation(self, model: NDArray[np.float64]) -> FederatedRounds:
        """Open the directory: begin with this model, or continue with what was released."""
        return FederatedRounds(
            self.directory,
            self.noise(),
            {name: Budget(float(e), float(d)) for name, (e, d) in self.budgets.items()},
            model=model,
            rounds=self.rounds,
            server_learning_rate=self.server_learning_rate,
        )

    def run(self) -> None:
        """Release rounds until all are made, or no budget admits another."""
        start = self.load_model()
        like = {name: np.asarray(value) for name, value in sorted(start.params.items())}
        federation = self.federation(flat(like))
        try:
            while federation.rounds < self.rounds and federation.affordable() > 0:
                if self.abort_signal.triggered:
                    return
                self._round(federation, like)
            spent = federation.epsilon(self.delta)
            self.info(
                f"{federation.rounds} rounds were released, ε = {spent:.4f} at δ = {self.delta:g};"
                f" budgets admit {federation.affordable()} more"
            )
            for reason in federation.reasons:
                self.warning(f"the models are {reason}")
        finally:
            federation.close()

    def _round(self, federation: FederatedRounds, like: dict[str, NDArray[Any]]) -> None:
        spent = federation.epsilon(self.delta, ahead=1)
        asked = federation.begin()
        self.info(
            f"round {asked.number}: ε = {spent:.4f} at δ = {self.delta:g} when it is released"
        )
        model = federation.model
        answers = self._answers(asked, unflat(model, like))
        updates: dict[str, Any] = {}
        for answer in answers:
            try:
                updates[answer.meta["client_name"]] = _update(answer, model, federation)
            except Exception as error:
                self.warning(f"an answer counts as nothing: {type(error).__name__}")
        released = FLModel(
            params_type=ParamsType.FULL,
            params=unflat(federation.release(updates), like),
            current_round=asked.number,
            total_rounds=self.rounds,
        )
        self.save_model(released)

    def _answers(self, asked: Round, params: dict[str, NDArray[Any]]) -> list[FLModel]:
        connected = {client.name for client in self.engine.get_clients()}
        targets = [name for name in asked.participants if name in connected]
        if not targets:  # NVFlare would ask everybody
            return []
        data = FLModel(
            params_type=ParamsType.FULL,
            params=params,
            current_round=asked.number,
            total_rounds=self.rounds,
        )
        found: list[FLModel] = self.send_model_and_wait(
            targets=targets, data=data, timeout=self.round_timeout
        )
        return found


class SecureSumFilter(DXOFilter):  # type: ignore[misc]
    """Of a client's results: send the update as integers with the client's own noise, no more.

    Put it last among the filters of the task's results. The trainer must send the difference to the
    global model (``ParamsType.DIFF``); anything else is refused, and the client then sends nothing.

    Parameters
    ----------
    noise_multiplier, clipping_norm, least_survivors, colluding, levels, distribution
        Those of the controller.
    """

    def __init__(
        self,
        noise_multiplier: float,
        clipping_norm: float,
        least_survivors: int,
        colluding: int = 0,
        levels: int = 2**16,
        distribution: str = "discrete gaussian",
    ) -> None:
        super().__init__(supported_data_kinds=[DataKind.WEIGHTS, DataKind.WEIGHT_DIFF],
                         data_kinds_to_filter=None)  # fmt: skip
        self.noise_multiplier, self.clipping_norm = noise_multiplier, clipping_norm
        self.least_survivors, self.colluding, self.levels = least_survivors, colluding, levels
        self.distribution = distribution
        self._noise = SecureSumNoise(
            noise_multiplier, clipping_norm, least_survivors, colluding, levels, distribution
        )

    def process_dxo(self, dxo: DXO, shareable: Any, fl_ctx: Any) -> DXO:
        """Return the message in place of the update."""
        if dxo.data_kind != DataKind.WEIGHT_DIFF:
            raise UnsupportedError(
                "the trainer must send the difference to the global model (ParamsType.DIFF); got"
                f" {dxo.data_kind}"
            )
        whole = self._noise.message(flat(dxo.data), SecureGenerator())
        return DXO(DataKind.WEIGHT_DIFF, data={_SENT: whole})


def flat(params: Mapping[str, Any]) -> NDArray[np.float64]:
    """Return parameters as one vector, in the order of their names."""
    return _federated_noise.flat(params[name] for name in sorted(params))


def _update(
    answer: FLModel, model: NDArray[np.float64], federation: FederatedRounds
) -> NDArray[np.float64]:
    if isinstance(federation.noise, SecureSumNoise):
        return np.asarray(answer.params[_SENT], dtype=np.float64)
    sent = flat(answer.params)
    return sent if answer.params_type == ParamsType.DIFF else sent - model

"""Central differential privacy for clients in Flower's federated rounds.

Every client joins a round by its own coin; the server clips what each returns, adds the updates up
and adds noise once. The unit of privacy is the client. The server is trusted; a client that is
drawn but fails sends nothing, and is charged all the same.

    python examples/federated_flower.py          (needs flwr)
"""

import math
import sys

import numpy as np

from accountant import Accountant, Budget, Gaussian, PoissonSampled, UnsupportedError
from accountant.noise import Grid, SecureGenerator
from accountant.sampling import PoissonSampler

try:
    from flwr.common import FitIns, ndarrays_to_parameters, parameters_to_ndarrays
    from flwr.server.strategy import FedAvg
except ImportError:  # the accounting itself needs nothing of Flower
    FedAvg = object


class PrivateFedAvg(FedAvg):
    """Federated averaging of clipped updates with Gaussian noise, recorded round by round."""

    def __init__(self, sampler, noise_multiplier, clipping_norm, ledger, **options):
        if not isinstance(sampler, PoissonSampler):
            raise UnsupportedError(
                f"clients must be drawn by a PoissonSampler; got a {type(sampler).__name__}."
                " fraction_fit draws a fixed number of clients, which is another mechanism"
            )
        super().__init__(**options)
        self.sampler, self.batches = sampler, sampler.batches()
        self.noise_multiplier, self.norm, self.ledger = noise_multiplier, clipping_norm, ledger
        self.generator, self.weights = SecureGenerator(), None
        if ledger.budget is not None and len(ledger) == 0:
            # The exact composition of all rounds; when to stop stays free.
            ledger.plan(
                PoissonSampled(Gaussian(noise_multiplier), sampler.sampling_probability),
                sampler.steps,
            )

    def before_round(self):
        """Record the round, then return the positions of the clients that take part."""
        probability = self.sampler.sampling_probability
        self.ledger.step(noise_multiplier=self.noise_multiplier, sampling_probability=probability)
        return next(self.batches)

    def private_sum(self, updates, shapes):
        """Clip every client's update, add them up on a grid, and add noise of σ times the norm."""
        deviation = self.noise_multiplier * self.norm
        grid = Grid.at_most(deviation / 2**20)
        total = [np.zeros(shape) for shape in shapes]
        for update in updates:
            norm = math.sqrt(sum(float((part.astype(float) ** 2).sum()) for part in update))
            if not math.isfinite(norm):
                continue  # as if the client had sent nothing
            # A part in 10^12 for the rounding of norm and quotient; cut towards zero to the grid.
            factor = min(1.0, self.norm / max(norm, 1e-300)) * (1.0 - 1e-12)
            for kept, part in zip(total, update, strict=True):
                kept += np.trunc(factor * part.astype(float) / grid.step) * grid.step
        return [
            grid.release_gaussian(part.ravel(), deviation, self.generator).reshape(part.shape)
            for part in total
        ]

    # Flower's interface

    def configure_fit(self, server_round, parameters, client_manager):
        """Let every client draw its coin."""
        known = sorted(client_manager.all().items())
        if len(known) != self.sampler.dataset_size:
            raise UnsupportedError(f"{len(known)} clients are connected, not the number stated")
        self.weights = parameters_to_ndarrays(parameters)
        return [(known[i][1], FitIns(parameters, {})) for i in self.before_round()]

    def aggregate_fit(self, server_round, results, failures):
        """Release the noisy sum, even of no client at all."""
        new = [parameters_to_ndarrays(reply.parameters) for _, reply in results]
        updates = [[a - b for a, b in zip(one, self.weights, strict=True)] for one in new]
        noisy = self.private_sum(updates, [part.shape for part in self.weights])
        expected = self.sampler.sampling_probability * self.sampler.dataset_size
        moved = [a + b / expected for a, b in zip(self.weights, noisy, strict=True)]
        return ndarrays_to_parameters([part.astype(np.float32) for part in moved]), {}


def main(rounds=20, clients=200):
    from flwr.common import Code, FitRes, Status
    from flwr.server import Server, SimpleClientManager
    from flwr.server.client_proxy import ClientProxy

    rng = np.random.default_rng(0)

    class Client(ClientProxy):
        """A client in this process: one step towards the mean of its own data."""

        def fit(self, ins, timeout, group_id):
            (w,) = parameters_to_ndarrays(ins.parameters)
            new = ndarrays_to_parameters([w + 0.5 * (self.mean - w)])
            return FitRes(Status(Code.OK, ""), new, 1, {})

        def evaluate(self, ins, timeout, group_id): ...
        def get_parameters(self, ins, timeout, group_id): ...
        def get_properties(self, ins, timeout, group_id): ...
        def reconnect(self, ins, timeout, group_id): ...

    manager = SimpleClientManager()
    for number in range(clients):
        client = Client(f"{number:06d}")
        client.mean = rng.normal(0.5, 0.2, size=4).astype(np.float32)
        manager.register(client)
    ledger = Accountant(Budget(epsilon=10.0, delta=1e-4))
    strategy = PrivateFedAvg(
        PoissonSampler(dataset_size=clients, sampling_probability=0.2, steps=rounds),
        noise_multiplier=1.0,
        clipping_norm=0.5,
        ledger=ledger,
        fraction_evaluate=0.0,
        initial_parameters=ndarrays_to_parameters([np.zeros(4, dtype=np.float32)]),
    )
    server = Server(client_manager=manager, strategy=strategy)
    server.fit(num_rounds=rounds, timeout=None)
    (w,) = parameters_to_ndarrays(server.parameters)
    print(f"{len(ledger)} rounds, ε = {ledger.epsilon(1e-4):.4f} at δ = 1e-4, model {w.round(2)}")
    return ledger


if __name__ == "__main__":
    main(*(int(n) for n in sys.argv[1:2]))

"""DP-SGD in plain PyTorch, without Opacus: the callback below is all that accounting takes.

python examples/loop_pytorch.py          (needs torch)
"""

import sys

from accountant import Accountant, Budget, Gaussian, PoissonSampled, UnsupportedError
from accountant.adapters.torch_batches import BatchSampler
from accountant.sampling import PoissonSampler


class PrivacyCallback:
    """Records every step before it is released; refuses batches that are no Poisson samples."""

    def __init__(self, loader, noise_multiplier, ledger):
        batches = getattr(loader, "batch_sampler", None)
        sampler = getattr(batches, "sampler", None)
        if not (isinstance(batches, BatchSampler) and isinstance(sampler, PoissonSampler)):
            raise UnsupportedError(
                "the loader's batch_sampler must be BatchSampler(PoissonSampler(...));"
                f" got a {type(batches).__name__}: a shuffled loader is another mechanism"
            )
        self.ledger, self.noise_multiplier = ledger, noise_multiplier
        self.probability = sampler.sampling_probability
        if ledger.budget is not None and len(ledger) == 0:
            # The exact composition of all steps; when to stop stays free.
            ledger.plan(PoissonSampled(Gaussian(noise_multiplier), self.probability), sampler.steps)

    def before_step(self):
        """Charge the ledger."""
        self.ledger.step(
            noise_multiplier=self.noise_multiplier, sampling_probability=self.probability
        )


def noisy_gradient(model, loss, x, y, clipping_norm, noise_multiplier, expected_batch_size):
    """Clip every record's gradient, add them up, add noise; an empty batch is noise alone.

    Leave the generator that makes the noise unseeded: whoever knows a seed can subtract the noise.
    """
    import torch
    from torch.func import functional_call, grad, vmap

    parameters = {name: p.detach() for name, p in model.named_parameters()}
    total = {name: torch.zeros_like(p) for name, p in parameters.items()}
    if len(x):

        def one(parameters, x, y):
            return loss(functional_call(model, parameters, (x[None],)), y[None])

        rows = vmap(grad(one), in_dims=(None, 0, 0))(parameters, x, y)
        norms = torch.stack([g.flatten(1).norm(dim=1) for g in rows.values()]).norm(dim=0)
        factor = (clipping_norm / norms.clamp(min=1e-12)).clamp(max=1.0)
        total = {name: torch.einsum("i,i...", factor, g) for name, g in rows.items()}
    for name, parameter in model.named_parameters():
        noise = noise_multiplier * clipping_norm * torch.randn_like(parameter)
        parameter.grad = (total[name] + noise) / expected_batch_size


def main(steps=200, noise_multiplier=1.2):
    import torch
    from torch.utils.data import DataLoader, TensorDataset, default_collate

    x = torch.randn(2000, 10, generator=torch.Generator().manual_seed(0))
    data = TensorDataset(x, (x[:, 0] > 0).long())
    model = torch.nn.Linear(10, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)

    sampler = PoissonSampler(dataset_size=len(data), sampling_probability=0.05, steps=steps)
    empty = (x[:0], torch.zeros(0, dtype=torch.long))
    loader = DataLoader(
        data,
        batch_sampler=BatchSampler(sampler),
        collate_fn=lambda rows: default_collate(rows) if rows else empty,
    )
    ledger = Accountant(Budget(epsilon=8.0, delta=1e-5))
    callback = PrivacyCallback(loader, noise_multiplier, ledger)
    for features, labels in loader:
        callback.before_step()  # raises BudgetExceeded before anything is released
        noisy_gradient(
            model,
            torch.nn.functional.cross_entropy,
            features,
            labels,
            1.0,
            noise_multiplier,
            0.05 * len(data),
        )
        optimizer.step()
    accuracy = (model(x).argmax(1) == data.tensors[1]).float().mean().item()
    print(
        f"{len(ledger)} steps, ε = {ledger.epsilon(1e-5):.4f} at δ = 1e-5, accuracy {accuracy:.2f}"
    )
    return ledger


if __name__ == "__main__":
    main(*(int(n) for n in sys.argv[1:2]))

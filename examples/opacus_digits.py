"""Digits with Opacus and the exact accountant, beside opacus' own on the same run.

python examples/opacus_digits.py          (needs opacus and scikit-learn)
"""

import sys
import warnings

import opacus
import torch
from opacus.accountants import create_accountant
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

import accountant.adapters.opacus  # noqa: F401 (registers "exact")


def main(epochs=10, epsilon=3.0, delta=1e-4):
    warnings.simplefilter("ignore")
    digits = load_digits()
    x, y = torch.tensor(digits.data / 16.0, dtype=torch.float32), torch.tensor(digits.target)
    model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.Tanh(), torch.nn.Linear(32, 10))
    engine = opacus.PrivacyEngine(accountant="exact")
    model, optimizer, loader = engine.make_private_with_epsilon(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.9),
        data_loader=DataLoader(TensorDataset(x, y), batch_size=128),
        target_epsilon=epsilon,
        target_delta=delta,
        epochs=epochs,
        max_grad_norm=1.0,
    )
    for _ in range(epochs):
        for features, labels in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(features), labels).backward()
            optimizer.step()
    accuracy = (model(x).argmax(1) == y).float().mean().item()
    print(f"σ = {optimizer.noise_multiplier:.4f}, accuracy {accuracy:.3f} on the training digits")
    print(f"exact: ε = {engine.get_epsilon(delta):.6f} after {len(engine.accountant)} steps")
    for name in ("prv", "rdp"):
        theirs = create_accountant(name)
        theirs.history = engine.accountant.history
        print(f"{name:>5}: ε = {theirs.get_epsilon(delta):.6f}")
    return engine


if __name__ == "__main__":
    main(*(int(n) for n in sys.argv[1:2]))

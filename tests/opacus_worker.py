"""One of the workers of a data-parallel run; started by test_adapters_opacus.py.

Arguments: rank, number of workers, rendezvous file. Prints one JSON line: what came of a run with
seeds of their own, of one with a seed in common, and of one with small batches.
"""

import json
import sys
import warnings

import opacus
import torch
from opacus.distributed import DifferentiallyPrivateDistributedDataParallel as Wrapped
from torch.utils.data import DataLoader, TensorDataset

import accountant.adapters.opacus  # noqa: F401 (registers)


def run(seed, batch_size):
    torch.manual_seed(seed)
    rows = torch.randn(1800, 8, generator=torch.Generator().manual_seed(1))
    data = TensorDataset(rows, (rows[:, 0] > 0).long())
    model = Wrapped(torch.nn.Linear(8, 2))
    engine = opacus.PrivacyEngine(accountant="exact")
    try:
        model, optimizer, loader = engine.make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
            data_loader=DataLoader(data, batch_size=batch_size),
            noise_multiplier=1.1,
            max_grad_norm=1.0,
        )
    except TypeError as error:
        return {"refused": str(error)}
    seen = 0
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        seen += len(x)
    weights = torch.cat([p.detach().flatten() for p in model.parameters()]).tolist()
    return {
        "optimizer": type(optimizer).__name__,
        "history": engine.accountant.history,
        "epsilon": engine.get_epsilon(1e-5),
        "seen": seen,
        "weights": weights,
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    rank, workers, meeting = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{meeting}", rank=rank, world_size=workers
    )
    print(json.dumps([run(7 + rank, 200), run(7, 200), run(7 + rank, 20)]))
    torch.distributed.destroy_process_group()

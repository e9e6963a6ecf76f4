"""One of the workers of a data-parallel run; started by adapters/test_opacus_workers.py.

Arguments: rank, number of workers, rendezvous file. Prints one JSON line: what came of a run with
seeds of their own, of one with a seed in common, of one with small batches, of one that is seeded
alike after make_private, and of one whose batches are cut.
"""

import contextlib
import json
import sys
import warnings

import opacus
import torch
from opacus.distributed import DifferentiallyPrivateDistributedDataParallel as Wrapped
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch.utils.data import DataLoader, TensorDataset

import accountant.adapters.opacus  # noqa: F401 (registers)


def run(seed, batch_size, wrapped=Wrapped, afterwards=None, physical=None):
    torch.manual_seed(seed)
    rows = torch.randn(1800, 8, generator=torch.Generator().manual_seed(1))
    data = TensorDataset(rows, (rows[:, 0] > 0).long())
    model = wrapped(torch.nn.Linear(8, 2))
    engine = opacus.PrivacyEngine(accountant="exact")
    try:
        model, optimizer, loader = engine.make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
            data_loader=DataLoader(data, batch_size=batch_size),
            noise_multiplier=1.1,
            max_grad_norm=1.0,
        )
        if afterwards is not None:
            torch.manual_seed(afterwards)
        parts = contextlib.nullcontext(loader)
        if physical is not None:
            parts = BatchMemoryManager(
                data_loader=loader, max_physical_batch_size=physical, optimizer=optimizer
            )
        seen = train(model, optimizer, parts)
    except TypeError as error:
        return {"refused": str(error), "epsilon": engine.get_epsilon(1e-5)}
    weights = torch.cat([p.detach().flatten() for p in model.parameters()]).tolist()
    return {
        "optimizer": type(optimizer).__name__,
        "history": engine.accountant.history,
        "epsilon": engine.get_epsilon(1e-5),
        "seen": seen,
        "weights": weights,
    }


def train(model, optimizer, parts):
    seen = 0
    with parts as loader:
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            seen += len(x)
    return seen


def main(rank, workers, meeting):
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{meeting}", rank=rank, world_size=workers
    )
    found = [
        run(7 + rank, 200),
        run(7, 200),
        run(7 + rank, 20),
        run(7 + rank, 200, afterwards=3),
        run(7 + rank, 200, physical=40),
    ]
    print(json.dumps(found))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])

"""The workers of data-parallel runs; started by adapters/test_opacus_workers.py.

Each reports what came of every run of ``runs``, by its name.
"""

import contextlib
from functools import partial

import opacus
import torch
from opacus.distributed import DifferentiallyPrivateDistributedDataParallel as Wrapped
from opacus.utils.batch_memory_manager import BatchMemoryManager
from opacus.utils.fsdp_utils import FSDP2Wrapper
from opacus.utils.uniform_sampler import UniformWithReplacementSampler
from torch.distributed.fsdp import MixedPrecisionPolicy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

import accountant as ac
import accountant.adapters.opacus  # registers
from accountant.adapters.torch_batches import BatchSampler
from accountant.sampling import RandomAllocation
from support import forked_workers

BUDGET = ac.Budget(2.0, 1e-5)


def network(seed=3):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.Tanh(), torch.nn.Linear(64, 4))


def data(zeros=False):
    rows = torch.randn(1800, 8, generator=torch.Generator().manual_seed(1))
    rows = torch.zeros_like(rows) if zeros else rows
    return TensorDataset(rows, (rows[:, 0] > 0).long())


def run(
    seed,
    batch_size=200,
    wrapped=Wrapped,
    afterwards=None,
    physical=None,
    batches=None,
    ledger=None,
    load=None,
    save=None,
    zeros=False,
    coins=None,
    **options,
):
    """Train for one pass over the loader; report what was recorded, or why it was refused."""
    torch.manual_seed(seed)
    records, engine = data(zeros), opacus.PrivacyEngine(accountant="exact")
    model = wrapped(network())
    if ledger is not None:
        engine.accountant.ledger = ledger
    if batches is None:
        generator = None if coins is None else torch.Generator().manual_seed(coins)
        loader = DataLoader(records, batch_size=batch_size, generator=generator)
    else:
        loader = DataLoader(records, batch_sampler=batches)
    refused, seen, optimizer = None, 0, None
    start = before = [_local(p) for p in model.parameters()]
    try:
        known = {"noise_multiplier": 1.1, "max_grad_norm": 1.0} | options
        module, optimizer, *rest = engine.make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
            data_loader=loader,
            **known,
        )
        if load is not None:
            engine.load_checkpoint(path=load, module=module, optimizer=optimizer)
        if afterwards is not None:
            torch.manual_seed(afterwards)
        parts = contextlib.nullcontext(rest[-1])
        if physical is not None:
            parts = BatchMemoryManager(
                data_loader=rest[-1], max_physical_batch_size=physical, optimizer=optimizer
            )
        criterion = rest[0] if len(rest) == 2 else torch.nn.functional.cross_entropy
        for number in train(module, optimizer, criterion, parts):
            seen += number
            before = [_local(p) for p in model.parameters()]
    except (TypeError, ac.BudgetExceeded) as error:
        refused = str(error)
    if save is not None:
        engine.save_checkpoint(path=save, module=module, optimizer=optimizer)
    weights = [_local(p) for p in model.parameters()]
    return {
        "optimizer": type(optimizer).__name__,
        "history": engine.accountant.history,
        "epsilon": engine.get_epsilon(1e-5),
        "seen": seen,
        "weights": float(torch.cat(weights).double().sum()),
        "change": (weights[0] - start[0]).tolist() if zeros else None,
        "refused": refused,
        "unchanged": all(torch.equal(a, b) for a, b in zip(before, weights, strict=True)),
    }


def _local(p):
    whole = p.full_tensor() if hasattr(p, "full_tensor") else p
    return whole.detach().flatten().clone()


def train(model, optimizer, criterion, parts):
    with parts as loader:
        for x, y in loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
            yield len(x)


def with_a_past(rank):
    ledger = ac.Accountant()
    if rank == 0:
        ledger.step(noise_multiplier=2.0, sampling_probability=0.5)
    return ledger


def runs(rank, workers, checkpoint):
    """Yield names and arguments of runs, of which some end early."""
    sharded = {"wrapped": FSDP2Wrapper, "grad_sample_mode": "ghost_fsdp"}
    yield "own seeds", {}
    yield "one global seed", {"seed": 7}
    yield "one seed", {"coins": 7}
    yield "small batches", {"batch_size": 20}
    yield "seeded afterwards", {"afterwards": 3}
    yield "physical batches", {"physical": 40}
    yield "sharded", sharded
    yield "sharded, one seed", {"coins": 7} | sharded
    noise = torch.Generator().manual_seed(50)
    yield "sharded, ghost noise", {"noise_generator": noise} | sharded
    coarse = partial(FSDP2Wrapper, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16))
    yield "sharded, bfloat16", sharded | {"wrapped": coarse}
    yield "sharded without ghosts", {"wrapped": FSDP2Wrapper}
    yield "noise alone", {"zeros": True}
    yield "noise alone, sharded", {"zeros": True} | sharded
    yield "torch's own", {"wrapped": DistributedDataParallel}
    yield "ghost", {"grad_sample_mode": "ghost"}
    noise = torch.Generator().manual_seed(6 + workers)
    yield "noise of the coins", {"coins": 7 + rank, "noise_generator": noise}
    yield "other noise", {"noise_multiplier": 1.1 + 0.1 * (rank == workers - 1)}
    yield "budget", {"ledger": ac.Accountant(BUDGET) if rank == 0 else None}
    yield "past", {"ledger": with_a_past(rank)}
    yield "past elsewhere", {"ledger": with_a_past(workers - 1 - rank)}
    whole = UniformWithReplacementSampler(num_samples=1800, sample_rate=0.1)
    yield "whole data", {"batches": whole, "poisson_sampling": False}
    allocation = BatchSampler(RandomAllocation(dataset_size=1800, steps_per_epoch=9))
    yield "allocation", {"batches": allocation, "poisson_sampling": False}
    yield "first half", {"save": f"{checkpoint}.{rank}"}
    yield "second half", {"seed": 107 + rank, "load": f"{checkpoint}.0"}


def main(rank, workers, port, folder):
    forked_workers.begin(rank, workers, port)
    found = {}
    for name, arguments in runs(rank, workers, f"{folder}/{workers}.pt"):
        found[name] = run(**{"seed": 7 + rank} | arguments)
        torch.distributed.barrier()  # a checkpoint is written before it is read
    torch.distributed.destroy_process_group()
    return found


if __name__ == "__main__":
    import torch._dynamo  # the first step of an optimiser imports it

    forked_workers.serve(main)

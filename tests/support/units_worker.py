"""The workers of runs by units; started by adapters/test_torch_steps_workers.py.

Each reports what came of a loop over all units, of one over samples, of one that its budget ends,
of one with Accelerate, and of one by the Trainer of Hugging Face; the last two where they are
installed.
"""

import importlib.util

import torch

import accountant as ac
from accountant.adapters.torch_steps import PrivateSteps
from accountant.adapters.torch_units import UnitLoader, Units
from accountant.sampling import FullBatch, PoissonSampler
from support import forked_workers

DELTA = 1e-5
# For the Trainer of Hugging Face.
ALONE = {"report_to": [], "use_cpu": True, "disable_tqdm": True, "save_strategy": "no"}
ALL = FullBatch(dataset_size=30, steps=3)
SOME = PoissonSampler(dataset_size=30, sampling_probability=0.5, steps=8)


def data():
    rows = torch.randn(90, 6, generator=torch.Generator().manual_seed(1))
    return [{"x": row, "labels": (row[:1] > 0).float()} for row in rows]


class Model(torch.nn.Module):
    def __init__(self, seed):
        super().__init__()
        torch.manual_seed(seed)
        self.net = torch.nn.Linear(6, 1)

    def forward(self, x, labels):
        loss = torch.nn.functional.binary_cross_entropy_with_logits(self.net(x), labels)
        return {"loss": loss, "logits": self.net(x)}


def collate(rows):
    return {name: torch.stack([row[name] for row in rows]) for name in rows[0]}


def units():
    return Units.grouped([k // 3 for k in range(90)], "user")


def report(model, ledger, seen=0):
    weights = [p.detach().flatten() for p in model.parameters()]
    return {
        "weights": torch.cat(weights).tolist(),
        "epsilon": ledger.epsilon(DELTA),
        "steps": len(ledger),
        "seen": seen,
    }


def loop(rank, sampler, noise=1.0, ledger=None, accelerator=None):
    """Train in a plain loop; the workers' models begin differently."""
    model = whole = Model(rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if accelerator is not None:
        whole, optimizer = accelerator.prepare(model, optimizer)
        model = accelerator.unwrap_model(whole)
    steps = PrivateSteps(model, sampler, noise_multiplier=noise, clipping_norm=0.3, ledger=ledger)
    seen = 0
    for batch in UnitLoader(data(), units(), sampler, collate):
        for unit in steps.units(batch):
            model(**unit)["loss"].backward()
        steps.release()
        optimizer.step()
        seen += len(batch)
        if not steps.affordable:
            break
    return report(model, steps.ledger, seen)


def wrapped(rank):
    """Say why gradients that are averaged over workers are refused."""
    model = Model(rank)
    whole = torch.nn.parallel.DistributedDataParallel(model)
    told = []
    for given in (whole, model):
        try:
            steps = PrivateSteps(given, ALL, noise_multiplier=1.0, clipping_norm=0.3)
            for unit in steps.units(next(iter(UnitLoader(data(), units(), ALL, collate)))):
                whole(**unit)["loss"].backward()
        except ac.UnsupportedError as error:
            told.append(str(error))
    return report(model, ac.Accountant()) | {"told": told}


def by_trainer(rank, folder):
    from transformers import Trainer, TrainingArguments

    from accountant.adapters.transformers import PrivacyCallback

    steps = {"max_steps": 4, "gradient_accumulation_steps": 2, "per_device_train_batch_size": 5}
    arguments = TrainingArguments(f"{folder}/out", remove_unused_columns=False, **ALONE, **steps)
    privacy = PrivacyCallback(units(), 1.0, 0.3, delta=DELTA, statement=f"{folder}/statement.md")
    model = Model(rank)
    trainer = Trainer(model=model, args=arguments, train_dataset=data(), data_collator=collate)
    privacy.attach(trainer)
    trainer.train()
    return report(model, privacy.ledger, trainer.state.global_step)


def runs(rank, folder):
    yield "all", loop(rank, ALL, noise=1e-4)
    yield "some", loop(rank, SOME)
    ledger = ac.Accountant(ac.Budget(4.0, DELTA)) if rank == 0 else None
    yield "budget", loop(rank, SOME, ledger=ledger)
    yield "wrapped", wrapped(rank)
    if importlib.util.find_spec("accelerate"):
        from accelerate import Accelerator

        yield "accelerate", loop(rank, SOME, accelerator=Accelerator(cpu=True))
    if importlib.util.find_spec("transformers"):
        yield "trainer", by_trainer(rank, folder)


def main(rank, workers, port, folder):
    forked_workers.begin(rank, workers, port)
    found = dict(runs(rank, f"{folder}/{workers}"))
    torch.distributed.destroy_process_group()
    return found


if __name__ == "__main__":
    import torch._dynamo  # the first step of an optimiser imports it

    if importlib.util.find_spec("transformers"):
        import accountant.adapters.transformers  # and with it the Trainer

    forked_workers.serve(main)

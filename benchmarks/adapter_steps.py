"""Processor seconds of a step of the torch adapters, beside another checkout's, on one thread.

``python benchmarks/adapter_steps.py OTHER [WORD]`` runs this checkout and OTHER in turn, in two
processes that wait for each other. It prints the ratio of the medians by adapter, and that of the
least; with a word, of those whose names have it.
"""

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
BATCH, WIDTH, ROUNDS = 256, 1000, 5


def makers():
    """Yield names and functions that make one step of each adapter."""
    import opacus
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    import accountant.adapters.opacus  # noqa: F401 (registers the accountant)
    from accountant.adapters.torch_steps import PrivateSteps
    from accountant.adapters.torch_units import UnitLoader, Units
    from accountant.sampling import FullBatch

    torch.set_num_threads(1)
    rows = torch.randn(BATCH, WIDTH)

    def network(dropout):
        layers = [torch.nn.Linear(WIDTH, WIDTH - 2), torch.nn.ReLU(), torch.nn.Linear(WIDTH - 2, 1)]
        return torch.nn.Sequential(*layers[:2], *[torch.nn.Dropout(0.1)] * dropout, layers[2])

    def by_units(dropout):
        model, sampler = network(dropout), FullBatch(dataset_size=BATCH, steps=10**6)
        steps = PrivateSteps(model, sampler, noise_multiplier=1.0, clipping_norm=1.0)
        units = Units.single(BATCH, "record")
        batches = iter(UnitLoader(list(rows), units, sampler, torch.stack))

        def step():
            for unit in steps.units(next(batches)):
                model(unit).square().sum().backward()
            steps.release()

        return step

    def by_opacus(mode):
        model = network(1)
        criterion = torch.nn.MSELoss()
        engine = opacus.PrivacyEngine(accountant="exact")
        model, optimizer, *rest, loader = engine.make_private(
            module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.01),
            data_loader=DataLoader(TensorDataset(rows, rows[:, 0]), batch_size=BATCH),
            noise_multiplier=1.0, max_grad_norm=1.0, grad_sample_mode=mode, criterion=criterion,
        )  # fmt: skip
        criterion = rest[0] if rest else criterion

        def step():
            for x, y in loader:
                optimizer.zero_grad()
                criterion(model(x)[:, 0], y).backward()
                optimizer.step()

        return step

    yield "PrivateSteps", by_units(0)
    yield "PrivateSteps, dropout", by_units(1)
    yield "opacus, ghost", by_opacus("ghost")
    yield "opacus, hooks", by_opacus("hooks")


def serve():
    """Make one step of an adapter whenever a line names it, and tell the seconds."""
    import warnings

    warnings.simplefilter("ignore")
    steps = dict(makers())
    print(json.dumps(list(steps)), flush=True)
    for line in sys.stdin:
        start = time.process_time()
        steps[line.strip()]()
        print(time.process_time() - start, flush=True)


def main(other, word):
    started = [
        subprocess.Popen(
            [sys.executable, __file__, "--serve", str(place)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=place,
        )
        for place in (HERE, other)
    ]  # fmt: skip
    names, _ = (json.loads(each.stdout.readline()) for each in started)
    for name in (each for each in names if word in each):
        seconds = ([], [])
        for turn in range(ROUNDS * (10 if "ghost" in name else 1) + 1):
            for at in (0, 1) if turn % 2 else (1, 0):
                started[at].stdin.write(f"{name}\n")
                started[at].stdin.flush()
                found = float(started[at].stdout.readline())
                if turn:  # the first is for memory and imports
                    seconds[at].append(found)
        here, there = map(statistics.median, seconds)
        least = min(seconds[0]) / min(seconds[1])
        print(f"{name}: {here:.4f} s, other {there:.4f} s, ratio {here / there:.3f} ({least:.3f})")
    for each in started:
        each.stdin.close()
        each.wait()


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        sys.path.insert(0, sys.argv[2])
        serve()
    else:
        main(Path(sys.argv[1]).resolve(), "".join(sys.argv[2:3]))

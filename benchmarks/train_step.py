"""What privacy costs a training step, beside a per-example loop and opacus.

One step of a 784-256-10 perceptron (tanh) on a batch of 1024, in one process, methods interleaved
and the median of the repetitions taken. Our private step draws its batch and its noise; the
non-private step gathers its batch too, in plain NumPy. Run it on an idle machine:

    python benchmarks/train_step.py [--repeats 20] [--threads 2] [--json FILE]

opacus is measured where torch and opacus are installed (the ``peers`` extra).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

from accountant.learn import Batches, Noise

SIZES, BATCH, RECORDS = (784, 256, 10), 1024, 8192


def plain_step(weights: list[Any], X: Any, y: Any, rows: Any, rate: float) -> None:
    """Non-private SGD as one would write it in NumPy."""
    import numpy as np

    (w1, b1, w2, b2) = weights
    x, t = X[rows], y[rows]
    h = np.tanh(x @ w1 + b1)
    z = h @ w2 + b2
    z -= z.max(axis=1, keepdims=True)
    np.exp(z, out=z)
    z /= z.sum(axis=1, keepdims=True)
    z[np.arange(len(t)), t] -= 1
    z /= len(t)
    g = (z @ w2.T) * (1 - h * h)
    for p, d in ((w2, h.T @ z), (b2, z.sum(0)), (w1, x.T @ g), (b1, g.sum(0))):
        p -= rate * d


def loop_step(weights: list[Any], X: Any, y: Any, rows: Any, total: Any) -> None:
    """Add up clipped gradients, one record at a time."""
    import numpy as np

    w1, b1, w2, b2 = weights
    for i in rows:
        x = X[i]
        h = np.tanh(x @ w1 + b1)
        z = h @ w2 + b2
        p = np.exp(z - z.max())
        p /= p.sum()
        p[y[i]] -= 1
        g = (w2 @ p) * (1 - h * h)
        parts = [np.outer(x, g).ravel(), g, np.outer(h, p).ravel(), p]
        norm = np.sqrt(sum(np.dot(v, v) for v in parts))
        total += np.concatenate(parts) * min(1.0, 1.0 / norm)


def ours(dtype: Any) -> dict[str, Callable[[], None]]:
    """Return the steps to measure in NumPy."""
    import numpy as np

    from accountant.learn import SGD, MultilayerPerceptron
    from accountant.learn.clipping import Flat
    from accountant.learn.plan import make_plan
    from accountant.learn.result import LastIterate
    from accountant.learn.run import Run
    from accountant.ledger import Accountant
    from accountant.noise import SecureGenerator

    generator = np.random.default_rng(0)
    X = generator.random((RECORDS, SIZES[0])).astype(dtype)
    y = generator.integers(SIZES[-1], size=RECORDS)
    model = MultilayerPerceptron(SIZES, dtype=dtype)
    ledger = Accountant()
    plan = make_plan(
        records=RECORDS, clipping=Flat(1.0), groups=2, batches=Batches(BATCH, steps=10**6),
        noise=Noise(1.0), delta=1e-5, ledger=ledger, run="DP-SGD",
    )  # fmt: skip
    run = Run(
        model, X, y, plan, Flat(1.0), SGD(0.1), LastIterate(), None, ledger, SecureGenerator(),
        False,
    )  # fmt: skip
    twin = MultilayerPerceptron(SIZES, dtype=dtype)
    first, second = twin.layers[0], twin.layers[2]
    weights = [first.weights, first.offset, second.weights, second.offset]  # type: ignore[attr-defined]

    return {
        "plain": lambda: plain_step(
            weights, X, y, generator.choice(RECORDS, BATCH, replace=False), 0.1
        ),
        "private": lambda: (run.take_step(), None)[1],
        "loop": lambda: loop_step(
            weights,
            X,
            y,
            generator.choice(RECORDS, BATCH, replace=False),
            np.zeros(twin.size, dtype),
        ),
    }


def torch_step(model: Any, optimizer: Any, loss: Any, X: Any, y: Any) -> None:
    """Draw a batch and take one step in torch, private where the optimiser is."""
    import torch

    rows = torch.randperm(RECORDS)[:BATCH]
    optimizer.zero_grad()
    loss(model(X[rows]), y[rows]).backward()
    optimizer.step()


def opacus_steps(dtype: str, threads: int) -> dict[str, Callable[[], None]]:
    """Return the steps of torch alone and of opacus, with hooks and with ghost clipping."""
    try:
        import torch
        from opacus.grad_sample import GradSampleModule
        from opacus.grad_sample.grad_sample_module_fast_gradient_clipping import (
            GradSampleModuleFastGradientClipping,
        )
        from opacus.optimizers import DPOptimizer
        from opacus.optimizers.optimizer_fast_gradient_clipping import (
            DPOptimizerFastGradientClipping,
        )
        from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping
    except ImportError as error:
        print(f"opacus: not measured ({error})", file=sys.stderr)
        return {}
    torch.set_num_threads(threads)
    kind = getattr(torch, dtype)
    X = torch.rand(RECORDS, SIZES[0], dtype=kind)
    y = torch.randint(SIZES[-1], (RECORDS,))

    def network() -> Any:
        return torch.nn.Sequential(
            torch.nn.Linear(784, 256), torch.nn.Tanh(), torch.nn.Linear(256, 10)
        ).to(kind)

    def step(model: Any, optimizer: Any, loss: Any) -> Callable[[], None]:
        return lambda: torch_step(model, optimizer, loss, X, y)

    plain = network()
    hooks = GradSampleModule(network())
    ghost = GradSampleModuleFastGradientClipping(
        network(), max_grad_norm=1.0, use_ghost_clipping=True
    )
    private = {"noise_multiplier": 1.0, "max_grad_norm": 1.0, "expected_batch_size": BATCH}
    ghost_optimizer = DPOptimizerFastGradientClipping(
        torch.optim.SGD(ghost.parameters(), lr=0.1), **private
    )
    ghost_loss = DPLossFastGradientClipping(ghost, ghost_optimizer, torch.nn.CrossEntropyLoss())
    return {
        "torch plain": step(
            plain, torch.optim.SGD(plain.parameters(), lr=0.1), torch.nn.CrossEntropyLoss()
        ),
        "opacus hooks": step(
            hooks,
            DPOptimizer(torch.optim.SGD(hooks.parameters(), lr=0.1), **private),
            torch.nn.CrossEntropyLoss(),
        ),
        "opacus ghost": step(ghost, ghost_optimizer, ghost_loss),
    }


def measure(steps: dict[str, Callable[[], None]], repeats: int) -> dict[str, float]:
    """Return the median time of each step in milliseconds, the repetitions interleaved."""
    times: dict[str, list[float]] = {name: [] for name in steps}
    for step in steps.values():
        step()
    for repeat in range(repeats):
        for name, step in steps.items():
            if name in ("loop", "opacus hooks") and repeat >= max(3, repeats // 5):
                continue
            began = time.perf_counter()
            step()
            times[name].append(1e3 * (time.perf_counter() - began))
    return {name: statistics.median(values) for name, values in times.items()}


def peak(step: Callable[[], None]) -> float:
    """Return the peak of NumPy's allocations during one step, in megabytes."""
    step()
    tracemalloc.start()
    step()
    top = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return top / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(arguments.threads)
    report: dict[str, Any] = {"threads": arguments.threads, "load": os.getloadavg()}
    for dtype in ("float64", "float32"):
        steps = ours(dtype)
        memory = {name: peak(steps[name]) for name in ("plain", "private")}
        times = measure(steps | opacus_steps(dtype, arguments.threads), arguments.repeats)
        report[dtype] = {"ms": times, "peak_mb": memory}
        print(f"{dtype}, {arguments.threads} threads, load {os.getloadavg()[0]:.1f}")
        for name, value in times.items():
            print(f"  {name:<14}{value:9.1f} ms {value / times['plain']:8.2f} x plain NumPy")
        print(f"  peak memory: private {memory['private'] / memory['plain']:.2f} x plain")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(report, file, indent=1)


if __name__ == "__main__":
    main()

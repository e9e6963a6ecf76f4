"""Opacus runs on small data. Skips the module that imports it where opacus is not installed."""

import math
import struct

import pytest

torch = pytest.importorskip("torch")
opacus = pytest.importorskip("opacus")

from opacus.utils.batch_memory_manager import BatchMemoryManager  # noqa: E402

from accountant.adapters import opacus as adapter  # noqa: E402, F401 (tests take it from here)

# What opacus and torch warn of in every run.
QUIET = [
    pytest.mark.filterwarnings("ignore:Secure RNG turned off"),
    pytest.mark.filterwarnings("ignore:Full backward hook"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
RECORDS, BATCH, NOISE, DELTA = 930, 10, 1.3, 1e-5  # 1 / (1 / 93) is 92 to an int


def coin(rate):
    """The share of torch's words of 24 bits below a rate, which is compared as a float32."""
    word = struct.unpack("f", struct.pack("f", rate))[0] * 2**24
    return math.ceil(word) / 2**24


def toy(records=RECORDS):
    rows = torch.randn(records, 5, generator=torch.Generator().manual_seed(3))
    return torch.utils.data.TensorDataset(rows, (rows[:, 0] > 0).long())


def digits():
    data = pytest.importorskip("sklearn.datasets").load_digits()
    rows = torch.tensor(data.data / 16.0, dtype=torch.float32)
    return torch.utils.data.TensorDataset(rows, torch.tensor(data.target))


def network(data):
    classes = int(data.tensors[1].max()) + 1
    with torch.random.fork_rng():  # batches and noise must not come again
        torch.manual_seed(11)
        return torch.nn.Sequential(
            torch.nn.Linear(data.tensors[0].shape[1], 16),
            torch.nn.Tanh(),
            torch.nn.Linear(16, classes),
        )


def private(data, batch_size=BATCH, engine=None, loader=None, epsilon=None, **options):
    engine = engine or opacus.PrivacyEngine(accountant="exact")
    model = network(data)
    loader = loader or torch.utils.data.DataLoader(data, batch_size=batch_size)
    known = {
        "module": model,
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.5),
        "data_loader": loader,
        "max_grad_norm": 1.0,
    }
    if epsilon is not None:
        known |= {"target_epsilon": epsilon, "target_delta": DELTA}
        return engine, *engine.make_private_with_epsilon(**known, **options)
    return engine, *engine.make_private(**{"noise_multiplier": NOISE} | known | options)


def parts(loader, optimizer, size):
    """Return a context that cuts a loader's batches into physical ones of a size."""
    return BatchMemoryManager(data_loader=loader, max_physical_batch_size=size, optimizer=optimizer)


def train(model, optimizer, loader, steps=None):
    for step, (x, y) in enumerate(loader):
        if step == steps:
            break
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()


def theirs(name, history):
    other = opacus.accountants.create_accountant(name)
    other.history = history
    return other.get_epsilon(DELTA)

"""The examples' callbacks: what they refuse and record, without the frameworks they are for.

Whole runs are made where the framework is installed.
"""

import importlib.util
import math
import sys
from pathlib import Path

import numpy as np
import pytest

import accountant as ac
from accountant.sampling import FixedSizeSampler, PoissonSampler, RandomAllocation, ShuffledBatches

EXAMPLES = Path(__file__).parents[2] / "examples"
DELTA = 1e-5

pytestmark = pytest.mark.skipif(not EXAMPLES.exists(), reason="the examples are not here")


def example(name):
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class Loader:
    """Looks like a DataLoader or a data set, as far as a callback sees it."""

    def __init__(self, batch_sampler=None, sampler=None):
        self.batch_sampler, self.sampler = batch_sampler, sampler


POISSON = PoissonSampler(dataset_size=1000, sampling_probability=0.05, steps=20)
OTHERS = [
    FixedSizeSampler(dataset_size=1000, batch_size=50, steps=20),
    ShuffledBatches(dataset_size=1000, batch_size=50, epochs=1),
    None,
    [[1, 2], [3]],
]


def steps_cost(noise, steps):
    return ac.get_epsilon(0.05, noise, steps, DELTA)


def test_the_pytorch_callback():
    module = example("loop_pytorch")
    ledger = ac.Accountant()
    loader = Loader(module.BatchSampler(POISSON))
    callback = module.PrivacyCallback(loader, 1.1, ledger)
    for _ in range(12):
        callback.before_step()
    assert ledger.epsilon(DELTA) == steps_cost(1.1, 12)
    poor = ac.Accountant(ac.Budget(epsilon=0.01, delta=DELTA))
    with pytest.raises(ac.BudgetExceeded):
        module.PrivacyCallback(loader, 1.1, poor).before_step()
    refused = [module.BatchSampler(one) for one in OTHERS[:2]] + [POISSON, *OTHERS]
    for batches in refused:
        with pytest.raises(ac.UnsupportedError, match="PoissonSampler"):
            module.PrivacyCallback(Loader(batches), 1.1, ledger)


def test_the_keras_callback():
    module = example("loop_keras")
    rows = np.zeros((1000, 2))
    batches = module.PoissonBatches(POISSON, rows, np.zeros(1000), 120)
    ledger = ac.Accountant()
    callback = module.PrivacyCallback(batches, 1.1, ledger)
    weights = 0.0
    for number, (x, y, weight) in enumerate(batches):
        callback.on_train_batch_begin(number)
        assert x.shape == (120, 2)
        assert y.shape == weight.shape == (120,)
        weights += weight.sum()
    assert ledger.epsilon(DELTA) == steps_cost(1.1, 20)
    assert abs(weights - 1000) < 6 * math.sqrt(950)
    for sampler in OTHERS:
        with pytest.raises(ac.UnsupportedError, match="PoissonSampler"):
            module.PrivacyCallback(Loader(sampler=sampler), 1.1, ledger)
    with pytest.raises(ac.UnsupportedError, match="does not fit"):
        list(module.PoissonBatches(POISSON, rows, np.zeros(1000), 5))


def test_the_jax_generator():
    module = example("loop_jax")
    ledger = ac.Accountant()
    batches = module.accounted(POISSON, 1.1, ledger)
    for taken in range(1, 4):
        next(batches)
        assert len(ledger) == taken  # recorded before it can be used
    list(batches)
    assert ledger.epsilon(DELTA) == steps_cost(1.1, 20)
    for sampler in OTHERS:
        with pytest.raises(ac.UnsupportedError, match="PoissonSampler"):
            next(module.accounted(sampler, 1.1, ledger))
    poor = ac.Accountant(ac.Budget(0.05, 1e-6))
    says = "20 steps do not fit .* they cost ε = .* has spent 0.*noise_multiplier=.* would fit"
    with pytest.raises(ac.BudgetExceeded, match=says):
        next(module.accounted(POISSON, 1.1, poor))
    assert len(poor) == 0
    assert not poor.planned
    rows, mask = module.padded(np.array([4, 7]), 5)
    assert rows.tolist() == [4, 7, 0, 0, 0]
    assert mask.tolist() == [True, True, False, False, False]
    with pytest.raises(ac.UnsupportedError, match="does not fit"):
        module.padded(np.arange(6), 5)


def test_the_jax_generator_with_random_allocation():
    module = example("loop_jax")
    sampler = RandomAllocation(dataset_size=100, steps_per_epoch=5, epochs=3)
    ledger = ac.Accountant()
    batches = module.accounted(sampler, 1.1, ledger)
    next(batches)
    # Whole epochs are accounted for, so all of them are charged first.
    assert ledger.epsilon(DELTA) == sampler.epsilon(1.1, DELTA)
    assert len(list(batches)) == 14
    poor = ac.Accountant(ac.Budget(0.05, 1e-6))
    with pytest.raises(ac.BudgetExceeded):
        next(module.accounted(sampler, 1.1, poor))


def test_a_run_in_jax_with_random_allocation():
    pytest.importorskip("jax")
    ledger = example("loop_jax").main(40, "allocation")
    sampler = RandomAllocation(dataset_size=2000, steps_per_epoch=20, epochs=2)
    assert ledger.epsilon(1e-5) == sampler.epsilon(1.2, 1e-5)


@pytest.mark.parametrize(
    ("name", "framework"), [("loop_pytorch", "torch"), ("loop_jax", "jax"), ("loop_keras", "keras")]
)
@pytest.mark.filterwarnings("ignore")
def test_whole_runs_where_the_framework_is_installed(name, framework):
    pytest.importorskip(framework)
    if framework == "keras":
        pytest.importorskip("jax")
    ledger = example(name).main(15)
    assert len(ledger) == 15
    assert 0.0 < ledger.epsilon(1e-4) < math.inf

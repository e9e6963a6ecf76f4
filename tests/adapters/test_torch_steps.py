"""Private steps of any loop: what a unit adds is bounded exactly, every step charged first."""

import copy
import math
import random
from fractions import Fraction

import numpy as np
import pytest

import accountant as ac
from accountant import sampling

torch = pytest.importorskip("torch")

from accountant.adapters.torch_steps import PrivateSteps  # noqa: E402
from accountant.adapters.torch_units import UnitLoader, Units  # noqa: E402
from support.refusals import refused  # noqa: E402

DELTA = 1e-5
MARK = "not private: seeded, so the noise can be recomputed"
FULL = sampling.FullBatch(dataset_size=20, steps=4)
POISSON = sampling.PoissonSampler(dataset_size=20, sampling_probability=0.3, steps=12)

ALLOCATION = sampling.RandomAllocation(dataset_size=20, steps_per_epoch=5)


class Linear(torch.nn.Module):
    """Its gradient is the record: the loss is the product of weights and record."""

    def __init__(self, width=7, dtype=torch.float32):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(width, dtype=dtype))

    def forward(self, x):
        return (x * self.weight).sum()


def loader_of(rows, sampler=FULL):
    units = Units.single(len(rows), "record")
    return UnitLoader(rows, units, sampler, lambda records: torch.stack(records))


def summed(steps, model, batch):
    """Go through a batch; return the exact sum, in steps of the grid, and the grid's step."""
    for unit in steps.units(batch):
        model(unit).backward()
    parts = [each.flatten().tolist() for each in steps._sums]
    return [value for part in parts for value in part], Fraction(steps._grid.step)


def rows_of(scale, width=7, number=20, dtype=torch.float32):
    made = torch.Generator().manual_seed(3)
    return list(
        torch.randn(number, width, generator=made, dtype=torch.float64).mul(scale).to(dtype)
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("scale", [1e-30, 1e-3, 0.3779, 1.0, 50.0, 1e30])
@pytest.mark.parametrize("norm", [2.0**-100, 0.1, 1.0, 1.0 + 2**-52, 2.0**100])
def test_what_a_unit_adds_is_never_longer_than_the_norm(dtype, scale, norm):
    rows = rows_of(scale, dtype=dtype)
    model = Linear(dtype=dtype)
    one = sampling.FullBatch(dataset_size=1, steps=1)
    for row in rows[:5]:
        steps = PrivateSteps(model, one, noise_multiplier=1.0, clipping_norm=norm)
        total, grid = summed(steps, model, next(iter(loader_of([row], one))))
        length = sum(Fraction(value) ** 2 for value in total) * grid**2
        assert length <= Fraction(norm) ** 2
        # It is as long as it should be, but for the grid.
        exact = math.sqrt(sum(float(Fraction(value.item())) ** 2 for value in row))
        wanted = min(exact, norm)
        assert math.sqrt(length) >= wanted * (1 - 1e-6) - 7 * float(grid)


def test_a_unit_more_moves_the_sum_by_what_it_adds_and_by_nothing_else():
    rows = rows_of(2.0)
    model = Linear()
    sums = []
    for number in (20, 19):
        sampler = sampling.FullBatch(dataset_size=number, steps=1)
        steps = PrivateSteps(model, sampler, noise_multiplier=1.0, clipping_norm=0.5)
        total, grid = summed(steps, model, next(iter(loader_of(rows[:number], sampler))))
        sums.append(total)
    moved = sum((a - b) ** 2 for a, b in zip(*sums, strict=True)) * grid**2
    assert Fraction(1, 5) < moved <= Fraction(1, 4)


def test_all_parameters_of_a_unit_share_one_norm():
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(7, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1))
    one = sampling.FullBatch(dataset_size=1, steps=1)
    for row in rows_of(3.0)[:5]:
        steps = PrivateSteps(model, one, noise_multiplier=1.0, clipping_norm=0.01)
        through(steps, model, next(iter(loader_of([row], one))))
        parts = [value for each in steps._sums for value in each.flatten().tolist()]
        length = sum(Fraction(value) ** 2 for value in parts) * Fraction(steps._grid.step) ** 2
        assert Fraction(0.0099) ** 2 <= length <= Fraction(0.01) ** 2


def test_a_step_is_divided_by_a_public_number():
    rows, model = rows_of(1.0), Linear()
    steps = PrivateSteps(model, POISSON, noise_multiplier=1e-6, clipping_norm=100.0)
    sizes = set()
    for batch in loader_of(rows, POISSON):
        through(steps, model, batch)
        steps.release()
        wanted = sum((each[0] for each in batch), torch.zeros(7)) / (20 * 0.3)
        assert torch.allclose(model.weight.grad, wanted, atol=1e-2)
        sizes.add(len(batch))
    assert len(sizes) > 1


def test_the_norm_is_widened_by_what_its_sum_may_lose():
    for width in (1, 7, 20_000):
        steps = PrivateSteps(Linear(width), FULL, noise_multiplier=1.0, clipping_norm=1.0)
        assert Fraction(steps._excess) >= 1 + (width + 10) * Fraction(1, 2**53) * 2


@pytest.mark.parametrize("wrong", [math.inf, -math.inf, math.nan])
def test_a_gradient_that_is_no_number_adds_nothing(wrong):
    rows = [*rows_of(1.0)[:19], torch.tensor([wrong] + [0.0] * 6)]
    model = Linear()
    sums = []
    for number in (20, 19):
        sampler = sampling.FullBatch(dataset_size=number, steps=1)
        steps = PrivateSteps(model, sampler, noise_multiplier=1.0, clipping_norm=0.5)
        sums.append(summed(steps, model, next(iter(loader_of(rows[:number], sampler))))[0])
    assert sums[0] == sums[1]


def test_the_noise_is_that_of_the_multiplier_and_the_batch_is_divided_by_its_average():
    model = Linear(width=20_000)
    steps = PrivateSteps(model, FULL, noise_multiplier=1.5, clipping_norm=0.2)
    for batch in loader_of([torch.zeros(20_000)] * 20):
        for unit in steps.units(batch):
            model(unit).backward()
        steps.release()
        noise = model.weight.grad * 20
        assert abs(noise.std().item() / 0.3 - 1) < 6 / math.sqrt(40_000)
        assert abs(noise.mean().item()) < 6 * 0.3 / math.sqrt(20_000)
    # Never less noise than the account says.
    assert Fraction(steps._deviation) * Fraction(steps._grid.step) >= Fraction(1.5) * Fraction(0.2)


def run(sampler, ledger=None, noise=1.3):
    rows = rows_of(1.0)
    model = Linear()
    steps = PrivateSteps(model, sampler, noise_multiplier=noise, clipping_norm=1.0, ledger=ledger)
    for batch in loader_of(rows, sampler):
        for unit in steps.units(batch):
            model(unit).backward()
        steps.release()
        yield steps


@pytest.mark.parametrize(
    "sampler",
    [
        POISSON,
        FULL,
        sampling.TruncatedPoissonSampler(dataset_size=20, sampling_probability=0.3, cap=8, steps=5),
        sampling.FixedSizeSampler(dataset_size=20, batch_size=4, steps=5),
        sampling.RandomAllocation(dataset_size=20, steps_per_epoch=5, epochs=2),
        sampling.ShuffledBatches(dataset_size=20, batch_size=5, epochs=2),
        sampling.CyclicBatches(dataset_size=20, batch_size=5, epochs=2),
    ],
)
def test_a_run_costs_what_its_sampler_says(sampler):
    *_, steps = run(sampler)
    assert steps.ledger.epsilon(DELTA) == sampler.epsilon(1.3, DELTA)


def test_independent_steps_are_charged_one_by_one_and_others_at_once():
    steps = next(run(POISSON))
    assert len(steps.ledger) == 1
    one = sampling.PoissonSampler(dataset_size=20, sampling_probability=0.3, steps=1)
    assert steps.ledger.epsilon(DELTA) == one.epsilon(1.3, DELTA)
    assert next(run(ALLOCATION)).ledger.epsilon(DELTA) == ALLOCATION.epsilon(1.3, DELTA)


def test_a_budget_is_asked_before_each_step():
    ledger = ac.Accountant(ac.Budget(3.0, DELTA))
    told = []

    def until_refused():
        for steps in run(POISSON, ledger):
            told.append(steps.affordable)

    refused(ac.BudgetExceeded, "", until_refused)
    assert told == [True] * (len(told) - 1) + [False]
    assert 0 < len(ledger) == len(told) < POISSON.steps
    assert ledger.epsilon(DELTA) <= 3.0
    poor = ac.Budget(0.01, DELTA)
    refused(ac.BudgetExceeded, "not one step", next, run(POISSON, ac.Accountant(poor)))
    with pytest.raises(ac.BudgetExceeded):
        next(
            run(sampling.RandomAllocation(dataset_size=20, steps_per_epoch=5), ac.Accountant(poor))
        )


def test_a_step_that_is_refused_leaves_no_gradient():
    model, rows = Linear(), rows_of(1.0)
    steps = PrivateSteps(model, FULL, noise_multiplier=2.0, clipping_norm=1.0)
    through(steps, model, next(iter(loader_of(rows))))
    steps.ledger = ac.Accountant(ac.Budget(0.01, DELTA))  # somebody else has spent it
    refused(ac.BudgetExceeded, "", steps.release)
    assert model.weight.grad is None
    assert len(steps.ledger) == 0


def through(steps, model, batch):
    for unit in steps.units(batch):
        model(unit).sum().backward()


def test_batches_that_are_not_one_a_step_are_refused():
    model, rows = Linear(), rows_of(1.0)

    def made():
        return PrivateSteps(model, POISSON, noise_multiplier=1.0, clipping_norm=1.0)

    steps = made()
    refused(ac.UnsupportedError, "whole batch", steps.release)
    batches = list(loader_of(rows, POISSON))
    through(steps, model, batches[0])
    refused(ac.UnsupportedError, "left unfinished", through, steps, model, batches[1])
    steps.release()
    refused(ac.UnsupportedError, "whole batch", steps.release)
    for wrong in (batches[0], batches[2]):
        refused(ac.UnsupportedError, "left out, used twice", through, steps, model, wrong)
    refused(ac.UnsupportedError, "one of a UnitLoader", through, steps, model, [rows[0]])
    steps = made()
    whole = next(iter(loader_of(rows)))
    for unit in steps.units(whole):
        model(unit).backward()
        break
    refused(ac.UnsupportedError, "whole batch", steps.release)


def test_a_batch_is_spent_once_whoever_uses_it():
    model, rows = Linear(), rows_of(1.0)
    steps = PrivateSteps(model, POISSON, noise_multiplier=1.0, clipping_norm=1.0)
    first, second = (next(iter(loader_of(rows, POISSON))) for _ in range(2))
    for batch in (first, second):
        through(steps, model, batch)
        steps.release()
    other = PrivateSteps(model, POISSON, noise_multiplier=1.0, clipping_norm=1.0)
    for again in (first, second, copy.deepcopy(first), first.to("cpu")):
        for each in (steps, other):
            refused(ac.UnsupportedError, "left out, used twice", through, each, model, again)
    assert len(steps.ledger) == 2
    assert len(other.ledger) == 0


def test_what_drew_is_charged_and_not_what_was_told():
    model, rows = Linear(), rows_of(1.0)
    told = sampling.PoissonSampler(dataset_size=20, sampling_probability=0.001, steps=12)
    samplers = [
        sampling.PoissonSampler(dataset_size=20, sampling_probability=0.5, steps=12),
        FULL,
        sampling.ShuffledBatches(dataset_size=20, batch_size=5, epochs=2),
        ALLOCATION,
    ]
    for drawing in samplers:
        steps = PrivateSteps(model, told, noise_multiplier=1.3, clipping_norm=1.0)
        for batch in loader_of(rows, drawing):
            through(steps, model, batch)
            steps.release()
        assert steps.ledger.epsilon(DELTA) == drawing.epsilon(1.3, DELTA)
        assert steps.ledger.epsilon(DELTA) > 10 * told.epsilon(1.3, DELTA)
    banded = sampling.CyclicPoisson(dataset_size=20, sampling_probability=0.1, bands=2, steps=8)
    with pytest.raises(ac.UnsupportedError, match="drawn anew"):
        through(steps, model, next(iter(loader_of(rows, banded))))
    # The step is divided by the average of what drew.
    steps = PrivateSteps(model, told, noise_multiplier=1e-6, clipping_norm=100.0)
    through(steps, model, next(iter(loader_of(rows, FULL))))
    steps.release()
    assert torch.allclose(model.weight.grad, torch.stack(rows).mean(0), atol=1e-3)


def test_noise_that_can_be_drawn_again_is_marked():
    for seed, marks in ((None, {None}), (3, {MARK})):
        steps = PrivateSteps(Linear(), FULL, noise_multiplier=1.3, clipping_norm=1.0, seed=seed)
        for batch in loader_of(rows_of(1.0)):
            through(steps, steps._model, batch)
            steps.release()
        assert {item.label for item in steps.ledger.history} == marks
        assert (MARK in ac.report.statement(steps.ledger, DELTA).markdown()) == (seed == 3)


def states():
    return torch.get_rng_state().tolist(), str(np.random.get_state())  # noqa: NPY002, random.getstate()


def test_the_generators_are_afterwards_as_they_were():
    """Their states would tell how many units there were."""
    before, drawn = None, []
    model = Linear()
    steps = PrivateSteps(model, POISSON, noise_multiplier=1.0, clipping_norm=1.0)
    for batch in loader_of(rows_of(1.0), POISSON):
        before = before or states()
        for unit in steps.units(batch):
            numpy = np.random.uniform()  # noqa: NPY002
            drawn.append((float(torch.rand(())), numpy, random.random()))
            model(unit).backward()
        steps.release()
        assert states() == before
    assert len(set(drawn)) == len(drawn) > 20


@pytest.mark.parametrize(
    "own", [np.random.default_rng(1), np.random.RandomState(1), random.Random(1)]
)
def test_a_generator_that_cannot_be_set_for_a_unit_is_refused_by_name(own):
    model = torch.nn.Sequential(torch.nn.Linear(7, 1), torch.nn.Tanh())
    model[1].draws = [own]
    with pytest.raises(ac.UnsupportedError, match=r"1\.draws\[0\] is a"):
        PrivateSteps(model, FULL, noise_multiplier=1.0, clipping_norm=1.0)


def test_what_the_noise_would_not_cover_is_refused():
    rows = rows_of(1.0)
    norm = torch.nn.Sequential(torch.nn.Unflatten(1, (1, 7)), torch.nn.BatchNorm1d(1))
    steps = PrivateSteps(norm, FULL, noise_multiplier=1.0, clipping_norm=1.0)
    refused(ac.UnsupportedError, "buffers", through, steps, norm, next(iter(loader_of(rows))))
    model = torch.nn.Linear(7, 1)
    model.bias.requires_grad_(False)
    steps = PrivateSteps(model, FULL, noise_multiplier=1.0, clipping_norm=1.0)
    model.bias.requires_grad_(True)
    refused(ac.UnsupportedError, "not clipped", through, steps, model, next(iter(loader_of(rows))))
    banded = sampling.CyclicPoisson(dataset_size=20, sampling_probability=0.1, bands=2, steps=8)
    with pytest.raises(ac.UnsupportedError, match="drawn anew"):
        PrivateSteps(model, banded, noise_multiplier=1.0, clipping_norm=1.0)
    for options in ({"noise_multiplier": 0.0}, {"clipping_norm": 0.0}, {"clipping_norm": 2.0**101}):
        with pytest.raises(ac.DomainError):
            PrivateSteps(model, FULL, **{"noise_multiplier": 1.0, "clipping_norm": 1.0} | options)
    with pytest.raises(ac.UnsupportedError, match="a parameter that is trained"):
        PrivateSteps(torch.nn.Tanh(), FULL, noise_multiplier=1.0, clipping_norm=1.0)
    with pytest.raises(ac.UnsupportedError, match="too large"):
        PrivateSteps(model, FULL, noise_multiplier=1e9, clipping_norm=1.0)


@pytest.mark.parametrize("name", ["noise_multiplier", "clipping_norm"])
def test_what_was_charged_cannot_be_changed_afterwards(name):
    steps = PrivateSteps(torch.nn.Linear(7, 1), FULL, noise_multiplier=1.0, clipping_norm=1.0)
    refused(AttributeError, "", setattr, steps, name, 50.0)
    assert getattr(steps, name) == 1.0


def test_a_step_of_the_optimiser_between_two_units_is_refused():
    model, rows = Linear(), rows_of(1.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    steps = PrivateSteps(model, FULL, noise_multiplier=1.0, clipping_norm=1.0)
    units = steps.units(next(iter(loader_of(rows))))
    model(next(units)).backward()
    optimizer.step()
    refused(ac.UnsupportedError, "without noise", next, units)
    assert model.weight.grad is None
    refused(ac.UnsupportedError, "whole batch", steps.release)


def test_a_gradient_from_elsewhere_is_dropped():
    rows = rows_of(1.0)
    model = Linear()
    steps = PrivateSteps(model, FULL, noise_multiplier=1e-6, clipping_norm=1.0)
    for batch in loader_of(rows):
        model.weight.grad = torch.full((7,), 1e6)  # of another backward pass
        for unit in steps.units(batch):
            model(unit).backward()
        model.weight.grad = torch.full((7,), 1e6)
        steps.release()
        assert np.linalg.norm(model.weight.grad.numpy()) <= 1.001

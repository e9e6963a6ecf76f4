"""What the steps of real opacus runs summed and added, measured, against the adapter's history."""

import math
import re

import pytest

import accountant as ac
from support.opacus_runs import QUIET, adapter, opacus, torch
from support.opacus_twins import make, records, twins
from support.refusals import refused

GHOST = {"grad_sample_mode": "ghost"}
pytestmark = QUIET

MODES = pytest.mark.parametrize("mode", [{}, GHOST], ids=["hooks", "ghost"])


# Loops that are covered.


def plain(made):
    for _ in range(10):
        for x, y in made.loader:
            made.step(x, y)


def cleared_afterwards(made):
    for x, y in made.loader:
        made.loss(x, y).backward()
        made.optimizer.step()
        made.optimizer.zero_grad()


def closures(made):
    for x, y in made.loader:
        made.optimizer.step(lambda x=x, y=y: made.backward(x, y))


def one_at_a_time(made):
    for _ in range(20):
        made.step(*next(iter(made.loader)))


def left_between_batches(made):
    for _ in range(6):
        for at, (x, y) in enumerate(made.loader):
            if at == 3:
                break
            made.step(x, y)


def evaluated_between(made):
    for _ in range(2):
        for x, y in made.loader:
            made.step(x, y)
            with torch.no_grad():
                for other, _ in made.loader:
                    made.model(other)


def physical(made):
    for _ in range(6):
        with made.parts(7) as loader:
            for x, y in loader:
                made.step(x, y)


def noise_schedule(made):
    schedule = opacus.schedulers.ExponentialNoise(made.optimizer, gamma=0.9)
    for x, y in made.loader:
        made.step(x, y)
        schedule.step()


def norm_schedule(made):
    schedule = opacus.schedulers.ExponentialGradClip(made.optimizer, gamma=0.8)
    for _ in range(4):
        for x, y in made.loader:
            made.step(x, y)
            schedule.step()


def norm_schedule_by_batch(made):
    schedule = opacus.schedulers.ExponentialGradClip(made.optimizer, gamma=0.8)
    with made.parts(7) as loader:
        for x, y in loader:
            made.step(x, y)
            if not made.optimizer._is_last_step_skipped:
                schedule.step()


def norm_changed_before_the_step(made):
    for _ in range(4):
        for x, y in made.loader:
            made.backward(x, y)
            made.optimizer.max_grad_norm *= 0.7
            made.optimizer.step()


def no_number(made):
    for x, y in made.loader:
        made.step(x * math.nan, y)


COVERED = [
    plain, cleared_afterwards, closures, one_at_a_time, left_between_batches, evaluated_between,
    no_number, physical, noise_schedule, norm_schedule, norm_schedule_by_batch,
    norm_changed_before_the_step,
]  # fmt: skip


@MODES
@pytest.mark.parametrize("loop", COVERED, ids=lambda loop: loop.__name__)
def test_what_a_step_did_is_what_is_recorded(loop, mode, monkeypatch):
    done = twins(loop, monkeypatch, **mode)
    assert done.refused is None
    assert len(done.rows) >= 5


@pytest.mark.parametrize("loop", [plain, norm_schedule, physical], ids=lambda loop: loop.__name__)
def test_norms_by_layer(loop, monkeypatch):
    done = twins(loop, monkeypatch, layers=2, clipping="per_layer", max_grad_norm=[0.3, 0.7])
    assert done.refused is None
    # Opacus' norm of the norms is a float32.
    assert max(noise for noise, _ in done.rows) == pytest.approx(4.0, rel=1e-7)
    # Its schedule changes the noise, and not the norms of the layers.
    assert len({noise for noise, _ in done.rows}) == (20 if loop is norm_schedule else 1)


@pytest.mark.parametrize("loop", [plain, physical], ids=lambda loop: loop.__name__)
def test_empty_batches_are_steps(loop, monkeypatch):
    done = twins(loop, monkeypatch, number=12, batch_size=1)
    assert done.refused is None
    assert len(done.rows) == (6 if loop is physical else 10) * 12
    assert any(not float(torch.cat(each).norm()) for each in done.sums)


@pytest.mark.parametrize("loop", [plain, physical], ids=lambda loop: loop.__name__)
def test_batches_fetched_by_workers(loop, monkeypatch):
    def shortened(made):
        for _ in range(2):
            with made.parts(7 if loop is physical else 100) as loader:
                for x, y in loader:
                    made.step(x, y)

    done = twins(shortened, monkeypatch, workers=2)
    assert done.refused is None
    assert len(done.rows) == 2 * 5


# Loops that are not.


def left_inside_a_batch(made):
    for _ in range(20):
        with made.parts(14) as loader:
            for at, (x, y) in enumerate(loader):
                if at == 3:
                    break
                made.step(x, y)


def left_after_part_of_a_batch(made):
    for _ in range(20):
        with made.parts(14) as loader:
            for x, y in loader:
                made.step(x, y)
                if made.optimizer._is_last_step_skipped:
                    break


def skipped_by_hand(made):
    for _ in range(10):
        for at, (x, y) in enumerate(made.loader):
            made.optimizer.signal_skip_step(do_skip=at % 2 == 0)
            made.step(x, y)


def joined(made):
    batches = iter(made.loader)
    for (x, y), (u, v) in zip(batches, batches, strict=False):
        made.step(torch.cat([x, u]), torch.cat([y, v]))


def joined_from_two_passes(made):
    for (x, y), (u, v) in zip(made.loader, made.loader, strict=True):
        made.step(torch.cat([x, u]), torch.cat([y, v]))


def several_rows_a_record(made):
    for x, y in made.loader:
        made.step(torch.cat([x, x + 1]), torch.cat([y, y]))


def used_twice(made):
    for x, y in made.loader:
        made.step(x, y)
        made.step(x, y)


def another_loader(made):
    for x, y in made.plain:
        made.step(x, y)


def some_left_out(made):
    for at, (x, y) in enumerate(made.loader):
        if at % 3 != 2:
            made.step(x, y)


def last_left_out(made):
    for _ in range(4):
        number = len(made.loader)
        for at, (x, y) in enumerate(made.loader, 1):
            if at < number:
                made.step(x, y)


def exceptions_passed_over(made):
    for at, (x, y) in enumerate(made.loader):
        made.optimizer.zero_grad()
        try:
            if at == 2:
                raise MemoryError
            made.step(x, y)
        except MemoryError:
            continue


def part_lost_to_an_exception(made):
    for _ in range(20):
        with made.parts(7) as loader:
            for at, (x, y) in enumerate(loader):
                if at != 1:
                    made.step(x, y)


def norm_schedule_by_physical_batch(made):
    schedule = opacus.schedulers.ExponentialGradClip(made.optimizer, gamma=0.8)
    with made.parts(7) as loader:
        for x, y in loader:
            made.step(x, y)
            schedule.step()


def inner_optimizer(made):
    for x, y in made.loader:
        made.backward(x, y)
        made.inner.step()


def hook_replaced(made):
    made.optimizer.attach_step_hook(lambda _: None)
    plain(made)


def size_of_the_batch(made):
    for x, y in made.loader:
        made.optimizer.expected_batch_size = max(len(x), 1)
        made.step(x, y)


def sum_scaled(made):
    with made.parts(7) as loader:
        for x, y in loader:
            made.step(x, y)
            for p in made.optimizer.params:
                if p.summed_grad is not None:
                    p.summed_grad *= 3


REFUSED = {
    left_inside_a_batch: "one Poisson batch|batch was left out|zero_grad|number of rows",
    left_after_part_of_a_batch: "one Poisson batch",
    skipped_by_hand: "one Poisson batch",
    joined: "number of rows|batch was left out",
    joined_from_two_passes: "number of rows",
    several_rows_a_record: "number of rows",
    used_twice: "a Poisson batch of its own",
    another_loader: "a Poisson batch of its own",
    some_left_out: "number of rows|batch was left out",
    last_left_out: "batch was left out",
    exceptions_passed_over: "number of rows|batch was left out",
    part_lost_to_an_exception: "number of rows|batch was left out",
    inner_optimizer: "ledger does not hold this step",
    hook_replaced: "ledger does not hold this step",
    size_of_the_batch: "expected_batch_size",
    sum_scaled: "summed_grad was changed",
}


@MODES
@pytest.mark.parametrize("loop", REFUSED, ids=lambda loop: loop.__name__)
def test_what_has_no_account_is_refused(loop, mode, monkeypatch):
    done = twins(loop, monkeypatch, **mode)
    assert done.refused is not None
    assert re.search(REFUSED[loop], done.refused), done.refused


def test_a_norm_that_changes_inside_a_batch_is_refused(monkeypatch):
    done = twins(norm_schedule_by_physical_batch, monkeypatch)
    assert "same for all physical batches" in (done.refused or "")
    # Ghost clipping keeps its norm whatever the schedule; only the noise falls, and is recorded so.
    done = twins(norm_schedule_by_physical_batch, monkeypatch, **GHOST)
    assert done.refused is None
    assert all(noise <= 4.0 * 0.8 for noise, _ in done.rows)


# The way out, and what is kept.


@MODES
def test_what_was_left_can_be_dropped(mode, monkeypatch):
    def dropped(made):
        for _ in range(8):
            left_inside_once(made)
            adapter.discard_unfinished(made.optimizer)
        plain(made)

    def left_inside_once(made):
        with made.parts(7) as loader:
            for at, (x, y) in enumerate(loader):
                if at == 4:
                    return
                made.step(x, y)

    done = twins(dropped, monkeypatch, **mode)
    assert done.refused is None
    assert len(done.rows) > 50


@MODES
def test_a_step_that_a_budget_stops_updates_nothing_and_keeps_the_record(mode):
    made = make(records(100, True), **mode)
    made.engine.accountant.ledger = ac.Accountant(budget=ac.Budget(0.6, 1e-5))
    torch.manual_seed(7)
    refused(ac.BudgetExceeded, "", plain, made)
    kept = len(made.engine.accountant)
    assert kept == made.inner.updates >= 1
    refused(ac.UnsupportedError, "left a step unfinished", plain, made)
    adapter.discard_unfinished(made.optimizer)
    refused(ac.BudgetExceeded, "", plain, made)
    assert len(made.engine.accountant) == kept == made.inner.updates


def test_an_exception_inside_the_sum_is_not_stepped_over(monkeypatch):
    made = make(records(100, True), layers=2)
    calls = []

    def failing(*arguments):
        # The clipped sums: of two parameters in every step.
        calls.append(1)
        if len(calls) == 4:
            raise MemoryError
        return own(*arguments)

    clipping = adapter._opacus_ghost.clipping
    own = clipping.weighted_sum
    monkeypatch.setattr(clipping, "weighted_sum", failing)
    batches = iter(made.loader)
    made.step(*next(batches))
    refused(MemoryError, "", made.step, *next(batches))
    refused(ac.UnsupportedError, "left a step unfinished", made.step, *next(batches))
    assert len(made.engine.accountant) == made.inner.updates == 1


def test_an_update_may_call_that_of_a_parent_class():
    # Torch runs the hooks again there, once an optimiser of that class was made.
    torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    made = make(records(100, True))
    for x, y in made.loader:
        made.step(x, y)
        refused(ac.UnsupportedError, "ledger does not hold this step", made.inner.step)
    assert len(made.engine.accountant) == made.inner.updates == 5

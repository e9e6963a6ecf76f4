"""The Trainer of Hugging Face: charged by optimiser step, stopped by the budget, and resumed."""

import math
from pathlib import Path

import pytest

import accountant as ac

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")

from accountant.adapters.transformers import PrivacyCallback  # noqa: E402
from accountant.sampling import RandomAllocation  # noqa: E402
from support import units_worker  # noqa: E402
from support.scripts import script  # noqa: E402

DELTA = 1e-5
EXAMPLE = Path(__file__).parents[2] / "examples" / "language_model.py"
pytestmark = pytest.mark.filterwarnings("ignore")


def trainer_of(folder, model=None, **options):
    known = {"per_device_train_batch_size": 6, "max_steps": 5, "logging_steps": 1}
    known |= units_worker.ALONE | options
    arguments = transformers.TrainingArguments(str(folder), **known)
    return transformers.Trainer(
        model=units_worker.Model(0) if model is None else model,
        args=arguments,
        train_dataset=units_worker.data(),
        data_collator=units_worker.collate,
    )


def trained(folder, ledger=None, sampler=None, statement=None, resume=None, **options):
    trainer = trainer_of(folder, **options)
    privacy = PrivacyCallback(
        units_worker.units(), 1.0, 0.5, delta=DELTA, ledger=ledger, sampler=sampler,
        statement=statement,
    )  # fmt: skip
    privacy.attach(trainer)
    trainer.train(resume_from_checkpoint=resume)
    return privacy.ledger, trainer


def steps_cost(count, rate):
    return (count * ac.PoissonSampled(ac.Gaussian(1.0), rate)).epsilon(DELTA)


def test_optimiser_steps_are_charged_and_not_micro_batches(tmp_path):
    whole, _ = trained(tmp_path, per_device_train_batch_size=12)
    parts, trainer = trained(tmp_path, per_device_train_batch_size=3, gradient_accumulation_steps=4)
    assert whole.to_json() == parts.to_json()
    assert (len(parts), trainer.state.global_step) == (5, 5)
    assert parts.epsilon(DELTA) == steps_cost(5, 0.4)


def test_epochs_are_those_of_the_units(tmp_path):
    ledger, trainer = trained(tmp_path, max_steps=-1, num_train_epochs=2.0)
    assert trainer.state.global_step == len(ledger) == math.ceil(2 / 0.2)


def test_epsilon_is_logged_and_the_loss_is_not(tmp_path):
    ledger, trainer = trained(tmp_path)
    logged = [row for row in trainer.state.log_history if "loss" in row]
    assert [row["epsilon"] for row in logged] == [steps_cost(k, 0.2) for k in range(1, 6)]
    assert all(row["loss"] == row["grad_norm"] == 0.0 for row in logged)
    assert ledger.epsilon(DELTA) == logged[-1]["epsilon"]


def test_the_budget_ends_the_training_before_it_is_overspent(tmp_path):
    ledger = ac.Accountant(ac.Budget(steps_cost(3, 0.2) * 1.001, DELTA))
    found, trainer = trained(tmp_path, ledger)
    assert found is ledger
    assert trainer.state.global_step == len(ledger) == 3
    assert ledger.epsilon(DELTA) <= ledger.budget.epsilon
    with pytest.raises(ac.BudgetExceeded, match="not one step"):
        trained(tmp_path, ac.Accountant(ac.Budget(0.01, DELTA)))


def test_a_run_is_charged_whole_and_stops_at_its_end(tmp_path):
    sampler = RandomAllocation(dataset_size=30, steps_per_epoch=4)
    ledger, trainer = trained(tmp_path, sampler=sampler, max_steps=50)
    assert trainer.state.global_step == 4
    assert ledger.epsilon(DELTA) == sampler.epsilon(1.0, DELTA)


def test_the_parameters_move_by_released_gradients_only(tmp_path):
    model = units_worker.Model(0)
    before = [p.detach().clone() for p in model.parameters()]
    trainer = trainer_of(tmp_path, model)
    ledger = ac.Accountant()
    privacy = PrivacyCallback(units_worker.units(), 1.0, 0.5, delta=DELTA, ledger=ledger)
    privacy.attach(trainer)
    original = privacy._begin

    def begin(module):
        made = original(module)
        made.ledger = ac.Accountant(ac.Budget(0.01, DELTA))  # somebody else has spent it
        return made

    privacy._begin = begin
    trainer.train()
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


def test_a_resumed_run_goes_on_with_its_ledger(tmp_path):
    budget = ac.Budget(20.0, DELTA)
    saving = {"save_strategy": "steps", "save_steps": 2}
    first, _ = trained(tmp_path, ac.Accountant(budget), max_steps=4, **saving)
    half = str(tmp_path / "checkpoint-2")
    for ledger in (None, ac.Accountant(budget)):
        found, trainer = trained(tmp_path / "again", ledger, resume=half, max_steps=4)
        assert trainer.state.global_step == len(found) == 4
        assert found.to_json() == first.to_json()
    # What was released after the checkpoint stays released.
    found, _ = trained(tmp_path / "again", first, resume=half, max_steps=4)
    assert found is first
    assert len(found) == 6
    other = ac.Accountant()
    other.step(noise_multiplier=3.0)
    with pytest.raises(ac.DomainError, match="must have the budget"):
        trained(tmp_path / "again", ac.Accountant(ac.Budget(1.0, DELTA)), resume=half)
    with pytest.raises(ac.DomainError, match="hold the releases of the checkpoint"):
        trained(tmp_path / "again", other, resume=half)


@pytest.mark.parametrize("kind", ["html", "md", "json"])
def test_the_statement_names_the_unit_of_the_pipeline(tmp_path, kind):
    path = tmp_path / f"statement.{kind}"
    ledger, _ = trained(tmp_path, statement=path)
    text = path.read_text(encoding="utf-8")
    assert "one user, with all their records" in text
    assert f"{ledger.epsilon(DELTA):.3f}" in text


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"auto_find_batch_size": True}, "auto_find_batch_size"),
        ({"restore_callback_states_from_checkpoint": True}, "restore_callback_states"),
        ({"optim": "lomo"}, "updates parameters in the backward pass"),
    ],
)
def test_arguments_that_no_theorem_covers_are_refused(tmp_path, options, why):
    try:
        trainer = trainer_of(tmp_path, **options)
    except ImportError:
        pytest.skip("the Trainer refuses it by itself here")
    privacy = PrivacyCallback(units_worker.units(), 1.0, 0.5, delta=DELTA)
    with pytest.raises(ac.UnsupportedError, match=why):
        privacy.attach(trainer)


@pytest.mark.parametrize("sharding", ["is_fsdp_enabled", "is_deepspeed_enabled"])
def test_sharded_gradients_are_refused_by_name(tmp_path, monkeypatch, sharding):
    trainer = trainer_of(tmp_path)
    monkeypatch.setattr(trainer, sharding, True)
    privacy = PrivacyCallback(units_worker.units(), 1.0, 0.5, delta=DELTA)
    with pytest.raises(ac.UnsupportedError, match=r"fsdp and deepspeed.*Use one process a device"):
        privacy.attach(trainer)


def test_a_callback_that_was_not_attached_is_refused(tmp_path):
    trainer = trainer_of(tmp_path)
    trainer.add_callback(PrivacyCallback(units_worker.units(), 1.0, 0.5, delta=DELTA))
    with pytest.raises(ac.UnsupportedError, match="attach"):
        trainer.train()
    with pytest.raises(ac.DomainError, match="must be a path that ends in"):
        PrivacyCallback(units_worker.units(), 1.0, 0.5, delta=DELTA, statement="s.pdf")
    with pytest.raises(ac.ArgumentTypeError, match="must be a Units"):
        PrivacyCallback([[0], [1]], 1.0, 0.5, delta=DELTA)


def test_the_example_learns_and_stops_at_its_budget(tmp_path):
    if not EXAMPLE.exists():
        pytest.skip("the examples are not here")
    main = script(EXAMPLE).main
    ledger, before, after = main(users=120, steps=9, epsilon=16.0, folder=tmp_path)
    assert after < before - 0.3
    assert 0 < len(ledger) <= 9
    assert ledger.epsilon(1e-4) <= 16.0
    assert "one user, with all their records" in (tmp_path / "statement.html").read_text()

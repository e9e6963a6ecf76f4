"""Lightning's Trainer: charged by optimiser step, stopped by the budget, and resumed."""

import logging
from types import SimpleNamespace

import pytest

import accountant as ac

torch = pytest.importorskip("torch")
lightning = pytest.importorskip("lightning.pytorch")

from accountant.adapters.lightning import PrivacyCallback  # noqa: E402
from accountant.sampling import PoissonSampler, RandomAllocation  # noqa: E402
from support import units_worker  # noqa: E402
from support.lightning_module import QUIET, Module  # noqa: E402

DELTA = 1e-5
SAMPLER = PoissonSampler(dataset_size=30, sampling_probability=0.3, steps=6)
pytestmark = pytest.mark.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


def trainer_of(folder, privacy, **options):
    known = {"max_epochs": 1, "log_every_n_steps": 1, "default_root_dir": str(folder)}
    return lightning.Trainer(callbacks=[privacy], **(QUIET | known | options))


def fitted(folder, ledger=None, sampler=SAMPLER, statement=None, resume=None, **options):
    privacy = PrivacyCallback(
        units_worker.units(), sampler, 1.0, 0.5, delta=DELTA, ledger=ledger, statement=statement
    )
    module, trainer = Module(), trainer_of(folder, privacy, **options)
    loader = privacy.loader(units_worker.data(), units_worker.collate)
    trainer.fit(module, loader, ckpt_path=resume)
    return privacy, module, trainer


def steps_cost(count):
    return (count * ac.PoissonSampled(ac.Gaussian(1.0), 0.3)).epsilon(DELTA)


def test_every_optimiser_step_is_charged_and_epsilon_is_logged(tmp_path):
    privacy, module, trainer = fitted(tmp_path, statement=tmp_path / "s.json")
    assert trainer.global_step == len(privacy.ledger) == 6
    assert privacy.ledger.epsilon(DELTA) == steps_cost(6)
    assert float(trainer.callback_metrics["epsilon"]) == pytest.approx(steps_cost(6))
    assert "train_loss" not in trainer.callback_metrics  # it is private
    assert module.passes > 10  # once a unit
    assert "training_step" not in vars(module)
    assert "one user, with all their records" in (tmp_path / "s.json").read_text()


def test_the_budget_ends_the_training_before_it_is_overspent(tmp_path):
    ledger = ac.Accountant(ac.Budget(steps_cost(4) * 1.001, DELTA))
    privacy, _, trainer = fitted(tmp_path, ledger, max_epochs=3)
    assert privacy.ledger is ledger
    assert trainer.global_step == len(ledger) == 4
    with pytest.raises(ac.BudgetExceeded, match="not one step"):
        fitted(tmp_path, ac.Accountant(ac.Budget(0.01, DELTA)))


def test_passes_are_runs(tmp_path):
    sampler = RandomAllocation(dataset_size=30, steps_per_epoch=3)
    privacy, _, trainer = fitted(tmp_path, sampler=sampler, max_epochs=2)
    assert trainer.global_step == 6
    assert privacy.ledger.epsilon(DELTA) == (2 * sampler.mechanism(1.0)).epsilon(DELTA)


def test_a_resumed_run_goes_on_with_its_ledger(tmp_path):
    first, module, trainer = fitted(tmp_path)
    kept = tmp_path / "kept.ckpt"
    trainer.save_checkpoint(kept)
    again, _, _ = fitted(tmp_path, resume=str(kept), max_epochs=2)
    assert again.ledger.epsilon(DELTA) == steps_cost(12)
    assert len(first.ledger) == 6
    other = ac.Accountant()
    other.step(noise_multiplier=3.0)
    with pytest.raises(ac.DomainError, match="hold the releases of the checkpoint"):
        fitted(tmp_path, other, resume=str(kept), max_epochs=2)
    assert module.passes


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ({"accumulate_grad_batches": 2}, "accumulate_grad_batches"),
        ({"precision": "16-mixed"}, "16-mixed"),
        ({"world_size": 2}, "several processes"),
    ],
)
def test_settings_that_no_theorem_covers_are_refused(setting, why):
    privacy = PrivacyCallback(units_worker.units(), SAMPLER, 1.0, 0.5, delta=DELTA)
    known = {"world_size": 1, "accumulate_grad_batches": 1, "precision": "32-true"}
    with pytest.raises(ac.UnsupportedError, match=why):
        privacy.on_fit_start(SimpleNamespace(**(known | setting)), Module())


def test_other_loaders_and_manual_optimisation_are_refused(tmp_path):
    privacy = PrivacyCallback(units_worker.units(), SAMPLER, 1.0, 0.5, delta=DELTA)
    loader = torch.utils.data.DataLoader(
        units_worker.data(), batch_size=5, collate_fn=units_worker.collate
    )
    with pytest.raises(ac.UnsupportedError, match="one of a UnitLoader"):
        trainer_of(tmp_path, privacy).fit(Module(), loader)
    module = Module()
    module.automatic_optimization = False
    with pytest.raises(ac.UnsupportedError, match="manual optimisation"):
        trainer_of(tmp_path, privacy).fit(
            module, privacy.loader(units_worker.data(), units_worker.collate)
        )

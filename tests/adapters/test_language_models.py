"""PEFT and TRL: adapters of a frozen model, trained by the callback; skipped without them."""

import re
import warnings
from pathlib import Path

import pytest

import accountant as ac

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
peft = pytest.importorskip("peft")
trl = pytest.importorskip("trl")
datasets = pytest.importorskip("datasets")
tokenizers = pytest.importorskip("tokenizers")

from accountant.adapters.torch_steps import PrivateSteps  # noqa: E402
from accountant.adapters.torch_units import UnitLoader, Units  # noqa: E402
from accountant.adapters.transformers import PrivacyCallback  # noqa: E402
from accountant.sampling import FullBatch  # noqa: E402
from support import units_worker  # noqa: E402
from support.scripts import script  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

DELTA = 1e-5
EXAMPLE = Path(__file__).parents[2] / "examples" / "language_model_lora.py"
RECORDS = 24
LETTERS = "abcdefghijklmnopqrstuvwxyz "
ALONE = Units.single(RECORDS, "sequence")
OWNERS = [k // 3 for k in range(RECORDS)]
USERS = Units.grouped(OWNERS, "user")


def tokenizer():
    words = {letter: place for place, letter in enumerate([*LETTERS, "<pad>", "<eos>", "<unk>"])}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<unk>"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Split("", "isolated")
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>"
    )


def model(**options):
    with torch.random.fork_rng():
        torch.manual_seed(3)
        known = {
            "vocab_size": len(LETTERS) + 3, "n_positions": 48, "n_embd": 16, "n_layer": 2,
            "n_head": 2, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
            "bos_token_id": 28, "eos_token_id": 28,
        }  # fmt: skip
        return transformers.GPT2LMHeadModel(transformers.GPT2Config(**known | options))


def lora(**options):
    known = {"r": 4, "lora_alpha": 8, "target_modules": ["c_attn"], "fan_in_fan_out": True}
    return peft.LoraConfig(task_type="CAUSAL_LM", **known | options)


def texts(column="text"):
    return [
        {column: f"{LETTERS[k]}{LETTERS[k + 1] * (1 + k % 4)} and so on"} for k in range(RECORDS)
    ]


def arguments(kind, folder, **options):
    known = {"per_device_train_batch_size": 6, "max_steps": 3, "logging_steps": 1}
    known |= {"learning_rate": 0.05, "max_length": 40, "bf16": False} | units_worker.ALONE | options
    return kind(**{"output_dir": str(folder), "gradient_checkpointing": False} | known)


def sft(folder, base=None, config=None, **options):
    return trl.SFTTrainer(
        model=base or model(),
        args=arguments(trl.SFTConfig, folder, **options),
        train_dataset=datasets.Dataset.from_list(texts()),
        processing_class=tokenizer(),
        peft_config=config,
    )


def dpo(folder, config=None, **options):
    rows = [{"prompt": row["text"], "chosen": "yes", "rejected": "never"} for row in texts()]
    return trl.DPOTrainer(
        model=model(),
        ref_model=None if config else model(),
        args=arguments(trl.DPOConfig, folder, **options),
        train_dataset=datasets.Dataset.from_list(rows),
        processing_class=tokenizer(),
        peft_config=config,
    )


def private(trainer, units=ALONE, noise=1.0, **options):
    privacy = PrivacyCallback(units, noise, 0.5, delta=DELTA, **options)
    privacy.attach(trainer)
    return privacy


def cost(steps, rate):
    return (steps * ac.PoissonSampled(ac.Gaussian(1.0), rate)).epsilon(DELTA)


MADE = pytest.mark.parametrize("made", [sft, dpo])


@MADE
@pytest.mark.parametrize("units", [ALONE, USERS], ids=["sequence", "user"])
@pytest.mark.parametrize("config", [None, lora()], ids=["whole", "lora"])
def test_trainers_are_charged_by_the_unit(tmp_path, made, units, config):
    trainer = made(tmp_path, config=config)
    trained = {
        n: p.detach().clone() for n, p in trainer.model.named_parameters() if p.requires_grad
    }
    frozen = {
        n: p.detach().clone() for n, p in trainer.model.named_parameters() if not p.requires_grad
    }
    privacy = private(trainer, units, statement=tmp_path / "statement.md")
    trainer.train()
    assert len(privacy.ledger) == 3
    assert privacy.ledger.epsilon(DELTA) == cost(3, 6 / len(units))
    assert units.words in (tmp_path / "statement.md").read_text()
    now = dict(trainer.model.named_parameters())
    assert all(not torch.equal(before, now[name]) for name, before in trained.items())
    assert all(torch.equal(before, now[name]) for name, before in frozen.items())
    assert bool(frozen) == (config is not None)


@MADE
def test_what_a_trainer_logs_about_its_batches_is_dropped(tmp_path, made):
    trainer = made(tmp_path)
    private(trainer)
    told = []

    class Listens(transformers.TrainerCallback):
        def on_log(self, args, state, control, logs=None, **_):
            told.append(dict(logs))

    trainer.add_callback(Listens())
    trainer.train()
    allowed = {"loss", "grad_norm", "learning_rate", "epoch", "step", "epsilon", "total_flos"}
    for row in (*told, *trainer.state.log_history):
        assert {key for key in row if not key.startswith("train_")} <= allowed
        assert row.get("loss", 0.0) == row.get("train_loss", 0.0) == row.get("total_flos", 0) == 0
    assert any("epsilon" in row for row in told)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"packing": True}, "packing=True.*packing=False"),
        ({"packing": True, "packing_strategy": "wrapped"}, "packing=True"),
        ({"shuffle_dataset": True}, "shuffle_dataset=True"),
    ],
)
def test_sequences_of_several_records_are_refused(tmp_path, options, why):
    trainer = sft(tmp_path, **options)
    with pytest.raises(ac.UnsupportedError, match=why):
        private(trainer)


def test_losses_that_pair_records_are_refused_by_name(tmp_path):
    class GRPOTrainer(trl.SFTTrainer):
        pass

    GRPOTrainer.__module__ = "trl.trainer.grpo_trainer"
    trainer = sft(tmp_path)
    trainer.__class__ = GRPOTrainer
    with pytest.raises(ac.UnsupportedError, match="GRPOTrainer"):
        private(trainer)


def sums(trainer, units, model=None):
    """Return the sum of clipped gradients of all units, by a run without noise to speak of."""
    steps = PrivateSteps(
        model or trainer.model, FullBatch(dataset_size=len(units), steps=1),
        noise_multiplier=1e-6, clipping_norm=0.5, seed=1,
    )  # fmt: skip
    loader = UnitLoader(
        trainer.train_dataset, units, FullBatch(dataset_size=len(units), steps=1),
        trainer.data_collator,
    )  # fmt: skip
    (batch,) = loader
    for unit in steps.units(batch):
        trainer.model.train()
        trainer.compute_loss(trainer.model, trainer._prepare_inputs(unit)).backward()
    steps.release()
    parts = [p.grad.flatten() for p in trainer.model.parameters() if p.grad is not None]
    return torch.cat(parts) * len(units)


@pytest.mark.parametrize("units", [ALONE, USERS], ids=["sequence", "user"])
def test_a_batch_without_padding_is_one_unit_of_its_records(tmp_path, units):
    padded = sft(tmp_path, base=model(attn_implementation="sdpa"))
    flat = sft(tmp_path, base=model(attn_implementation="sdpa"), padding_free=True,
               max_length=None)  # fmt: skip
    every = FullBatch(dataset_size=len(units), steps=1)
    (one,) = UnitLoader(flat.train_dataset, units, every, flat.data_collator)
    assert len(one) == len(units)
    assert all(unit["input_ids"].shape[0] == 1 for unit in one)
    with_padding, without = sums(padded, units), sums(flat, units)
    # However sequences lie in a unit's tensor, it is one gradient, of at most the norm.
    for found in (with_padding, without):
        assert 0 < float(found.norm()) <= 0.5 * len(units) * (1 + 1e-5)
    if units is ALONE:
        assert torch.allclose(with_padding, without, atol=1e-4)


def test_one_record_moves_the_sum_by_one_norm(tmp_path):
    # Tied embeddings: one tensor at both ends of the model, whose gradient is clipped as one.
    trainer = sft(tmp_path, base=model(tie_word_embeddings=True))
    assert trainer.model.lm_head.weight is trainer.model.transformer.wte.weight
    whole = sums(trainer, ALONE)
    rest = Units([(k,) for k in range(RECORDS - 1)], "one sequence")
    less = sums(trainer, rest)
    moved = float((whole - less).norm())
    assert 0.01 < moved <= 0.5 * (1 + 1e-4)
    # Two tensors have another gradient: the check that tied ones are seen as tied.
    apart = sft(tmp_path, base=model(tie_word_embeddings=False))
    assert sums(apart, ALONE).numel() == whole.numel() + trainer.model.lm_head.weight.numel()


@pytest.mark.parametrize("config", [None, lora()], ids=["whole", "lora"])
def test_gradient_checkpointing_changes_no_gradient(tmp_path, config):
    plain = sums(sft(tmp_path, config=config), ALONE)
    options = {"gradient_checkpointing": True}
    again = sft(tmp_path, config=config, **options)
    again.model.gradient_checkpointing_enable({"use_reentrant": False})
    assert again.model.is_gradient_checkpointing
    assert torch.allclose(sums(again, ALONE), plain, atol=1e-5)
    trainer = sft(tmp_path, config=config, **options)
    ledger = private(trainer).ledger
    trainer.train()
    assert len(ledger) == 3


def test_a_checkpoint_of_the_adapter_alone_goes_on_with_its_ledger(tmp_path):
    saving = {"save_strategy": "steps", "save_steps": 2, "max_steps": 4}
    trainer = sft(tmp_path, config=lora(), **saving)
    first = private(trainer)
    trainer.train()
    half = tmp_path / "checkpoint-2"
    assert (half / "adapter_model.safetensors").exists()
    assert not (half / "model.safetensors").exists()
    again = sft(tmp_path / "again", config=lora(), **saving)
    found = private(again)
    again.train(resume_from_checkpoint=str(half))
    assert found.ledger.to_json() == first.ledger.to_json()
    # What is saved at the end has the weights that the ledger paid for.
    again.save_model(str(tmp_path / "end"))
    loaded = peft.PeftModel.from_pretrained(model(), tmp_path / "end")
    text = torch.tensor([[1, 2, 3, 4]])
    again.model.eval()
    loaded.eval()
    assert torch.allclose(loaded(text).logits, again.model(text).logits, atol=1e-5)
    assert not torch.allclose(loaded(text).logits, model().eval()(text).logits, atol=1e-5)


def test_weights_that_do_not_change_are_told(tmp_path):
    trainer = sft(tmp_path, config=lora())
    private(trainer)
    other = [torch.nn.Parameter(torch.zeros(3))]  # an optimiser of another model's weights
    trainer.optimizer = torch.optim.SGD(other, lr=0.1)
    trainer.lr_scheduler = torch.optim.lr_scheduler.ConstantLR(trainer.optimizer)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        trainer.train()
    said = [str(each.message) for each in told if "did not change" in str(each.message)]
    assert said
    assert re.search("optimiser", said[0])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        fine = sft(tmp_path, config=lora())
        private(fine)
        fine.train()
    assert not [each for each in told if "did not change" in str(each.message)]


def test_the_example_trains_adapters_to_a_budget(tmp_path):
    if not EXAMPLE.exists():
        pytest.skip("the examples are not here")
    spent, before, after = script(EXAMPLE).main(steps=4, epsilon=2.0, folder=tmp_path)
    assert 0 < spent <= 2.0
    assert after < before
    assert "one sequence" in (tmp_path / "statement.html").read_text()
    assert (tmp_path / "adapter" / "adapter_model.safetensors").exists()
    assert not (tmp_path / "adapter" / "model.safetensors").exists()


def test_opacus_without_a_wrapper_in_the_trainer_of_hugging_face(tmp_path):
    opacus = pytest.importorskip("opacus")
    import accountant.adapters.opacus  # noqa: F401 (registers)

    adapted = peft.get_peft_model(model(), lora())
    rows = [torch.arange(8) + k % 10 for k in range(60)]
    data = [{"input_ids": row, "labels": row} for row in rows]
    engine = opacus.PrivacyEngine(accountant="exact")
    trained = [p for p in adapted.parameters() if p.requires_grad]
    _, optimizer, loader = engine.make_private(
        module=adapted, optimizer=torch.optim.SGD(trained, lr=0.1), max_grad_norm=1.0,
        data_loader=torch.utils.data.DataLoader(data, batch_size=10), noise_multiplier=1.0,
        wrap_model=False,
    )  # fmt: skip

    class Clears(transformers.TrainerCallback):
        def on_step_end(self, *_, **__):
            optimizer.zero_grad()  # the Trainer clears the model's gradients alone

    arguments = transformers.TrainingArguments(
        str(tmp_path),
        max_steps=5,
        max_grad_norm=0.0,
        remove_unused_columns=False,
        **units_worker.ALONE,
    )
    trainer = transformers.Trainer(
        model=adapted, args=arguments, train_dataset=data, optimizers=(optimizer, None),
        callbacks=[Clears()],
    )  # fmt: skip
    trainer.get_train_dataloader = lambda: loader
    trainer.train()
    ((noise, rate, steps),) = engine.accountant.history
    assert (noise, steps) == (1.0, 5)
    assert engine.get_epsilon(DELTA) == ac.get_epsilon(rate, noise, steps, DELTA)

"""Neighbours without noise: what a unit adds depends on that unit, the model and nothing else."""

import functools
import logging

import pytest

import accountant as ac

torch = pytest.importorskip("torch")

from support.units_apart import models, runs  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

LOOPS = {"plain": None, "transformers": "transformers", "lightning": "lightning.pytorch"}


def loop_of(name, folder):
    if LOOPS[name] is None:
        return runs.plain
    pytest.importorskip(LOOPS[name])
    return functools.partial(getattr(runs, f"by_{name}"), folder=folder)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("made", models.APART)
def test_every_other_unit_adds_the_same_bits(loop, made, tmp_path, monkeypatch):
    for pair in runs.twins(loop_of(loop, tmp_path), made, monkeypatch):
        runs.check(*pair)


def test_a_collator_that_masks_draws_for_each_unit_by_itself(monkeypatch):
    for pair in runs.twins(runs.plain, models.Model, monkeypatch, runs.augmenting):
        runs.check(*pair)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("made", models.KEEPING)
def test_a_model_that_keeps_something_is_refused(loop, made, tmp_path, monkeypatch):
    with pytest.raises(ac.UnsupportedError, match=r"must not keep|must stay as they are"):
        runs.run(loop_of(loop, tmp_path), made, [0, 1, 2], monkeypatch)


def bert():
    transformers = pytest.importorskip("transformers")
    configuration = transformers.BertConfig(
        vocab_size=30, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=16,
    )  # fmt: skip
    assert configuration.hidden_dropout_prob == 0.1
    return transformers.BertForSequenceClassification(configuration)


def sequences(records):
    words = torch.cat([each["x"] for each in records])[:, 0].abs().mul(9).long().clamp(max=29)
    return {"input_ids": words[None], "labels": words[None, 0] % 2}


def test_a_stock_trainer_on_a_bert_with_dropout(tmp_path, monkeypatch):
    loop = loop_of("transformers", tmp_path)
    for pair in runs.twins(loop, bert, monkeypatch, sequences):
        runs.check(*pair)
        assert pair[0].epsilon == pair[1].epsilon > 0


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("made", models.INSEPARABLE)
def test_randomness_that_cannot_be_separated_is_refused_by_name(loop, made, tmp_path, monkeypatch):
    with pytest.raises(ac.UnsupportedError, match=r"draws is a (Generator|Random) of its own"):
        runs.run(loop_of(loop, tmp_path), made, [0, 1, 2], monkeypatch)

"""A frozen transformer learns the manual of Python by LoRA, to a budget, by Hugging Face's Trainer.

The unit of privacy is a sequence of 64 characters. The text is what ``help()`` of Python prints
about its topics (``pydoc_data``); the model begins at random, so that nothing is downloaded, and
only the adapters are trained and saved. ``opacus`` and ``plain`` run the same task with Opacus'
ghost clipping, and without privacy; all say time, memory and the loss on text that was held out.

python examples/language_model_lora.py [private|opacus|plain] [steps]
                                                       (needs transformers, accelerate and peft)
"""

import resource
import sys
import tempfile
import time
from pathlib import Path

from accountant import Accountant, Budget

LENGTH, BATCH, DELTA, NORM = 64, 32, 1e-5, 0.5
RATE = 0.01  # of Adam


def sequences():
    """Return the text in sequences of one length: for training, and held out."""
    from pydoc_data.topics import topics

    import torch

    text = "\n".join(topics[name] for name in sorted(topics)).encode("ascii", "replace")
    rows = torch.tensor(list(text[: len(text) // LENGTH * LENGTH])).view(-1, LENGTH)
    return rows[64:], rows[:64]


def adapted():
    """Return a small transformer whose weights are frozen, with adapters that are trained."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    base = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=128, n_positions=LENGTH, n_embd=192, n_layer=3, n_head=4, resid_pdrop=0.0,
            embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0,
            tie_word_embeddings=False,
        )
    )  # fmt: skip
    lora = LoraConfig(
        r=8, lora_alpha=32, target_modules=["c_attn", "c_proj", "c_fc", "lm_head"],
        task_type="CAUSAL_LM", fan_in_fan_out=True,
    )  # fmt: skip
    return get_peft_model(base, lora)


def held_out_loss(model, rows):
    import torch

    model.eval()
    with torch.no_grad():
        return float(model(input_ids=rows, labels=rows).loss)


def train_private(model, rows, steps, epsilon, folder):
    """Train by the Trainer, a backward pass a sequence; return ε and the seconds."""
    from transformers import Trainer, TrainingArguments

    from accountant.adapters.torch_units import Units
    from accountant.adapters.transformers import PrivacyCallback

    arguments = TrainingArguments(
        str(folder), per_device_train_batch_size=BATCH, max_steps=steps, learning_rate=RATE,
        lr_scheduler_type="constant", save_strategy="no", logging_steps=10, report_to=[],
        use_cpu=True, disable_tqdm=True,
    )  # fmt: skip
    data = [{"input_ids": row, "labels": row} for row in rows]
    trainer = Trainer(model=model, args=arguments, train_dataset=data)
    privacy = PrivacyCallback(
        Units.single(len(data), "sequence"), noise_multiplier=0.6, clipping_norm=NORM, delta=DELTA,
        ledger=Accountant(Budget(epsilon, DELTA)), statement=folder / "statement.html",
    )  # fmt: skip
    privacy.attach(trainer)
    began = time.process_time()
    trainer.train()
    took = time.process_time() - began
    trainer.save_model(str(folder / "adapter"))
    return privacy.ledger.epsilon(DELTA), took


def per_sequence(torch):
    """Return the mean loss of the letters of each sequence, as Opacus wants a criterion."""

    class PerSequence(torch.nn.Module):
        reduction = "mean"

        def forward(self, logits, letters):
            losses = torch.nn.functional.cross_entropy(
                logits.transpose(1, 2), letters, reduction="none"
            ).mean(1)
            return losses.mean() if self.reduction == "mean" else losses

    return PerSequence()


def train_opacus(model, rows, steps):
    """Train by Opacus' ghost clipping, with batches of the same law; return ε and the seconds."""
    import torch
    from opacus import PrivacyEngine
    from torch.utils.data import DataLoader, TensorDataset

    import accountant.adapters.opacus  # noqa: F401 (registers)

    engine = PrivacyEngine(accountant="exact")
    model.train()
    wrapped, optimizer, criterion, loader = engine.make_private(
        module=model, data_loader=DataLoader(TensorDataset(rows), batch_size=BATCH),
        optimizer=torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=RATE),
        criterion=per_sequence(torch), noise_multiplier=0.6,
        max_grad_norm=NORM, grad_sample_mode="ghost",
    )  # fmt: skip
    done, began = 0, time.process_time()
    while done < steps:
        for (batch,) in loader:
            optimizer.zero_grad()
            logits = wrapped(input_ids=batch).logits[:, :-1]
            criterion(logits, batch[:, 1:]).backward()
            optimizer.step()
            done += 1
            if done == steps:
                break
    return engine.get_epsilon(DELTA), time.process_time() - began


def train_plain(model, rows, steps):
    import torch

    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=RATE)
    model.train()
    began = time.process_time()
    for _ in range(steps):
        batch = rows[torch.randint(len(rows), (BATCH,))]
        optimizer.zero_grad()
        model(input_ids=batch, labels=batch).loss.backward()
        optimizer.step()
    return None, time.process_time() - began


def main(mode="private", steps=60, epsilon=2.0, folder=None):
    folder = Path(tempfile.mkdtemp() if folder is None else folder)
    rows, held_out = sequences()
    model = adapted()
    before = held_out_loss(model, held_out)
    if mode == "private":
        spent, took = train_private(model, rows, steps, epsilon, folder)
    else:
        spent, took = {"opacus": train_opacus, "plain": train_plain}[mode](model, rows, steps)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    after = held_out_loss(model, held_out)
    print(f"{mode}: loss {before:.3f}, after training {after:.3f}")
    print(f"{took / steps:.2f} s of processor time a step, {most / 1024:.0f} MB of memory")
    if spent is not None:
        print(f"ε = {spent:.4f} at δ = {DELTA} for one sequence; statement in {folder}")
    return spent, before, after


if __name__ == "__main__":
    main(*sys.argv[1:2], *(int(n) for n in sys.argv[2:3]))

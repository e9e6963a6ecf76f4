"""A small transformer learns from the text of many users, by the Trainer of Hugging Face.

The unit of privacy is the user: ε bounds what the model tells about *all* the sentences of any one
of them. The text is made here, by users with favourite words; the model begins at random.

python examples/language_model.py          (needs transformers and accelerate)
"""

import random
import sys
import tempfile
from pathlib import Path

from accountant import Accountant, Budget
from accountant.adapters.torch_units import Units
from accountant.adapters.transformers import PrivacyCallback

WORDS = {
    "who": ["the cat", "a dog", "my aunt", "our friend", "the old man"],
    "does": ["likes", "sees", "paints", "hears", "finds"],
    "what": ["the moon", "a tree", "some bread", "the sea", "a song"],
    "when": ["today", "at night", "in may", "every day", "by noon"],
}
ALPHABET = " abcdefghijklmnopqrstuvwxyz"
LENGTH = 32


def text_of(user, sentences):
    """Return sentences of a user, who prefers two words of each kind."""
    taste = random.Random(user)
    favourites = [taste.sample(words, 2) for words in WORDS.values()]
    return [" ".join(map(taste.choice, favourites)) for _ in range(sentences)]


def encoded(sentence):
    import torch

    letters = [ALPHABET.index(letter) for letter in sentence[:LENGTH].ljust(LENGTH)]
    return {"input_ids": torch.tensor(letters), "labels": torch.tensor(letters)}


def main(users=400, steps=60, epsilon=8.0, delta=1e-4, folder=None):
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    torch.manual_seed(0)
    folder = Path(tempfile.mkdtemp() if folder is None else folder)
    texts = [(user, text) for user in range(users) for text in text_of(user, 1 + user % 8)]
    fresh = [encoded(text) for user in range(10_000, 10_040) for text in text_of(user, 2)]
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=len(ALPHABET), n_positions=LENGTH, n_embd=32, n_layer=1, n_head=2,
            bos_token_id=0, eos_token_id=0, tie_word_embeddings=False,
        )
    )  # fmt: skip
    arguments = TrainingArguments(
        str(folder),
        per_device_train_batch_size=16,
        gradient_accumulation_steps=6,  # 96 users a step, on average
        max_steps=steps,
        learning_rate=1e-2,
        weight_decay=0.0,
        logging_steps=20,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    )
    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=[encoded(text) for _, text in texts],
        eval_dataset=fresh,
    )
    privacy = PrivacyCallback(
        Units.grouped([user for user, _ in texts], "user"),
        noise_multiplier=1.0,
        clipping_norm=0.5,
        delta=delta,
        ledger=Accountant(Budget(epsilon, delta)),
        statement=folder / "statement.html",
        title=f"A language model of {users} users",
    )
    privacy.attach(trainer)
    before = trainer.evaluate()["eval_loss"]
    trainer.train()
    after = trainer.evaluate()["eval_loss"]
    ledger = privacy.ledger
    print(f"loss a letter on fresh text: {before:.3f}, after training {after:.3f}")
    print(f"{len(ledger)} steps, ε = {ledger.epsilon(delta):.4f} at δ = {delta} for one user")
    print(f"statement: {folder / 'statement.html'}")
    return ledger, before, after


if __name__ == "__main__":
    main(*(int(n) for n in sys.argv[1:3]))

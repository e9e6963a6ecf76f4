"""The command: data and a target in; a model, a ledger and a statement out."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import accountant as ac
from accountant.cli import main

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
Y = (X[:, 0] > 0).astype(int)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "data.csv"
    lines = ["a,label,b,c"] + [f"{a},{y},{b},{c}" for (a, b, c), y in zip(X, Y, strict=True)]
    path.write_text("\n".join(lines))
    return path


def call(*arguments):
    settings = ["--epsilon", "2", "--delta", "1e-4", "--batch-size", "60", "--quiet"]
    return CliRunner().invoke(main, ["train", *map(str, arguments), *settings])


def test_a_model_a_ledger_and_a_statement(table, tmp_path):
    out = tmp_path / "model.npz"
    done = call(table, "-o", out, "--target", "label", "--epochs", "5", "--json")
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert answer["private"]
    assert answer["epsilon"] <= 2
    assert answer["epsilon"] == ac.get_epsilon(0.2, answer["noise_multiplier"], 25, 1e-4)
    with np.load(out) as saved:
        assert saved["parameters"].shape == (4,)
        about = json.loads(str(saved["about"]))
    assert about["statement"] == answer["statement"]
    from accountant.ledger import Accountant

    ledger = Accountant.load(tmp_path / "model.ledger.json")
    assert len(ledger) == 25


def test_npz_and_text(tmp_path):
    data = tmp_path / "data.npz"
    np.savez(data, X=X, y=Y)
    done = call(
        data, "-o", tmp_path / "m.npz", "--model", "mlp", "--classes", 2, "--hidden", "4,3",
        "--steps", 3, "--optimizer", "dp-adam", "--float32", "--unit-rows",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "ε ≤ 2" in done.output or "ε ≤ 1.9" in done.output
    assert "add-or-remove" in done.output


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--steps", 3, "--epochs", 1], "at most one"),
        ([], "steps"),
        (["--steps", 3, "--model", "softmax"], "--classes"),
        (["--steps", 3, "--target", "nothing"], "--target"),
        (["--steps", 3, "--model", "mlp", "--classes", 2, "--hidden", "x"], "--hidden"),
    ],
)
def test_mistakes_are_one_line_and_spend_nothing(table, tmp_path, extra, message):
    done = call(table, "-o", tmp_path / "m.npz", "--target", "label", *extra)
    assert done.exit_code == 2
    assert message in done.output
    assert len(done.output.strip().splitlines()) == 1
    assert not (tmp_path / "m.ledger.json").exists()


def test_words_are_refused(tmp_path):
    path = tmp_path / "words.csv"
    path.write_text("a,b\n1,2\nx,3\n")
    done = call(path, "-o", tmp_path / "m.npz", "--steps", 3)
    assert done.exit_code == 2
    assert "record 2" in done.output


def test_a_seeded_model_says_so(table, tmp_path):
    out = tmp_path / "m.npz"
    done = call(table, "-o", out, "--target", "label", "--steps", 3, "--seed", 1)
    assert "NOT PRIVATE" in done.output


def test_a_resumed_run_is_charged_once_and_to_every_ledger_it_is_given(table, tmp_path):
    from accountant.ledger import Accountant

    place = ["--target", "label", "--steps", 4, "--checkpoint", tmp_path / "c"]
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    for ledger in (first, first, second):
        done = call(table, "-o", tmp_path / "m.npz", *place, "--ledger", ledger)
        assert done.exit_code == 0, done.output
    assert len(Accountant.load(first)) == 4
    # The parameters saved again are of the same releases; this ledger did not know of them.
    assert len(Accountant.load(second)) == 4
    (tmp_path / "c").unlink()
    assert call(table, "-o", tmp_path / "m.npz", *place, "--ledger", first).exit_code == 0
    assert len(Accountant.load(first)) == 8

"""The command: data and a target in; a model, a ledger and a statement out."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

import accountant as ac
from accountant._basics import files
from accountant._basics.display import text_up
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
    assert ledger.deltas == (1e-4,)


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


def weights(path):
    with np.load(path) as saved:
        return saved["parameters"], json.loads(str(saved["about"]))


@pytest.mark.parametrize("kind", ["csv", "npz", "parquet"])
def test_named_columns(table, tmp_path, kind):
    columns = {"a": X[:, 0], "label": Y, "b": X[:, 1], "c": X[:, 2]}
    data = table
    if kind == "npz":
        np.savez(data := tmp_path / "columns.npz", **columns)
    if kind == "parquet":
        pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pyarrow.table(columns), data := tmp_path / "data.parquet")
    done = call(data, "-o", tmp_path / "m.npz", "--target", "label", "--features", "c,a",
                "--steps", 2, "--seed", 1)  # fmt: skip
    assert done.exit_code == 0, done.output
    found, about = weights(tmp_path / "m.npz")
    assert about["features"] == ["c", "a"]
    np.savez(tmp_path / "plain.npz", X=X[:, [2, 0]], y=Y)
    call(tmp_path / "plain.npz", "-o", tmp_path / "same.npz", "--steps", 2, "--seed", 1)
    same, about = weights(tmp_path / "same.npz")
    assert about["features"] is None
    np.testing.assert_array_equal(found, same)


def bad_parquets(folder):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    tables = {
        "words": pyarrow.table({"a": ["x", "y"], "label": [0, 1]}),
        "gaps": pyarrow.table({"a": [1.0, None], "label": [0, 1]}),
        "one": pyarrow.table({"label": [0, 1]}),
    }
    for name, one in tables.items():
        parquet.write_table(one, folder / f"{name}.parquet")
        yield folder / f"{name}.parquet"
    (folder / "text.parquet").write_text("a,label\n1,2\n")
    yield folder / "text.parquet"


def test_bad_parquets_are_one_line(tmp_path):
    for path in bad_parquets(tmp_path):
        done = call(path, "-o", tmp_path / "m.npz", "--steps", 3)
        assert done.exit_code == 2, done.output
        assert len(done.output.strip().splitlines()) == 1


def test_without_its_reader_parquet_is_refused_by_its_extra(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "d.parquet").write_bytes(b"PAR1")
    done = call(tmp_path / "d.parquet", "-o", tmp_path / "m.npz", "--steps", 3)
    assert done.exit_code == 2
    assert "pip install 'dp-accountant[parquet]'" in done.output


def test_columns_and_arrays_are_not_mixed(tmp_path):
    np.savez(tmp_path / "d.npz", X=X, y=Y)
    done = call(tmp_path / "d.npz", "-o", tmp_path / "m.npz", "--steps", 3, "--features", "a")
    assert "--features needs columns" in done.output
    np.savez(tmp_path / "e.npz", a=X, b=Y)
    assert "holds ['a', 'b']" in call(tmp_path / "e.npz", "-o", tmp_path / "m.npz", "--steps",
                                      3).output  # fmt: skip


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--steps", 3, "--epochs", 1], "one of --steps and --epochs"),
        ([], "--steps"),
        (["--steps", 3, "--model", "softmax"], "--classes"),
        (["--steps", 3, "--target", "nothing"], "--target"),
        (["--steps", 3, "--target=--3"], "--target"),
        (["--steps", 3, "--features", "a,nothing"], "--features 'nothing'"),
        (["--steps", 3, "--features", "a,a"], "--features must be different"),
        (["--steps", 3, "--features", "a,label"], "--features must be different"),
        (["--steps", 3, "--features", ""], "--features must name"),
        (["--steps", 3, "--clipping-norm", 0], "--clipping-norm must"),
        (["--steps", 3, "--ledger", "no/such/l.json"], "'--ledger'"),
        (["--steps", 3, "--target", "9" * 5000], "--target"),
        (["--steps", 3, "--model", "mlp", "--classes", 2, "--hidden", "x"], "--hidden"),
    ],
)
def test_mistakes_are_one_line_and_spend_nothing(table, tmp_path, extra, message):
    done = call(table, "-o", tmp_path / "m.npz", "--target", "label", *extra)
    assert done.exit_code == 2
    assert message in done.output
    assert len(done.output.strip().splitlines()) == 1
    assert not (tmp_path / "m.ledger.json").exists()


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


def test_a_second_run_on_the_same_ledger_prints_the_epsilon_of_both(table, tmp_path):
    from accountant.ledger import Accountant

    out = tmp_path / "m.npz"
    arguments = (table, "-o", out, "--target", "label", "--steps", 5)
    first = json.loads(call(*arguments, "--json").stdout)
    second = json.loads(call(*arguments, "--json").stdout)
    spent = Accountant.load(tmp_path / "m.ledger.json").epsilon(1e-4)
    assert second["epsilon"] == spent > 1.2 * first["epsilon"]
    assert first["epsilon"] == first["run_epsilon"] == second["run_epsilon"] <= 2.0
    with np.load(out) as saved:
        about = json.loads(str(saved["about"]))
    assert about["epsilon"] == spent
    assert about["statement"] == second["statement"]
    text = call(*arguments).output
    spent = Accountant.load(tmp_path / "m.ledger.json").epsilon(1e-4)
    assert text.startswith(f"ε ≤ {text_up(spent)} at δ = 0.0001\n")
    assert f"ε = {text_up(spent)} and" in text


def test_no_ledger_is_named_that_was_not_written(table, tmp_path):
    out = tmp_path / "m.npz"
    for extra in (["--steps", 3, "--seed", 1], ["--steps", 3, "--seed", 1, "--json"]):
        done = call(table, "-o", out, "--target", "label", *extra)
        assert done.exit_code == 0, done.output
        assert "ledger.json" not in done.output
        assert not (tmp_path / "m.ledger.json").exists()
        assert "ε ≤" not in done.output


def bad_npz(path, how):
    np.savez(path, X=X, y=Y)
    content = path.read_bytes()
    if how == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif how == "bits":
        path.write_bytes(content[:200] + bytes(b ^ 0x55 for b in content[200:400]) + content[400:])
    elif how == "text":
        path.write_text("1,2\n3,4\n")
    elif how == "pickled":
        np.savez(path, X=np.array([{}], dtype=object), y=Y)
    elif how == "flat":
        np.savez(path, X=X[:, 0], y=Y)
    elif how == "number":
        np.savez(path, X=np.array(1.0), y=Y)
    elif how == "columns":
        np.savez(path, X=X, y=Y[:, None])
    elif how == "words":
        np.savez(path, X=np.array([["a"]]), y=Y)
    elif how == "array":
        with path.open("wb") as file:
            np.save(file, X)
    elif how == "empty":
        path.write_bytes(b"")


LONG = "1" * 200_000


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("0.5,x1,0\n1,2,0\n3,4,1\n", "first line"),
        ("0.5,,0\n1,2,0\n3,4,1\n", "first line"),
        ("?,?,?\n1,2,0\n3,4,1\n", "different"),
        ("a,b\n1,2,0\n3,4,1\n", "record 1"),
        ("1,2,0\n3,4\n", "record 2"),
        ("a,b,c\n", "no records"),
        ("", "empty"),
        (b"a,b\n\xff\xfe,2\n", "UTF-8"),
        ("a,b\n1,2\n".encode("utf-16"), "UTF-8"),
        (f"a,b\n1,{LONG}\n", "CSV"),
        (f'a,b\n1,"{LONG}\n', "CSV"),
        *[(how, "NPZ") for how in ("cut", "bits", "text", "pickled", "array", "empty")],
        ("words", "real numbers"),
        *[(how, "shape") for how in ("flat", "number", "columns")],
    ],
    ids=lambda value: repr(value)[:20],
)
def test_bad_data_are_refused_in_one_line(tmp_path, content, message):
    # A file of arrays where the content is a single word.
    npz = isinstance(content, str) and content.isalpha()
    path = tmp_path / ("data.npz" if npz else "data.csv")
    if npz:
        bad_npz(path, content)
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    done = call(path, "-o", tmp_path / "m.npz", "--steps", 3)
    assert done.exit_code == 2, done.output
    assert message in done.output
    assert len(done.output.strip().splitlines()) == 1
    assert len(done.output) < 300 + len(str(path))
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_a_mark_of_the_encoding_is_no_part_of_the_first_cell(tmp_path):
    from accountant.cli.table import read

    path = tmp_path / "data.csv"
    path.write_bytes(b"\xef\xbb\xbf1,2,0\n3,4,1\n")
    features, targets, _ = read(path, None)
    assert features.tolist() == [[1, 2], [3, 4]]
    assert targets.tolist() == [0, 1]
    path.write_bytes(b"\xef\xbb\xbflabel,b\n3,4\n")
    assert read(path, "label")[1].tolist() == [3]


def test_a_file_of_names_alone_is_a_data_set_where_the_number_of_records_is_a_secret(tmp_path):
    path = tmp_path / "data.csv"
    for content in ("a,b,label\n", "a,b,label\n1,2,0\n"):
        path.write_text(content)
        out = tmp_path / "m.npz"
        done = call(path, "-o", out, "--steps", 3, "--sampling-probability", 0.5)
        assert done.exit_code == 0, done.output


@pytest.mark.parametrize("link", [False, True])
def test_no_output_goes_over_the_data_the_ledger_or_the_checkpoint(table, tmp_path, link):
    from accountant.ledger import Accountant

    record = tmp_path / "book.json"
    book = Accountant()
    book.compose(ac.Gaussian(1.0))
    book.save(record)
    before = {file: file.read_bytes() for file in (record, table)}
    other = tmp_path / "other"
    if link:
        other.hardlink_to(record)
    output = other if link else record
    for arguments in (
        [table, "-o", output, "--ledger", record],
        [table, "-o", output, "--checkpoint", record],
        [table, "-o", table],
        [table, "-o", tmp_path / "m.npz", "--checkpoint", tmp_path / "m.npz"],
    ):
        done = call(*arguments, "--target", "label", "--steps", 3)
        assert done.exit_code == 2, done.output
        assert "must be different files" in done.output
    assert {file: file.read_bytes() for file in before} == before
    assert not (tmp_path / "m.npz").exists()


def test_an_archive_that_unpacks_to_more_than_a_gib_is_refused_unread(tmp_path, monkeypatch):
    path, out = tmp_path / "data.npz", tmp_path / "model.npz"
    np.savez_compressed(path, X=np.zeros((10_000, 100)), y=np.zeros(10_000))
    assert files.MOST_BYTES == 2**30
    monkeypatch.setattr(files, "MOST_BYTES", 8 * 1_010_000)  # less than with two headers
    monkeypatch.setattr(np, "load", lambda *_, **__: pytest.fail("it was unpacked"))
    done = call(path, "-o", out, "--epochs", "1")
    assert done.exit_code == 2
    assert "bytes unpacked, and at most 8080000 are read. Keep fewer records" in done.output
    assert not out.exists()


@pytest.mark.parametrize("name", ["data.csv", "data.npz", "data.parquet"])
def test_data_are_not_read_from_a_pipe(tmp_path, name):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    os.mkfifo(tmp_path / name)
    command = [sys.executable, "-m", "accountant", "train", str(tmp_path / name), "--epsilon", "2"]
    command += ["-o", str(tmp_path / "m.npz"), "--delta", "1e-4", "--batch-size", "6"]
    # In a process of its own: what hangs there is killed.
    made = subprocess.run(
        [*command, "--epochs", "1"], capture_output=True, text=True, timeout=120, check=False
    )
    assert made.returncode == 2
    assert "must be a regular file" in made.stderr

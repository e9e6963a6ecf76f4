"""accountant report and show: what files hold, and every bad file in one line."""

import json
import os
import subprocess
import sys

import pytest

import accountant as ac
from support.command_line import run


def dp_sgd(count=1000):
    ledger = ac.Accountant()
    ledger.step(noise_multiplier=1.1, sampling_probability=0.01, count=count, label="training")
    return ledger


def two_runs():
    ledger = dp_sgd(200)
    ledger.compose(ac.Gaussian(5.0), 2, label="histogram")
    return ledger


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "ledger.json"
    two_runs().save(path)
    return path


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("kind", ["html", "md", "json"])
def test_report_writes_what_the_name_says(saved, tmp_path, kind):
    out = tmp_path / f"report.{kind}"
    done = run("report", saved, "-o", out, "--unit", "one patient", "--delta", "1e-6")
    assert done.exit_code == 0, done.output
    text = out.read_text()
    assert "one patient" in text
    again = run("report", "-", "--format", kind, "--unit", "one patient", "--delta", "1e-6",
                input=saved.read_text())  # fmt: skip
    assert again.stdout == text
    assert "sha256:" in text
    told = run("report", saved, "-o", out, "--json")
    assert json.loads(told.stdout)["epsilon"] == two_runs().epsilon(1e-5)


def test_show(saved):
    answer = json.loads(run("show", saved, "--json").stdout)
    assert answer["epsilons"][0]["epsilon"] == two_runs().epsilon(1e-5)
    assert answer["releases"] == 202
    assert answer["relation"] == "add-or-remove"
    assert [row["labels"] for row in answer["mechanisms"]] == [["training"], ["histogram"]]
    text = run("show", saved).output
    assert "Gaussian(5.0)" in text
    assert "histogram" in text
    assert run("show", "-", input=saved.read_text()).output == text


def damaged(text):
    document = json.loads(text)
    yield ""
    yield "{"
    yield "[]"
    yield "null"
    yield text[:-40]
    yield text.replace("0.01", "0.02")
    yield text.replace("add", "sub")
    yield "\x00" * 100
    for key in document:
        yield json.dumps({name: value for name, value in document.items() if name != key})
    for key in document["ledger"]:
        body = {name: value for name, value in document["ledger"].items() if name != key}
        yield json.dumps(document | {"ledger": body})


@pytest.mark.parametrize("command", ["show", "report"])
def test_bad_ledgers_are_one_line_and_no_traceback(saved, command, tmp_path):
    bad = tmp_path / "bad.json"
    texts = [text for text in damaged(saved.read_text()) if text != saved.read_text()]
    assert len(texts) > 12
    for text in texts:
        bad.write_text(text)
        for done in (run(command, bad), run(command, "-", input=text)):
            assert done.exit_code == 2, text
            assert isinstance(done.exception, SystemExit)
            assert done.stdout == ""
            assert done.stderr.startswith("accountant: ")
            assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["report", "no/such.json"], "does not exist"),
        (["report", "."], "is a directory"),
        (["report", "LEDGER", "-o", "no/such/folder/x.html"], "No such file"),
        (["report", "LEDGER", "-o", "x.docx"], ".html, .md, .json or .yaml"),
        (["report", "LEDGER", "--delta", "1"], "delta"),
        (["report", "LEDGER", "--delta", "nan"], "delta"),
        (["report", "LEDGER", "--records", "0"], "records"),
        (["report", "LEDGER", "--about", "LEDGER"], "different files"),
        (["report", "LEDGER", "--documentation", "x"], "https://"),
        (["report", "LEDGER", "--format", "registry"], "basic.data_curators"),
        (["show", "LEDGER", "--delta", "2"], "delta"),
    ],
)
def test_bad_requests_are_one_line(saved, arguments, says):
    done = run(*(saved if each == "LEDGER" else each for each in arguments))
    assert done.exit_code == 2
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_binary_file_is_refused(tmp_path):
    path = tmp_path / "ledger.json"
    path.write_bytes(b"\xff\xfe\x00")
    done = run("report", path)
    assert (done.exit_code, "no UTF-8" in done.stderr) == (2, True)


def with_budget():
    ledger = ac.Accountant(ac.Budget(9.0, 1e-7))
    ledger.merge(two_runs())
    ledger.note_delta(1e-6)
    return ledger


@pytest.mark.parametrize(
    ("make", "deltas"),
    [(two_runs, [1e-5]), (with_budget, [1e-7, 1e-6])],
    ids=["none recorded", "a budget's and a run's"],
)
def test_show_and_report_answer_at_the_deltas_of_the_ledger(make, deltas, tmp_path):
    path = tmp_path / "ledger.json"
    ledger = make()
    ledger.save(path)
    rows = json.loads(run("show", path, "--json").stdout)["epsilons"]
    assert [row["delta"] for row in rows] == deltas
    assert [row["epsilon"] for row in rows] == [ledger.epsilon(delta) for delta in deltas]
    assumed = "δ = 1e-05 is assumed" in run("show", path).output
    assert assumed == (not ledger.deltas)
    told = run("report", path, "-o", tmp_path / "r.md", "--json")
    assert json.loads(told.stdout)["delta"] == deltas[0]
    assert json.loads(told.stdout)["epsilon"] == ledger.epsilon(deltas[0])
    other = json.loads(run("show", path, "--delta", "1e-4", "--json").stdout)["epsilons"]
    assert [row["delta"] for row in other] == [1e-4]


def test_a_report_does_not_go_over_its_ledger(saved, tmp_path):
    before = saved.read_bytes()
    link = tmp_path / "link.json"
    link.symlink_to(saved)
    for output in (saved, link):
        done = run("report", saved, "-o", output)
        assert done.exit_code == 2, done.output
        assert "must be different files" in done.output
    assert saved.read_bytes() == before


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("kind", ["pipe", "device"])
@pytest.mark.parametrize(
    "command",
    ["show", "report", "compose", "certify --delta 1e-5 --ledger", "report LEDGER --about"],
)
def test_pipes_and_devices_are_refused_at_once(saved, tmp_path, command, kind):
    name = "pipe.json"
    (tmp_path / name).symlink_to("/dev/zero") if kind == "device" else os.mkfifo(tmp_path / name)
    words = [str(saved) if word == "LEDGER" else word for word in command.split()]
    # In a process of its own: what hangs there is killed.
    made = subprocess.run(
        [sys.executable, "-m", "accountant", *words, str(tmp_path / name)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert made.returncode == 2
    assert "must be a regular file" in made.stderr
    assert "Traceback" not in made.stderr

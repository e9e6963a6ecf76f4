"""The command line teaches: examples that run, completion that completes, documented exit codes."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import accountant as ac
from accountant.cli import main
from support.command_line import run

PIPELINE = {
    "delta": [1e-5, 1e-6],
    "release": [
        {"mechanism": "Gaussian", "parameters": {"noise_multiplier": 1.1}, "count": 100,
         "sampling_probability": 0.01, "label": "[bold]training[/bold]"},
        {"mechanism": "Laplace", "parameters": {"scale": 2.0}},
    ],
}  # fmt: skip
TOML = """
delta = 1e-5
[[release]]
mechanism = "Laplace"
parameters = { scale = 2.0 }
"""


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """Change to a folder with every file that the examples name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".config" / "fish" / "completions").mkdir(parents=True)
    Path("pipeline.json").write_text(json.dumps(PIPELINE))
    Path("pipeline.toml").write_text(TOML)
    Path("deployment.toml").write_text("unit = 'one visit'\n")
    rng = np.random.default_rng(0)
    rows = [f"{x},{int(x > 0)}" for x in rng.normal(size=300)]
    Path("data.csv").write_text("\n".join(["x,label", *rows]))
    ledger = ac.Accountant()
    ledger.step(noise_multiplier=1.1, sampling_probability=0.01, count=100, label="training")
    ledger.save("ledger.json")
    return tmp_path


EXAMPLES = [
    # An audit takes minutes; tests/cli/test_audit.py runs smaller ones.
    pytest.param(example, marks=[pytest.mark.slow] * example.startswith("accountant audit"))
    for command in (main, *main.commands.values())
    # Those run one after the other: tests/cli/test_stores.py, test_ledger_files.py
    if command.name not in ("store", "ledger")
    for example in getattr(command, "examples", ())
]


@pytest.mark.long(keep=15)
@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_of_the_help_runs(example, desk):
    if "--plot" in example:
        pytest.importorskip("matplotlib")
    words = shlex.split(example)
    assert words.pop(0) == "accountant"
    given, kept = None, []
    while words:
        word = words.pop(0)
        if word == "<":
            given = Path(words.pop(0)).read_text()
        elif word in (">", ">>"):
            words.pop(0)
        else:
            kept.append(word)
    done = run(*kept, input=given)
    assert done.exit_code == 0, done.output


def test_standard_input(desk):
    for text in (TOML, json.dumps(PIPELINE)):
        done = run("compose", "-", "--json", input=text)
        assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert answer == json.loads(run("compose", "pipeline.json", "--json").stdout)
    assert [row["delta"] for row in answer["epsilons"]] == [1e-5, 1e-6]


@pytest.mark.parametrize("given", [b"\xff\xfe", b"", b"{", b"[" * 100_000, b"delta = 1"])
def test_nonsense_on_standard_input_is_one_line(given):
    done = run("compose", "-", input=given)
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1
    assert "standard input" in done.stderr


def test_markup_in_labels_is_shown_as_it_is(desk):
    assert "[bold]training[/bold]" in run("compose", "pipeline.json").output.replace("\n", "")


def test_escape_sequences_in_labels_never_reach_the_terminal(desk):
    text = json.dumps(PIPELINE).replace("[/bold]", "\\u001b[31m\\u202e")
    done = run("compose", "-", input=text)
    assert done.exit_code == 0
    assert not {"\x1b", "\u202e"} & set(done.output)
    done = run("compose", "-", input=text.replace("Laplace", "\\u001b[31m"))
    assert done.exit_code == 2
    assert "\x1b" not in done.stderr


def test_tables_never_cut_a_number(desk):
    done = run("compose", "pipeline.json", env={"COLUMNS": "20"})
    answer = json.loads(run("compose", "pipeline.json", "--json").stdout)
    from accountant._basics.display import text_up

    for row in answer["epsilons"]:
        assert text_up(row["epsilon"]) in done.output


SHELLS = ("bash", "zsh", "fish")


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_scripts(shell):
    done = run("completion", shell)
    assert done.exit_code == 0
    assert f"_ACCOUNTANT_COMPLETE={shell}_complete" in done.output
    assert json.loads(run("completion", shell, "--json").stdout)["script"] in done.output
    assert run("completion", env={"SHELL": f"/usr/bin/{shell}"}).output == done.output


def test_exit_codes(desk, monkeypatch):
    from accountant import quick
    from accountant.errors import BudgetExceeded, PrecisionError

    arguments = ["epsilon", "--q", ".1", "--steps", "1", "--sigma", "1", "--delta", "1e-5"]
    cases = [
        (BudgetExceeded("no"), 3),
        (PrecisionError("no"), 4),
        (MemoryError(), 4),
        (PermissionError(13, "Permission denied", "x"), 2),
        (KeyboardInterrupt(), 130),
    ]
    for error, code in cases:

        def raises(*_, error=error, **__):
            raise error

        with monkeypatch.context() as patched:
            patched.setattr(quick, "get_epsilon", raises)
            done = run(*arguments)
        assert done.exit_code == code
        # click answers ^C with an empty line before ours.
        assert done.stderr.strip().startswith("accountant: ")
        assert done.stderr.strip().count("\n") == 0


def test_progress_is_shown_on_a_terminal_only(monkeypatch, capsys):
    from accountant.cli import output

    for terminal in (False, True):
        monkeypatch.setattr(output.sys.stderr, "isatty", lambda terminal=terminal: terminal)
        monkeypatch.setenv("FORCE_COLOR" if terminal else "NO_COLOR", "1")
        with output.progress("composing", 3) as advance:
            for _ in range(3):
                advance()
        captured = capsys.readouterr()
        assert captured.out == ""
        assert bool(captured.err) is terminal


@pytest.mark.long
def test_a_reader_that_stops_reading_is_no_error():
    command = f"{sys.executable} -m accountant curve --q .1 --steps 5000 --sigma 9 --delta 1e-5"
    done = subprocess.run(
        ["bash", "-c", f"{command} --points 5000 | head -1; exit ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")

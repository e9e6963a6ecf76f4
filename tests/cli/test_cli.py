"""The command line: safe rounding, both ways to say how records are used, one-line complaints."""

import json
import math
import re
import subprocess
import sys
from fractions import Fraction

import pytest
from click.testing import CliRunner

import accountant as ac
from accountant.cli import main

RUN = ["--q", "0.01", "--steps", "1000", "--sigma", "1.1", "--delta", "1e-5"]


def run(*arguments, code=0):
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return result.stdout if code == 0 else result.stderr


def ask(*arguments):
    return json.loads(run(*arguments, "--json"))


def number_after(sign, text):
    return Fraction(re.search(rf"{sign} ([-+.0-9e]+)", text)[1])


def test_epsilon():
    answer = ask("epsilon", *RUN)
    assert answer["epsilon"] == ac.get_epsilon(0.01, 1.1, 1000, 1e-5)
    assert answer["epsilon_lower"] == ac.epsilon_bounds(0.01, 1.1, 1000, 1e-5).lower
    assert answer["relation"] == "add-or-remove"
    text = run("epsilon", *RUN)
    shown = number_after("ε ≤", text)
    assert answer["epsilon"] <= shown <= Fraction(answer["epsilon"]) * (1 + Fraction(1, 10**5))
    assert number_after("ε ≥", text) <= answer["epsilon_lower"]
    assert "add-or-remove" in text


def test_epsilon_by_renyi():
    answer = ask("epsilon", *RUN, "--method", "rdp")
    assert answer["epsilon"] == ac.get_epsilon(0.01, 1.1, 1000, 1e-5, method="rdp")
    assert "epsilon_lower" not in answer
    assert "ε ≥" not in run("epsilon", *RUN, "--method", "rdp")


def test_the_records_of_a_user():
    user = ["--user-records", 4]
    answer = ask("epsilon", *RUN, *user)
    assert answer["user_records"] == 4
    assert answer["epsilon"] == ac.get_epsilon(0.01, 1.1, 1000, 1e-5, user_records=4)
    assert answer["epsilon"] > answer["epsilon_lower"] > ask("epsilon", *RUN)["epsilon"]
    assert "add-or-remove of a user's records, at most 4" in run("epsilon", *RUN, *user)
    arguments = [*RUN[:-2], *user, "--epsilon", 2]
    assert ask("delta", *arguments)["delta"] == ac.get_delta(0.01, 1.1, 1000, 2.0, user_records=4)
    target = ["--epsilon", 6, "--delta", "1e-5", *user]
    sigma = ask("sigma", *RUN[:4], *target)["sigma"]
    assert sigma == ac.calibrate_sigma(6.0, 1e-5, 0.01, 1000, user_records=4)
    assert ask("steps", *RUN[:2], "--sigma", repr(sigma), *target)["steps"] == 1000
    assert ask("q", *RUN[2:4], "--sigma", repr(sigma), *target)["q"] >= 0.01
    curve = ask("curve", *RUN, *user, "--points", 2)
    assert curve["curve"][-1]["epsilon"] == answer["epsilon"]
    assert "at most 4" in run("curve", *RUN, *user, "--points", 2)
    assert "user-records" in run("epsilon", *RUN, "--user-records", 0, code=2)


def test_delta():
    arguments = ["delta", *RUN[:-2], "--epsilon", "2"]
    answer = ask(*arguments)
    assert answer["delta"] == ac.get_delta(0.01, 1.1, 1000, 2.0)
    text = run(*arguments)
    assert number_after("δ ≤", text) >= answer["delta"]
    assert number_after("δ ≥", text) <= answer["delta_lower"]


def test_sigma_is_rounded_up():
    arguments = ["sigma", "--q", "0.01", "--steps", "1000", "--epsilon", "3", "--delta", "1e-5"]
    answer = ask(*arguments)["sigma"]
    assert answer == ac.calibrate_sigma(3.0, 1e-5, 0.01, 1000)
    shown = number_after("σ =", run(*arguments))
    assert shown >= answer
    assert ac.get_epsilon(0.01, float(shown), 1000, 1e-5) <= 3.0


def test_steps():
    arguments = ["steps", "--q", "0.01", "--sigma", "1.1", "--epsilon", "3", "--delta", "1e-5"]
    answer = ask(*arguments)["steps"]
    assert answer == ac.calibrate_steps(3.0, 1e-5, q=0.01, sigma=1.1)
    assert f"steps = {answer}" in run(*arguments)


def test_q_is_rounded_down():
    arguments = ["q", "--steps", "1000", "--sigma", "1.1", "--epsilon", "3", "--delta", "1e-5"]
    arguments += ["--dataset-size", "60000"]
    answer = ask(*arguments)
    assert answer["q"] == ac.calibrate_q(3.0, 1e-5, sigma=1.1, steps=1000)
    assert answer["batch_size"] <= Fraction(answer["q"]) * 60000 < answer["batch_size"] + 1
    text = run(*arguments)
    assert number_after("q =", text) <= answer["q"]
    assert f"batch size {answer['batch_size']} of 60000" in text


@pytest.mark.parametrize(
    ("batch", "size", "epochs", "steps"),
    [
        (256, 60000, "60", 14063),
        (1, 3, "1", 3),
        (10, 100, "0.1", 1),
        (3, 30, "0.1", 1),  # in floats 0.1 * 30 / 3 exceeds 1, and its ceiling would be 2
        (7, 7, "2.5", 3),
        (3, 10, 0, 0),
    ],
)
def test_batches_and_epochs(batch, size, epochs, steps):
    sizes = ["--batch-size", batch, "--dataset-size", size, "--epochs", epochs]
    answer = ask("epsilon", *sizes, "--sigma", "5", "--delta", "1e-5")
    assert answer["steps"] == steps
    # q is the quotient or the next double above it, never below.
    assert Fraction(answer["q"]) >= Fraction(batch, size)
    assert Fraction(math.nextafter(answer["q"], 0.0)) < Fraction(batch, size)


def test_a_quotient_for_q():
    answer = ask("epsilon", "--q", "1/3", "--epochs", "1", "--sigma", "5", "--delta", "1e-5")
    assert answer["steps"] == 3
    assert Fraction(answer["q"]) >= Fraction(1, 3)


@pytest.mark.long
def test_curve(tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "curve.png"
    answer = ask("curve", *RUN, "--plot", picture, "--points", 4)
    assert [row["steps"] for row in answer["curve"]] == [250, 500, 750, 1000]
    for row in answer["curve"]:
        assert row["epsilon"] == ac.get_epsilon(0.01, 1.1, row["steps"], 1e-5)
    assert picture.read_bytes().startswith(b"\x89PNG")
    text = run("curve", *RUN, "--points", 4, "--plot", tmp_path / "curve.pdf")
    assert all(word in text for word in ("steps", "epochs", "ε ≤", "750", "saved"))
    assert (tmp_path / "curve.pdf").read_bytes().startswith(b"%PDF")


def test_curve_of_few_steps():
    answer = ask("curve", "--q", "0.1", "--steps", 3, "--sigma", 2, "--delta", "1e-5")
    assert [row["steps"] for row in answer["curve"]] == [1, 2, 3]


def test_curve_without_matplotlib(monkeypatch, tmp_path):
    for name in [name for name in sys.modules if name.startswith("matplotlib")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    message = run("curve", *RUN, "--plot", tmp_path / "x.png", code=2)
    assert "pip install 'dp-accountant[plot]'" in message


def test_infinity_in_json_is_a_string():
    answer = ask("epsilon", "--q", "1", "--steps", "1", "--sigma", "1", "--delta", "0")
    assert answer["epsilon"] == "inf"
    arguments = ["--q", "1", "--steps", "2", "--sigma", "1", "--delta", "0"]
    assert [row["epsilon"] for row in ask("curve", *arguments)["curve"]] == ["inf", "inf"]


COMPLAINTS = [
    (["bogus"], "No such command"),
    (["epsilon", "--bogus"], "No such option"),
    (["epsilon", *RUN[2:]], "--batch-size and --dataset-size, or --q"),
    (["epsilon", *RUN[:2], *RUN[4:]], "--steps or --epochs"),
    (["epsilon", *RUN[:4]], "Missing option"),
    (["epsilon", *RUN, "--q", "1.5"], "--q must be a sampling probability in [0, 1]; got 3/2"),
    (["epsilon", *RUN, "--q", "nan"], "not a number"),
    (["epsilon", *RUN, "--q", "1/0"], "not a number"),
    (["epsilon", *RUN, "--q", "1e999999999"], "not a number"),
    (["epsilon", *RUN, "--steps", "10.0"], "not a valid integer"),
    (["epsilon", *RUN, "--steps", "-1"], "steps must be an integer in [0, 2**53]; got -1"),
    (["epsilon", *RUN, "--sigma", "0"], "sigma must be a noise multiplier > 0; got 0.0"),
    (["epsilon", *RUN, "--sigma", "nan"], "got nan"),
    (["epsilon", *RUN, "--delta", "1"], "delta must be a probability in [0, 1); got 1.0"),
    (["epsilon", *RUN, "--epochs", "3"], "not both"),
    (["epsilon", *RUN, "--batch-size", "3"], "not both"),
    (["epsilon", *RUN[2:], "--batch-size", "3"], "--batch-size needs --dataset-size"),
    (["epsilon", *RUN[2:], "--batch-size", "3", "--dataset-size", "2"], "at most --dataset-size"),
    (["epsilon", *RUN[4:], "--epochs", "2"], "--epochs needs"),
    (["epsilon", *RUN[:2], *RUN[4:], "--epochs", "-2"], "--epochs must be >= 0"),
    (
        ["sigma", "--q", "0", "--steps", "9", "--epsilon", "1", "--delta", ".1"],
        "no smallest answer",
    ),
    (["curve", *RUN, "--plot", "curve.bogus"], "not supported"),
    (["curve", *RUN, "--plot", "no/such/folder/x.png"], "No such file"),
]


@pytest.mark.parametrize(("arguments", "says"), COMPLAINTS)
def test_complaints_are_one_line(arguments, says):
    if "--plot" in arguments:
        pytest.importorskip("matplotlib")
    message = run(*arguments, code=2)
    assert message.startswith("accountant: ")
    assert says in message
    assert message.count("\n") == 1


def _commands(group, *before):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, *before, name)
        else:
            yield (*before, name)


def test_help_and_version():
    assert "add-or-remove" in run("--help")
    assert ac.__version__ in run("--version")
    for words in _commands(main):
        if words == ("store", "export"):  # a ledger is a JSON document anyway
            continue
        assert "--json" in run(*words, "--help"), words
    assert "Usage" in run(code=2)


def test_the_installed_script():
    command = [sys.executable, "-c", "from accountant.cli import main; main()"]
    done = subprocess.run(
        [*command, "epsilon", *RUN, "--json"], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout)["epsilon"] == ac.get_epsilon(0.01, 1.1, 1000, 1e-5)
    done = subprocess.run(
        [*command, "epsilon", *RUN, "--sigma", "-1"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr


def test_an_infinite_epsilon_is_no_answer():
    for method in ("exact", "rdp"):
        said = run(
            *("epsilon", "--q", ".01", "--sigma", "1e-300", "--steps", "10", "--delta", "1e-5"),
            *("--method", method),
            code=4,
        )
        assert "sigma = 1e-300" in said
        assert "≤" not in said

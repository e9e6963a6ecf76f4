"""accountant ledger: what the examples say, plans and kinds in a file, refusals."""

import json
import shlex

import pytest

import accountant as ac
from accountant.cli import main
from accountant.ledger import Accountant, Budget
from support.command_line import answered, run

STEP = ("--mechanism", "Gaussian", "-p", "noise_multiplier=1", "--q", 0.001)
BUDGET = ("--epsilon", 1, "--delta", 1e-6)


@pytest.fixture(autouse=True)
def desk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_examples_run_one_after_the_other():
    group = main.commands["ledger"]
    for example in group.examples:
        done = run(*shlex.split(example)[1:])
        assert done.exit_code == 0, (example, done.output)
    assert len(Accountant.load("budget.json")) == 500
    assert len(Accountant.load("ladder.json").budget.kinds) > 10
    assert run(*shlex.split(group.commands["init"].examples[0])[1:]).exit_code == 0


def test_a_file_is_made_once_planned_and_charged():
    made = answered("ledger", "init", "a.json", *BUDGET)
    assert answered("ledger", "init", "a.json", *BUDGET) == made
    other = run("ledger", "init", "a.json", "--epsilon", 2, "--delta", 1e-6)
    assert other.exit_code == 2
    found = answered("ledger", "affordable", "a.json", *STEP)
    assert found["filter"] == "moments"
    assert found["affordable"] == found["by_filter"]["moments"] == 25105
    assert found["by_filter"]["plan"] == 31117
    assert "31117" in run("ledger", "affordable", "a.json", *STEP).output
    assert answered("ledger", "plan", "a.json", *STEP, "--label", "run") == {"planned": 31117}
    charge = ("ledger", "charge", "a.json", *STEP, "--count")
    assert answered(*charge, 31000) == {"charged": 31000, "releases": 31000}
    refused = run(*charge, 118, "--json")
    assert refused.exit_code == 3
    assert "refused" in json.loads(refused.stdout)
    assert answered(*charge, 117)["releases"] == 31117
    late = run("ledger", "plan", "a.json", *STEP)
    assert late.exit_code == 2
    book = Accountant.load("a.json")
    assert book.epsilon(1e-6) <= 1.0
    assert book.planned[0].label == "run"


def test_a_plan_that_does_not_fit_changes_nothing():
    run("ledger", "init", "a.json", *BUDGET)
    before = Accountant.load("a.json").to_json()
    refused = run("ledger", "plan", "a.json", *STEP, "--count", 31118)
    assert refused.exit_code == 3
    assert "31117" in refused.output
    assert Accountant.load("a.json").to_json() == before


def test_kinds_of_a_file_are_those_of_a_budget():
    kinds = {"delta": 1e-5, "release": [{"mechanism": "Gaussian", "parameters": {
        "noise_multiplier": 50.0}}, {"mechanism": "Gaussian", "parameters": {
            "noise_multiplier": 80.0}}]}  # fmt: skip
    with open("kinds.json", "w") as file:
        json.dump(kinds, file)
    run("ledger", "init", "a.json", *BUDGET, "--kinds", "kinds.json")
    wanted = Budget(1.0, 1e-6, "kinds", kinds=[ac.Gaussian(50.0), ac.Gaussian(80.0)])
    book = Accountant.load("a.json")
    assert book.budget == wanted
    asked = ("--mechanism", "Gaussian", "-p", "noise_multiplier=60")
    found = answered("ledger", "affordable", "a.json", *asked)
    assert found["affordable"] == book.affordable(ac.Gaussian(60.0)) > 50


def test_files_that_do_not_serve_are_refused():
    Accountant().save("none.json")
    assert run("ledger", "affordable", "none.json", *STEP).exit_code == 2
    assert run("ledger", "charge", "absent.json", *STEP).exit_code == 2
    assert run("ledger", "init", "b.json", "--delta", 1e-6).exit_code == 2
    assert run("ledger", "init", "b.json", "--rho", 1, "--epsilon", 1).exit_code == 2
    assert run("ledger", "init", "b.json", *BUDGET, "--q", 0.1).exit_code == 2


def test_pure_budgets_and_those_of_rho_and_mu():
    tenth = ("--mechanism", "PureDP", "-p", "epsilon=.1", "--count", 10)
    assert "Budget(1.0)" in run("ledger", "init", "pure.json", "--epsilon", 1).output
    assert run("ledger", "charge", "pure.json", *tenth).exit_code == 0
    refused = run("ledger", "charge", "pure.json", "--mechanism", "PureDP", "-p", "epsilon=1e-9")
    assert refused.exit_code == 3
    assert "ε would be 1.000000001" in refused.output
    assert "Budget(1.0)" in run("show", "pure.json").output
    assert "Budget.rho(0.5)" in run("ledger", "init", "rho.json", "--rho", 0.5).output
    assert "Budget.mu(0.5)" in run("ledger", "init", "mu.json", "--mu", 0.5).output


def test_affordable_says_the_count_the_filter_and_what_to_choose():
    run("ledger", "init", "a.json", *BUDGET)
    told = run("ledger", "affordable", "a.json", *STEP).output.splitlines()
    assert told[0] == "25105 more fit, by the filter 'moments' of Budget(1.0, 1e-06)"
    assert told[-1].startswith("Plan 31117 before the first release")
    noise = ("--mechanism", "Gaussian", "-p", "noise_multiplier=40")
    run("ledger", "charge", "a.json", *noise)
    assert (
        "The filter 'gaussian' would allow most"
        in run("ledger", "affordable", "a.json", *noise).output
    )
    run("ledger", "init", "pure.json", "--epsilon", 1)
    told = run(
        "ledger", "affordable", "pure.json", "--mechanism", "PureDP", "-p", "epsilon=.3"
    ).output
    assert told.startswith("3 more fit, by the filter 'pure'")
    assert told.endswith("No other filter allows more.\n")


def test_mechanisms_and_numbers_are_written_as_people_write_them():
    run("ledger", "init", "a.json", *BUDGET)
    for number in (".3e2", "30.", "3e1", "inf"):
        asked = ("--mechanism", "Gaussian", "-p", f"noise_multiplier={number}", "--q", 0.01)
        assert run("ledger", "charge", "a.json", *asked).exit_code == 0, number
    wrong = run("ledger", "charge", "a.json", "--mechanism", "gausian", "-p", "noise_multiplier=1")
    assert wrong.exit_code == 2
    assert "did you mean Gaussian" in wrong.output

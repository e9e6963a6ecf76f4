"""accountant store: what the examples say, refusals with exit code 3, JSON for programs."""

import json
import os
import shlex

import pytest

import accountant as ac
from accountant import store
from accountant.cli import main
from accountant.ledger import Accountant, Budget
from support.command_line import answered, run

URL = "sqlite:///budget.db"
ONE = "acme/visits/2026-01"
NOISE = ("--mechanism", "Gaussian", "-p", "noise_multiplier=40")


@pytest.fixture
def desk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def made(desk):
    assert run("store", "init", URL).exit_code == 0
    command = ("store", "blocks", URL, ONE, "acme/visits/2026-02")
    assert answered(*command, "--epsilon", 1, "--delta", 1e-6)["made"] == 2
    return desk


@pytest.mark.long
def test_the_examples_run_one_after_the_other(desk):
    group = main.commands["store"]
    for example in group.examples:
        done = run(*shlex.split(example)[1:])
        assert done.exit_code == 0, (example, done.output)
    assert len(Accountant.load("block.json")) == 421
    assert run("report", f"{URL}#{ONE}", "-o", "report.html").exit_code == 0
    assert "421" in (desk / "report.html").read_text()
    for command in group.commands.values():
        for example in getattr(command, "examples", ()):
            assert run(*shlex.split(example)[1:]).exit_code == 0


def test_a_refusal_has_exit_code_3_and_says_what_is_left(made):
    done = run("store", "charge", URL, "acme/visits/*", "--mechanism", "Gaussian", "--json",
               "-p", "noise_multiplier=0.5", "--count", 2)  # fmt: skip
    assert done.exit_code == 3
    refusal = json.loads(done.stdout)
    assert refusal["block"] == ONE
    assert refusal["remaining"]["fraction"] == 1.0
    assert refusal["asked"] == [{"mechanism": "Gaussian(0.5)", "count": 2}]
    assert "2 x Gaussian(0.5)" in done.stderr
    assert ONE in done.stderr


def test_charges_and_what_is_left(made):
    first = answered("store", "charge", URL, ONE, *NOISE, "--key", "k", "--label", "panel")
    again = answered("store", "charge", URL, ONE, *NOISE, "--key", "k", "--label", "panel")
    assert (first["repeated"], again["repeated"]) == (False, True)
    assert first["row"] == again["row"]
    held = answered("store", "reserve", URL, ONE, *NOISE, "--q", 0.01, "--count", 5, "--lease", 60)
    one, two = answered("store", "show", URL)["blocks"]
    assert (one["releases"], one["reserved"], two["releases"]) == (6, 5, 0)
    assert 0.9 < one["left"] < two["left"] == 1.0
    answered("store", "abort", URL, held["key"])
    (one,) = answered("store", "show", URL, ONE)["blocks"]
    assert one["mechanisms"] == [{"mechanism": "Gaussian(40.0)", "count": 1}]
    assert one["epsilons"][0]["epsilon"] == ac.Gaussian(40.0).epsilon(1e-6)
    assert answered("store", "expire", URL)["expired"] == []
    assert answered("show", f"{URL}#{ONE}")["releases"] == 1
    assert "acme/visits/2026-02" in run("store", "blocks", URL).output


def test_what_is_left_of_a_plan(made):
    with store.open(URL) as shared:
        most = shared.plan(ONE, ac.PoissonSampled(ac.Gaussian(1.0), 0.001))
        shared.charge(ONE, ac.PoissonSampled(ac.Gaussian(1.0), 0.001), most)
        left = shared.remaining(ONE).fraction
    (one,) = answered("store", "show", URL, ONE)["blocks"]
    assert one["left"] == left
    assert one["releases"] == most


def test_verify_and_its_head(made):
    head = answered("store", "verify", URL)["head"]
    run("store", "charge", URL, ONE, *NOISE)
    found = answered("store", "verify", URL, "--head", head)
    assert found["passed"]
    assert found["head"] != head
    other = f"1:{'0' * 64}"
    done = run("store", "verify", URL, "--head", other)
    assert done.exit_code == 1
    assert "1 faults" in done.output
    assert "is another one" in done.output


def test_a_ledger_goes_in_and_out(made):
    ledger = Accountant(Budget(2.0, 1e-5))
    ledger.compose(ac.Laplace(3.0), 2, "words")
    ledger.save("in.json")
    assert answered("store", "import", URL, "acme/old/all", "in.json")["releases"] == 2
    assert Accountant.from_json(run("store", "export", URL, "acme/old/all").output).counts
    assert run("store", "export", URL, "acme/old/all", "-o", "out.json").exit_code == 0
    assert Accountant.load("out.json").to_json() == ledger.to_json()


def test_a_secret_is_no_pipe_and_not_without_end(desk):
    os.mkfifo("pipe")
    for place in ("pipe", "/dev/zero"):
        done = run("store", "init", URL, "--secret-file", place)
        assert done.exit_code == 2
        assert "regular file" in done.output


def test_a_secret_comes_from_a_file(desk, monkeypatch):
    (desk / "secret").write_bytes(b"0123456789abcdef")
    assert run("store", "init", URL, "--secret-file", "secret").exit_code == 0
    done = run("store", "show", URL)
    assert done.exit_code == 2
    assert "needs its secret" in done.output
    monkeypatch.setenv("ACCOUNTANT_SECRET_FILE", "secret")
    assert run("store", "blocks", URL, ONE, "--epsilon", 1, "--delta", 1e-6).exit_code == 0
    assert run("show", f"{URL}#{ONE}").exit_code == 0


@pytest.mark.parametrize(
    "words",
    [
        f"store show {URL}x",
        "store show mysql://x",
        f"store charge {URL} acme/visits/none {' '.join(NOISE)}",
        f"store charge {URL} {ONE} --mechanism Gaussian",
        f"store charge {URL} {ONE} --mechanism Gaussian -p noise_multiplier",
        f"store charge {URL} {ONE} --mechanism Gaussian -p noise_multiplier=x",
        f"store charge {URL} {ONE} --mechanism Nothing -p x=1",
        f"store commit {URL} nothing",
        f"store blocks {URL} acme/new/1",
        f"store verify {URL} --head 3",
        f"show {URL}",
        f"report {URL}#acme/none/1",
    ],
)
def test_what_is_wrong_is_one_line(made, words):
    done = run(*shlex.split(words))
    assert done.exit_code == 2
    assert done.stderr.startswith("accountant: ")
    assert done.stderr.count("\n") == 1


DP_SGD = ("--mechanism", "Gaussian", "-p", "noise_multiplier=1", "--q", 0.001)


def test_a_plan_is_made_before_the_first_release(made):
    assert answered("store", "plan", URL, ONE, *DP_SGD)["planned"] == 31_117
    done = run("store", "plan", URL, ONE, *DP_SGD, "--count", 1, "--json")
    assert done.exit_code == 3
    assert json.loads(done.stdout)["block"] == ONE
    answered("store", "charge", URL, ONE, *DP_SGD, "--count", 31_117)
    assert run("store", "charge", URL, ONE, *NOISE).exit_code == 3
    assert run("store", "plan", URL, "acme/visits/2026-02", *NOISE, "--count", 2).output == (
        "planned 2 releases\n"
    )


def test_blocks_whose_kinds_are_known(made):
    names = ("--epsilon", 3, "--delta", 1e-5)
    kinds = made / "kinds.json"
    step = {"mechanism": "Gaussian", "sampling_probability": 0.01}
    steps = [step | {"parameters": {"noise_multiplier": s}} for s in (1.0, 2.0)]
    kinds.write_text(json.dumps({"delta": 1e-5, "release": steps}))
    answered("store", "blocks", URL, "acme/runs/1", *names, "--filter", "kinds", "--kinds", kinds)
    answered("store", "blocks", URL, "acme/runs/2", *names, "--noise", 1, 1.05, "--q", 0.01)
    answered("store", "blocks", URL, "acme/runs/3", *names, "--filter", "renyi")
    with store.open(URL) as shared:
        one, two, three = (shared.blocks(f"acme/runs/{k}")[0].budget for k in (1, 2, 3))
    assert one.kinds == tuple(ac.PoissonSampled(ac.Gaussian(s), 0.01) for s in (1.0, 2.0))
    assert two.kinds[0] == ac.PoissonSampled(ac.Gaussian(1.0), 0.01)
    assert three.filter == "renyi"
    for wrong in (
        ("--filter", "kinds"),
        ("--noise", 1, 2),
        ("--q", 0.1),
        ("--kinds", kinds, "--q", 1),
    ):
        done = run("store", "blocks", URL, "acme/runs/4", *names, *wrong)
        assert done.exit_code == 2, done.output
        assert "--noise" in done.output
    assert run("store", "blocks", URL, "acme/runs/4", "--filter", "renyi").exit_code == 2

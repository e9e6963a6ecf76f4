"""The checker in C agrees with the one in Python: two programs that share the theorems alone."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("flint")
import accountant as ac
from support.certificate_probes import probes

SOURCE = Path(__file__).parents[2] / "verifier" / "second" / "dp_verify.c"
LIBRARIES = (["-lflint-arb", "-lflint", "-lm"], ["-lflint", "-lm"])


@pytest.fixture(scope="module")
def second(tmp_path_factory):
    """The compiled checker, as a function of a document that returns its exit code."""
    folder = tmp_path_factory.mktemp("second")
    if shutil.which("cc") is None or not SOURCE.exists():
        pytest.skip("no C compiler, or no sources")
    for libraries in LIBRARIES:
        command = ["cc", "-O2", str(SOURCE), "-o", str(folder / "dp_verify_c"), *libraries]
        if subprocess.run(command, capture_output=True, check=False).returncode == 0:
            break
    else:
        pytest.skip("Arb's headers are not installed")

    def check(text):
        (folder / "document.json").write_text(text)
        return subprocess.run(
            [str(folder / "dp_verify_c"), str(folder / "document.json")],
            capture_output=True,
            check=False,
        ).returncode

    return check


RUNS = (
    (1000 * ac.PoissonSampled(ac.Gaussian(1.0), 0.01), 1e-5),
    (ac.PoissonSampled(ac.Gaussian(1.0), 0.01), 1e-5),
    (2000 * ac.PoissonSampled(ac.Gaussian(1.0), 0.01).group(4), 1e-6),
    (5 * ac.Gaussian(1.0), 1e-6),
    (10**5 * ac.PoissonSampled(ac.Gaussian(50.0), 0.9) + ac.Gaussian(3.0), 0.5),
    (100 * ac.PoissonSampled(ac.Gaussian(1.0), 1e-6), 1e-3),
)


@pytest.mark.long(keep=5)
@pytest.mark.parametrize("run", RUNS, ids=str)
def test_both_accept_the_same_claims(second, run):
    text = ac.certificate(*run).text
    assert second(text) == 0
    document = json.loads(text)
    document["claim"]["epsilon"] *= 1 - 1e-7
    if document["claim"]["epsilon"]:
        true = float(run[0].delta_bounds(document["claim"]["epsilon"]).lower) <= run[1]
        assert true or second(json.dumps(document)) == 1


def test_both_judge_the_probes_alike(second):
    known = [each for each in probes() if '"grid"' not in each[0]]
    for text, passes in known[::40]:
        assert (second(text) == 0) == passes


@pytest.mark.parametrize("path", [(), ("claim",), ("claim", "parts", 0), ("evidence",)], ids=str)
def test_it_refuses_unknown_keys(second, path):
    document = json.loads(ac.certificate(*RUNS[0]).text)
    assert second(json.dumps(document)) == 0
    for deeper in (path, ("evidence", "remove"), ("evidence", "remove", "rules", 0)):
        changed = json.loads(json.dumps(document))
        place = changed
        for key in deeper:
            place = place[key]
        place["surprise"] = 1
        assert second(json.dumps(changed)) == 1


def test_it_refuses_other_versions_and_relations(second):
    for (run, delta), replaced in ((RUNS[1], 1), (RUNS[3], 0)):  # on a sample, plain
        document = json.loads(ac.certificate(run, delta).text)
        claim = document["claim"]
        assert second(json.dumps(document | {"version": 2})) == 1
        assert second(json.dumps(document | {"claim": claim | {"relation": "edit"}})) == 1
        other = json.dumps(document | {"claim": claim | {"relation": "replace-one"}})
        assert second(other) == replaced
        one = document | {"claim": claim | {"direction": "remove"}}
        assert second(json.dumps(one)) == 1
        one["evidence"] = {"remove": document["evidence"]["remove"]}
        assert second(json.dumps(one)) == 0


def test_it_refuses_values_that_are_not_of_the_format(second):
    text = ac.certificate(*RUNS[0]).text
    document = json.loads(text)
    claim, rule = document["claim"], document["evidence"]["remove"]["rules"][0]
    assert second(json.dumps(document | {"claim": claim | {"delta": 2.0}})) == 1
    assert second(text.replace('"count":1000', '"count":01000')) == 1
    rule["decay"] = 1.0
    assert second(json.dumps(document)) == 1


def test_what_it_does_not_know_is_no_pass(second):
    rare = ac.certificate(380 * ac.PoissonSampled(ac.Gaussian(0.594), 3.77e-5), 1e-17).text
    assert "labels" in rare
    assert second(rare) == 3
    assert second(ac.certificate(4 * ac.RandomizedResponse(0.5), 1e-2).text) == 3
    for text in ("", "{", "[1e999999]", "[" * 1000, '{"format": "dp-certificate"}'):
        assert second(text) == 1

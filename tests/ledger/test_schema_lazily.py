"""A ledger imports the mechanisms of packages above it only when a file names them."""

import json
import subprocess
import sys

import pytest

from accountant.errors import LedgerError
from accountant.learn.convex import Logistic, ObjectivePerturbation
from accountant.ledger import Accountant, schema

READ = """
import sys
from accountant.ledger import Accountant
assert not [m for m in sys.modules if m.startswith("accountant.learn")]
ledger = Accountant.{how}(sys.argv[1])
(entry,) = ledger.history
print(repr(entry.mechanism), entry.count, ledger.epsilon(1e-5).hex())
"""


@pytest.mark.long
@pytest.mark.parametrize("how", ["load", "from_json"])
def test_a_fresh_interpreter_reads_an_objective_perturbation(how, tmp_path):
    ledger = Accountant()
    ledger.compose(
        ObjectivePerturbation(Logistic(), data_norm=1.0, regularization=2.0, noise=7.0), 3
    )
    path = tmp_path / "ledger.json"
    ledger.save(path)
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            READ.format(how=how),
            str(path) if how == "load" else path.read_text(),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    mechanism = ledger.history[0].mechanism
    assert done.stdout.split("\n")[0] == f"{mechanism!r} 3 {ledger.epsilon(1e-5).hex()}"


def test_a_composition_that_holds_one_is_read(tmp_path):
    ledger = Accountant()
    ledger.compose(
        2 * ObjectivePerturbation(Logistic(), data_norm=1.0, regularization=2.0, noise=7.0)
    )
    document = json.loads(ledger.to_json())
    assert Accountant.from_json(json.dumps(document)).history == ledger.history


def test_no_name_of_a_file_is_imported():
    before = set(sys.modules)
    for name in ("antigravity", "accountant.learn.dp_sgd", "accountant.learn.convex.mechanism"):
        with pytest.raises(LedgerError, match="unknown mechanism"):
            schema.decode_mechanism({"mechanism": name, "parameters": {}})
    assert "antigravity" not in set(sys.modules) - before
    assert "ObjectivePerturbation" in schema.names()

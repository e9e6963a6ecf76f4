"""The JSON schema is that of the checker's table, and certificates satisfy it."""

import json
from pathlib import Path

import pytest

pytest.importorskip("flint")
import accountant as ac
from support.scripts import script

DOCS = Path(__file__).parents[2] / "docs"
SCHEMA = DOCS / "certificate.schema.json"
RUNS = (
    (1000 * ac.PoissonSampled(ac.Gaussian(1.0), 0.01) + ac.Gaussian(9.0), 1e-6),
    (9 * ac.RandomizedResponse(1.0), 1e-3),
    (ac.Gaussian(1.0), 1e-6),
)


def test_the_schema_is_that_of_the_checker():
    schema = script(DOCS / "make_certificate_schema.py").schema()
    assert json.loads(SCHEMA.read_text()) == schema


@pytest.mark.parametrize("run", RUNS, ids=str)
def test_certificates_satisfy_it(run):
    validator = pytest.importorskip("jsonschema").Draft202012Validator(
        json.loads(SCHEMA.read_text())
    )
    document = json.loads(ac.certificate(*run).text)
    validator.validate(document)
    for where, key in ((document, "note "), (document["claim"]["parts"][0], "extra")):
        where[key] = 1
        assert not validator.is_valid(document)
        del where[key]
    document["claim"]["delta"] = 2
    assert not validator.is_valid(document)

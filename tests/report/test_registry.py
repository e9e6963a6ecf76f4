"""The draft for the deployments registry: its fields, its enumerations, and what it refuses."""

import json
import re

import pytest

import accountant as ac
from accountant.errors import DomainError
from accountant.report import Deployment, statement

GIVEN = {
    "url_slug": "readmission-2026",
    "basic": {
        "data_curators": ["General Hospital"],
        "intended_use": 'To plan "beds": with {braces} and # signs',
        "data_product_type": "Machine learning model",
        "data_product_region": "Austria",
        "description": "A model.\nTwo lines.",
        "publication_date": "2026-01-31",
    },
    "administrative": {"registry_authors": ["A. Author"]},
}
MODELS = ("Central", "Local", "Shuffle", "Federated")


def made(registry=GIVEN, delta=1e-5, **told):
    ledger = ac.Accountant(ac.Budget(3.0, 1e-5))
    ledger.step(noise_multiplier=1.1, sampling_probability=0.01, count=100)
    return statement(ledger, delta, deployment=Deployment(registry=registry, **told))


def read(text):
    """Read the subset of YAML that is written: nested keys, JSON scalars, lists."""
    root = {}
    stack = [(-1, root)]
    for line in text.splitlines():
        depth, rest = len(line) - len(line.lstrip()), line.strip()
        if rest.startswith("- "):
            stack[-1][1].setdefault("", []).append(json.loads(rest[2:]))
            continue
        while stack[-1][0] >= depth:
            stack.pop()
        key, value = re.fullmatch(r"(\w+):(?: (.*))?", rest).groups()
        if value is None:
            child = stack[-1][1][key] = {}
            stack.append((depth, child))
        else:
            stack[-1][1][key] = json.loads(value)
    return root


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("model", ["central", "local", "shuffle", "federated"])
def test_every_computed_field_is_there(model):
    one = made(model=model, unit="one visit", tuning="On public data.")
    document = read(one.registry())
    assert list(document) == ["url_slug", "status", "tier", "deployment"]
    assert (document["url_slug"], document["status"], document["tier"]) == (
        "readmission-2026", "Draft", 3,
    )  # fmt: skip
    body = document["deployment"]
    assert body["basic"]["intended_use"] == GIVEN["basic"]["intended_use"]
    assert body["basic"]["data_curators"][""] == ["General Hospital"]
    assert body["dp_variant"]["variant_name"] == "Approximate DP"
    parameters = body["privacy_loss"]["privacy_parameters"]
    assert parameters["delta"] == 1e-5
    assert one.headline.epsilon <= parameters["epsilon"] <= one.headline.epsilon * 1.0001
    assert body["privacy_loss"]["privacy_unit"] == "one visit"
    assert body["deployment_model"]["model_name"] in MODELS
    assert "On public data." in body["implementation"]["preprocessing_and_hyperparameter_tuning"]
    assert "PoissonSampled" in body["implementation"]["mechanisms"]


def test_pure_privacy_has_no_delta():
    ledger = ac.Accountant()
    ledger.compose(ac.Laplace(5.0), 3)
    one = statement(ledger, 0.0, deployment=Deployment(registry=GIVEN))
    body = read(one.registry())["deployment"]
    assert body["dp_variant"]["variant_name"] == "Pure DP"
    assert list(body["privacy_loss"]["privacy_parameters"]) == ["epsilon"]


def test_numbers_are_numbers_to_every_reader():
    assert "delta: 1.0e-05" in made().registry()


@pytest.mark.long(keep=2)
@pytest.mark.parametrize(
    ("registry", "says"),
    [
        ({}, "basic.data_curators, basic.intended_use"),
        ({"basics": {}}, "'basics'"),
        ({"basic": {"name": "x", "who": "y"}}, "'who'"),
        (GIVEN | {"basic": GIVEN["basic"] | {"publication_date": "31.1.2026"}}, "YYYY-MM-DD"),
        (GIVEN | {"basic": GIVEN["basic"] | {"data_curators": "one"}}, "list of names"),
        (GIVEN | {"administrative": {}}, "administrative.registry_authors"),
    ],
)
def test_what_is_missing_or_unknown_is_named(registry, says):
    with pytest.raises(DomainError, match=re.escape(says)):
        made(registry).registry()

"""``accountant compose FILE``: pipelines in TOML and JSON, and complaints that name the place."""

import json
import re
from fractions import Fraction

import pytest
from click.testing import CliRunner

from accountant import mechanisms as m
from accountant.cli import main, options
from accountant.ledger import Accountant
from accountant.sampling.poisson import PoissonSampled

TOML = """
delta = [1e-5, 1e-6]

[[release]]
label = "training"
mechanism = "Gaussian"
parameters = { noise_multiplier = 1.1 }
sampling_probability = 0.01
count = 1_000

[[release]]
mechanism = "PureDP"
parameters = { epsilon = 0.25 }
"""

RELEASE = {"mechanism": "Gaussian", "parameters": {"noise_multiplier": 2.0}}


@pytest.fixture
def compose(tmp_path):
    def run(content, *options, name="releases.json", code=0):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        result = CliRunner().invoke(main, ["compose", str(path), *options])
        assert result.exit_code == code, result.output
        return result.stdout if code == 0 else result.stderr

    return run


def expected():
    ledger = Accountant()
    ledger.compose(PoissonSampled(m.Gaussian(1.1), 0.01), 1000, "training")
    ledger.compose(m.PureDP(0.25))
    return ledger


def test_toml_in_json_out(compose):
    answer = json.loads(compose(TOML, "--json", name="releases.toml"))
    ledger = expected()
    assert answer["relation"] == "add-or-remove"
    for row, delta in zip(answer["epsilons"], (1e-5, 1e-6), strict=True):
        bounds = ledger.epsilon_bounds(delta)
        assert row == {"delta": delta, "epsilon": bounds.upper, "epsilon_lower": bounds.lower}
    assert answer["releases"] == [
        {"mechanism": repr(e.mechanism), "count": e.count, "label": e.label} for e in ledger.history
    ]


def test_the_table_is_rounded_to_the_safe_side(compose):
    text = compose(TOML, name="releases.toml")
    assert "training" in text
    bounds = expected().epsilon_bounds(1e-5)
    row = next(line for line in text.splitlines() if "1e-05" in line)
    upper, lower = (Fraction(word) for word in re.findall(r"\d\.\d+(?![\de-])", row)[-2:])
    assert bounds.upper <= upper <= Fraction(bounds.upper) * (1 + Fraction(1, 10**4))
    assert lower <= bounds.lower


def test_nested_mechanisms(tmp_path):
    path = tmp_path / "p.json"
    inner = {"mechanism": "Laplace", "parameters": {"scale": 3.0}}
    sampled = {"mechanism": inner, "sampling_probability": 0.5}
    release = {"mechanism": "PoissonSampled", "parameters": sampled}
    path.write_text(json.dumps({"delta": 1e-5, "release": [release]}))
    history = options.read(path).ledger.history
    assert history[0].mechanism == PoissonSampled(m.Laplace(3.0), 0.5)


def described(*releases, **changed):
    """A pipeline of releases; of one that is changed, if none is given."""
    return {"delta": 1e-5, "release": [*releases] or [RELEASE | changed]}


REPLACED = {"noise_multiplier": 2.0, "relation": {"relation": "REPLACE_ONE"}}
COMPLAINTS = [
    ("{", "cannot be read"),
    ("[]", "must be an object"),
    ("{}", "must have the key"),
    ({"delta": 1e-5}, "release"),
    ({"delta": 1e-5, "release": []}, "at least one"),
    *((described() | {"delta": d}, "delta must be") for d in ("1e-5", True, 1.5)),
    (described() | {"delta": []}, "at least one number"),
    (described() | {"delta": [[1e-5]]}, "one number"),
    (described() | {"epsilon": 1}, "unknown key 'epsilon'"),
    (described(RELEASE, 3), "release 2"),
    (described(counts=3), "unknown key 'counts'"),
    (described({"parameters": {}}), "'mechanism'"),
    (described(mechanism="Gauss"), "did you mean Gaussian"),
    (described(mechanism="os"), "unknown mechanism"),
    (described(parameters={"sigma": 1}), "'sigma'"),
    (described(parameters={}), "noise_multiplier"),
    (described(parameters=[2.0]), "must be an object"),
    (described(parameters={"noise_multiplier": -1}), "noise_multiplier must be"),
    *((described(count=count), "count must be") for count in (-1, 1.0, True, [1, 2])),
    (described(label=3), "label must be"),
    *((described(sampling_probability=q), "sampling_probability must be") for q in (2, [0.1])),
    (described(RELEASE, RELEASE | {"label": "last", "parameters": REPLACED}), "release 2 (last)"),
    ('{"delta": 1e-5, "delta": 1e-6, "release": []}', "repeated"),
]


@pytest.mark.parametrize(("content", "complaint"), COMPLAINTS)
def test_complaints(compose, content, complaint):
    message = compose(content, code=2)
    assert complaint in message
    assert message.count("\n") == 1


def test_complaints_about_files(compose, tmp_path):
    assert ".toml or .json" in compose("x", name="releases.yaml", code=2)
    assert "cannot be read" in compose("delta = [", name="releases.toml", code=2)
    result = CliRunner().invoke(main, ["compose", str(tmp_path / "missing.toml")])
    assert result.exit_code == 2

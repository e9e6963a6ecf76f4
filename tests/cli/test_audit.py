"""``accountant audit``: nothing shipped is refuted, and a refuted claim exits with 1."""

import doctest
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from accountant.audit import shipped
from accountant.cli import main
from accountant.cli.installation import NAMES
from accountant.learn.release import Privatiser


def call(*words):
    return CliRunner().invoke(main, ["audit", *words])


def test_nothing_shipped_is_refuted():
    answer = call("--seed", "1", "--observations", "30000", "--json")
    assert answer.exit_code == 0, answer.output
    reports = json.loads(answer.stdout)
    assert len(reports) == len(NAMES)
    for report in reports:
        assert not report["refuted"]
        assert 0.4 < report["epsilon_lower"] / report["epsilon_claimed"] <= 1.0


def test_the_names_are_the_audits():
    assert (*shipped.AUDITS, *shipped.EXACT) == NAMES


def test_a_refuted_claim_exits_with_one(monkeypatch):
    settings = Privatiser.settings

    def quiet(self, rule):
        grid, deviation = settings(self, rule)
        return grid, 0.8 * deviation

    monkeypatch.setattr(Privatiser, "settings", quiet)
    answer = call("release", "--seed", "1", "--observations", "20000")
    assert answer.exit_code == 1
    assert "REFUTED" in answer.output


def test_reports_share_the_error():
    one, two = (
        shipped.self_audit(names, observations=1000, confidence=0.9, seed=1)
        for names in (("release",), ("release", "response", "votes"))
    )
    assert one[0].confidence == pytest.approx(0.9)
    assert [report.confidence for report in two] == pytest.approx([0.95, 0.95, 1.0])


def test_plots(tmp_path):
    pytest.importorskip("matplotlib")
    answer = call(
        "response",
        "votes",
        "--observations",
        "500",
        "--seed",
        "1",
        "--plots",
        str(tmp_path / "new"),
    )
    assert answer.exit_code == 0, answer.output
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["response.png"]


@pytest.mark.parametrize(
    "words", [("--observations", "9"), ("--delta", "0"), ("--confidence", "1"), ("nothing",)]
)
def test_bad_options(words):
    assert call(*words).exit_code == 2


def test_an_unseeded_audit_draws_fresh_noise():
    first, second = (shipped.self_audit(("response",), observations=2000)[0] for _ in "ab")
    assert not np.array_equal(first.observations.without, second.observations.without)


def test_examples_in_the_page():
    page = Path(__file__).parents[2] / "docs" / "audit.md"
    results = doctest.testfile(str(page), module_relative=False)
    assert results.attempted > 15
    assert results.failed == 0

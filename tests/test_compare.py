"""The comparison of samplers, in Python and on the command line."""

import json

import pytest
from click.testing import CliRunner

import accountant as ac
from accountant import cli

RUN = {
    "dataset_size": 2000,
    "batch_size": 100,
    "epochs": 3,
    "noise_multiplier": 1.0,
    "delta": 1e-5,
}


@pytest.fixture(scope="module")
def table():
    return ac.compare_samplers(**RUN)


def test_every_row_is_a_bracket_with_a_theorem(table):
    assert len(table.rows) == 11
    for row in table.rows:
        assert 0.0 < row.lower <= row.upper < float("inf")
        assert isinstance(row.relation, ac.NeighbouringRelation)
        assert row.theorem.startswith("S")
    assert len({(row.sampler, row.relation) for row in table.rows}) == 11


def test_theorems_exist(table):
    from pathlib import Path

    docs = Path(__file__).parents[1] / "docs"
    pages = [docs / f"theorems_{name}.md" for name in ("sampling", "adapters")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    for row in table.rows:
        for name in row.theorem.split(", "):
            assert f"\n## {name}. " in text


def test_rows_agree_with_the_quick_functions(table):
    poisson = table.rows[0]
    assert poisson.upper == ac.get_epsilon(0.05, 1.0, 60, 1e-5)


def test_text_rounds_outwards(table):
    for row, line in zip(table.rows, str(table).splitlines()[1:], strict=True):
        assert row.sampler in line
        numbers = [float(word) for word in line.split() if word.replace(".", "").isdigit()]
        assert numbers[0] <= row.lower
        assert numbers[1] >= row.upper


def test_picture(table, tmp_path):
    pytest.importorskip("matplotlib")
    table.plot(tmp_path / "samplers.png")
    assert (tmp_path / "samplers.png").stat().st_size > 1000


def test_command():
    options = [
        "samplers",
        *("--dataset-size", "2000", "--batch-size", "100", "--epochs", "3"),
        *("--sigma", "1", "--delta", "1e-5"),
        *("--sampler", "poisson", "--sampler", "shuffled"),
    ]
    found = CliRunner().invoke(cli.main, [*options, "--json"])
    assert found.exit_code == 0, found.output
    rows = json.loads(found.output)["rows"]
    assert [row["sampler"] for row in rows] == ["Poisson", "shuffled"]
    assert rows[1]["relation"] == "zero_out"
    plain = CliRunner().invoke(cli.main, options)
    assert "shuffled" in plain.output
    assert "certified" in plain.output


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"batch_size": 3000}, "batch_size must be at most"),
        ({"dataset_size": 0}, "dataset_size must be"),
        ({"epochs": 0}, "epochs must be"),
        ({"noise_multiplier": 0.0}, "noise_multiplier must be"),
        ({"delta": 0.0}, "delta must be"),
        ({"samplers": ["shuffle"]}, "samplers must be among"),
    ],
)
def test_bad_input(change, match):
    call = RUN | change
    with pytest.raises(ac.DomainError, match=match):
        ac.compare_samplers(**call)

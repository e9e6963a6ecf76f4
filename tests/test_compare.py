"""The comparison of samplers, in Python and on the command line."""

import json

import pytest
from click.testing import CliRunner

import accountant as ac
from accountant import cli

RUN = {"dataset_size": 2000, "batch_size": 100, "epochs": 3, "noise_multiplier": 1.0, "delta": 1e-5}


@pytest.fixture(scope="module")
def table():
    return ac.compare_samplers(**RUN)


@pytest.mark.long
def test_every_row_is_a_bracket_with_a_theorem(table):
    assert len(table.rows) == 12
    for row in table.rows:
        assert 0.0 < row.lower <= row.upper < float("inf")
        assert isinstance(row.relation, ac.NeighbouringRelation)
        assert row.theorem.startswith("S")
    assert len({(row.sampler, row.relation) for row in table.rows}) == 12


@pytest.mark.long
def test_theorems_exist(table):
    from pathlib import Path

    docs = Path(__file__).parents[1] / "docs"
    pages = [docs / f"theorems_{name}.md" for name in ("sampling", "adapters")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    for row in table.rows:
        for name in row.theorem.split(", "):
            assert f"\n## {name}. " in text


@pytest.mark.long
def test_rows_agree_with_the_quick_functions(table):
    poisson = table.rows[0]
    assert poisson.upper == ac.get_epsilon(0.05, 1.0, 60, 1e-5)


@pytest.mark.long
@pytest.mark.parametrize("delta", [1e-3, 1e-10])
def test_an_allocation_of_few_digits_is_as_narrow_at_every_delta(delta):
    run = (23_500, 100, 10, 1.0, delta)
    row = ac.compare_samplers(*run, samplers=["random allocation"]).rows[0]
    sampler = ac.sampling.RandomAllocation(dataset_size=23_500, steps_per_epoch=235, epochs=10)
    found = sampler.epsilon_bounds(1.0, delta)
    assert row.lower <= found.upper
    assert found.lower <= row.upper <= row.lower + found.width + 1e-5 * found.upper


def test_text_rounds_outwards(table):
    for row, line in zip(table.rows, str(table).splitlines()[1:], strict=True):
        assert row.sampler in line
        numbers = [float(word) for word in line.split() if word.replace(".", "").isdigit()]
        assert numbers[0] <= row.lower
        assert numbers[1] >= row.upper


def test_the_same_question_of_two_samplers_that_exchange_records(table):
    rows = {(row.sampler, row.relation): row for row in table.rows}
    exchanged = ac.NeighbouringRelation.REPLACE_ONE
    assert rows["Poisson", exchanged].upper < rows["with replacement", exchanged].lower


def test_rows_are_handed_out_as_they_are_known():
    seen = []
    table = ac.compare_samplers(**RUN, samplers=["poisson", "cyclic"], on_row=seen.append)
    assert tuple(seen) == table.rows
    stopped = []

    def stop(row):
        stopped.append(row)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ac.compare_samplers(**RUN, samplers=["poisson", "cyclic"], on_row=stop)
    assert stopped == seen[:1]


@pytest.mark.long
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


def test_command_prints_rows_as_they_are_known(monkeypatch):
    """The table begins before the last sampler is asked, and its columns are straight."""
    from accountant import compare

    real, asked, printed = compare.compare_samplers, [], []

    def watched(*run, on_row, **rest):
        def seen(row):
            asked.append(len(printed))
            on_row(row)

        return real(*run, on_row=seen, **rest)

    monkeypatch.setattr(compare, "compare_samplers", watched)
    monkeypatch.setattr("click.echo", lambda text="", **_: printed.append(text))
    run = ["2000", "100", "3", "1", "1e-5"]
    options = ("--dataset-size", "--batch-size", "--epochs", "--sigma", "--delta")
    cli.main.commands["samplers"].main(
        [word for pair in zip(options, run, strict=True) for word in pair], standalone_mode=False
    )
    assert asked == [0, *range(2, len(compare.SAMPLERS) + 1)]
    headings, *rows = printed[:-1]
    assert {row[headings.index("theorem") - 1] for row in rows} == {" "}


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

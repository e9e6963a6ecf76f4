"""Errors of every kind are one line: options by name, faults of the package without the data."""

import click
import pytest

import accountant as ac
from accountant.cli import main
from accountant.cli.group import DEFECT, Command, named_options
from support.command_line import run


def test_a_fault_of_the_package_is_one_line_that_quotes_no_data(monkeypatch):
    def broken(*_arguments):
        raise ValueError("record 7 is secret")

    monkeypatch.setattr(ac, "epsilon_bounds", broken)
    command = click.Command("broken", callback=broken)
    monkeypatch.setitem(main.commands, "broken", command)
    done = run("broken")
    assert done.exit_code == DEFECT
    assert isinstance(done.exception, SystemExit)
    assert "secret" not in done.output
    assert "ValueError" in done.stderr
    assert done.stderr.count("\n") == 1
    monkeypatch.setenv("ACCOUNTANT_TRACEBACK", "1")
    assert isinstance(run("broken").exception, ValueError)


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("user_records must be >= 1", "--user-records must be >= 1"),
        ("steps must be >= 0; steps are steps", "--steps must be >= 0; steps are steps"),
        ("give target_epsilon or not", "give --epsilon or not"),
        ("q must be small; not_an_option", "--q must be small; not_an_option"),
        ("the steps", "the steps"),
        ("/tmp/user_records.csv is empty", "/tmp/user_records.csv is empty"),
        ("data.user_records is empty", "data.user_records is empty"),
    ],
)
def test_messages_name_options(message, shown):
    options = [click.Option([f"--{name}"]) for name in ("q", "steps", "user-records", "epsilon")]
    command = Command("c", params=options, names={"target_epsilon": "--epsilon"})
    assert named_options(message, command) == shown


def test_options_are_named_where_the_library_checks_its_arguments():
    told = run("epsilon", "--q", 0.1, "--sigma", 1, "--steps", -1, "--delta", 1e-5)
    assert "--steps must be" in told.stderr
    told = run("epsilon", "--q", 0.1, "--sigma", 1, "--steps", 1, "--delta", 7)
    assert "--delta must be" in told.stderr

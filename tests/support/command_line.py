"""The command line, run in this process."""

import json

from click.testing import CliRunner

from accountant.cli import main


def run(*arguments, **extra):
    return CliRunner().invoke(main, [str(a) for a in arguments], **extra)


def answered(*arguments):
    """Return the JSON that a command prints, which must succeed."""
    done = run(*arguments, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.output)

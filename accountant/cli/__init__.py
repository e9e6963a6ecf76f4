"""The command line: one question a command, answers rounded to the safe side."""

from accountant.cli.entry import main

__all__ = ["main"]

"""The group of commands: help with examples, and the conversion of errors to messages."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from typing import Any

import click

from accountant.errors import AccountantError, BudgetExceeded, PrecisionError
from accountant.safe_text import shown

__all__ = ["ANSWERED", "EXHAUSTED", "FAILED", "INTERRUPTED", "REFUSED", "WRONG", "Command", "Group"]

# Exit codes; docs/cli.md documents them.
ANSWERED = 0
FAILED = 1  # doctor: these numerics are not to be trusted; audit: a claim is refuted
WRONG = 2  # the question, a value or a file: something the user can mend
REFUSED = 3  # a privacy budget does not allow it
EXHAUSTED = 4  # no certified answer was reached
INTERRUPTED = 130


class Command(click.Command):
    """A command whose help ends with examples to copy."""

    def __init__(self, *args: Any, examples: tuple[str, ...] = (), **extra: Any) -> None:
        super().__init__(*args, **extra)
        self.examples = examples

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, one a line and never wrapped, so that they can be copied."""
        super().format_epilog(ctx, formatter)
        if self.examples:
            with formatter.section("Examples"):
                for line in self.examples:
                    formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


class Group(click.Group):
    """Prints one line, and exits with a documented code, for everything the user can mend."""

    command_class = Command

    def __init__(
        self,
        *args: Any,
        sections: dict[str, tuple[str, ...]] | None = None,
        examples: tuple[str, ...] = (),
        **extra: Any,
    ) -> None:
        super().__init__(*args, **extra)
        self.sections = sections or {}
        self.examples = examples

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order in which they are taught."""
        taught = [name for names in self.sections.values() for name in names]
        return [*taught, *sorted(set(self.commands) - set(taught))]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under the headings of ``sections``, then the examples."""
        for heading, rows in self._listed():
            with formatter.section(heading):
                formatter.write_dl(rows)
        with formatter.section("Examples"):
            for line in self.examples:
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")

    def _listed(self) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        rest = tuple(sorted(set(self.commands) - {n for ns in self.sections.values() for n in ns}))
        for heading, names in {**self.sections, "Further commands": rest}.items():
            rows = [(name, self.commands[name].get_short_help_str(80)) for name in names]
            if rows:
                yield heading, rows

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a reader that has read enough (head, say) is no error."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # Python flushes standard output once more at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            return ANSWERED

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run the command line and exit."""
        for stream in (sys.stdout, sys.stderr):
            # A terminal that cannot show ε still gets its answer.
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")
        try:
            code = super().main(*args, **(extra | {"standalone_mode": False}))
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            code = WRONG
        except click.ClickException as error:
            code = _complain(error.format_message(), WRONG)
        except BudgetExceeded as error:
            code = _complain(str(error), REFUSED)
        except PrecisionError as error:
            code = _complain(str(error), EXHAUSTED)
        except MemoryError as error:
            code = _complain(str(error) or "not enough memory", EXHAUSTED)
        except OSError as error:
            code = _complain(_of_files(error), WRONG)
        except AccountantError as error:
            code = _complain(str(error), WRONG)
        except (click.Abort, KeyboardInterrupt):
            code = _complain("interrupted", INTERRUPTED)
        sys.exit(code if isinstance(code, int) else ANSWERED)


def _complain(message: str, code: int) -> int:
    click.echo(f"accountant: {shown(message)}", err=True)
    return code


def _of_files(error: OSError) -> str:
    """Write what the operating system says without its numbers."""
    if error.filename is None or error.strerror is None:
        return str(error)
    return f"{error.filename}: {error.strerror}"

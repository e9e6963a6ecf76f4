"""The group of commands: help with examples, and the conversion of errors to messages."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from typing import Any

import click

from accountant._basics.display import shown
from accountant.cli.output import spell_out
from accountant.errors import AccountantError, BudgetExceeded, PrecisionError

# Exit codes; docs/cli.md documents them.
ANSWERED = 0
FAILED = 1  # doctor: these numerics are not to be trusted; audit: a claim is refuted
WRONG = 2  # the question, a value or a file: something the user can mend
REFUSED = 3  # a privacy budget does not allow it
EXHAUSTED = 4  # no certified answer was reached
DEFECT = 70  # as in sysexits.h: a fault of this package
INTERRUPTED = 130
# Set to anything, it shows where a defect is.
TRACEBACK = "ACCOUNTANT_TRACEBACK"


class Command(click.Command):
    """A command whose help ends with examples to copy.

    ``names`` are arguments of the library that options set under another name.
    """

    def __init__(
        self,
        *args: Any,
        examples: tuple[str, ...] = (),
        names: dict[str, str] | None = None,
        **extra: Any,
    ) -> None:
        super().__init__(*args, **extra)
        self.examples = examples
        self.names = names or {}

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; errors name its options, not the arguments behind them."""
        try:
            return super().invoke(ctx)
        except AccountantError as error:
            words = (named_options(w, self) if isinstance(w, str) else w for w in error.args)
            error.args = tuple(words)
            raise

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, one a line and never wrapped, so that they can be copied."""
        super().format_epilog(ctx, formatter)
        if self.examples:
            _write_examples(formatter, self.examples)


def named_options(message: str, command: Command) -> str:
    """Return a message that names options where the library names its arguments.

    An argument is known by its place, at the beginning of a message, or by its underscore.
    """
    names = dict(command.names)
    for option in command.params:
        if isinstance(option, click.Option) and option.name:
            written = max(option.opts, key=len)
            names.setdefault(option.name, written)
            names.setdefault(written.lstrip("-").replace("-", "_"), written)

    def named(found: re.Match[str]) -> str:
        word = found[0]
        known = found.start() == 0 or "_" in word
        return names.get(word, word) if known else word

    return re.sub(r"(?<![\w./-])[A-Za-z_]\w*", named, message)


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
        _write_examples(formatter, self.examples)

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
            spell_out(stream)
        try:
            code = super().main(*args, **(extra | {"standalone_mode": False}))
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            code = WRONG
        except click.ClickException as error:
            code = _complain(error.format_message(), WRONG)
        except BudgetExceeded as error:
            code = _complain(str(error), REFUSED)
        except (PrecisionError, MemoryError) as error:
            code = _complain(str(error) or "not enough memory", EXHAUSTED)
        except (OSError, AccountantError) as error:
            code = _complain(_words(error), WRONG)
        except (click.Abort, KeyboardInterrupt):
            code = _complain("interrupted", INTERRUPTED)
        except Exception as error:
            code = _defect(error)
        sys.exit(code if isinstance(code, int) else ANSWERED)


def _write_examples(formatter: click.HelpFormatter, examples: tuple[str, ...]) -> None:
    with formatter.section("Examples"):
        for line in examples:
            formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


def _complain(message: str, code: int) -> int:
    click.echo(f"accountant: {shown(message)}", err=True)
    return code


def _defect(error: Exception) -> int:
    """Say that the fault is ours, without the error's own words, which may quote the data."""
    if os.environ.get(TRACEBACK):
        raise error
    kind = type(error).__name__
    told = f"a fault of accountant itself ({kind}); set {TRACEBACK}=1 to see where, and report it"
    return _complain(told, DEFECT)


def _words(error: Exception) -> str:
    """Write what the operating system says of a file without its numbers."""
    name, words = getattr(error, "filename", None), getattr(error, "strerror", None)
    return str(error) if name is None or words is None else f"{name}: {words}"

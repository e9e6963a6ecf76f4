"""``accountant completion``: the script that makes the shell complete commands and options."""

from __future__ import annotations

import os
from pathlib import Path

import click

from accountant.cli.group import Command
from accountant.cli.options import JSON
from accountant.cli.output import as_json as print_json
from accountant.errors import DomainError

SHELLS = ("bash", "zsh", "fish")


@click.command(
    cls=Command,
    examples=(
        "accountant completion bash >> ~/.bashrc",
        "accountant completion zsh >> ~/.zshrc",
        "accountant completion fish > ~/.config/fish/completions/accountant.fish",
    ),
)
@click.argument("shell", type=click.Choice(SHELLS), required=False)
@JSON
@click.pass_context
def completion(ctx: click.Context, shell: str | None, as_json: bool) -> None:
    """Print the script that completes commands and options in SHELL.

    Without SHELL, for the one that $SHELL names.
    """
    from click.shell_completion import get_completion_class

    name = shell or Path(os.environ.get("SHELL", "")).name
    kind = get_completion_class(name) if name in SHELLS else None
    if kind is None:
        raise DomainError(f"say for which shell: {', '.join(SHELLS)}; $SHELL is {name!r}")
    root = ctx.find_root()
    made = kind(root.command, {}, "accountant", "_ACCOUNTANT_COMPLETE")
    # click's own source() of bash starts bash to ask for its version; the template is the same.
    script = made.source_template % made.source_vars()
    if as_json:
        print_json({"shell": name, "script": script})
        return
    click.echo(script)


COMMANDS = (completion,)

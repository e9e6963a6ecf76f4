"""The fuzzer at the command line."""

from __future__ import annotations

from support.hardening.draws import Draw, Finding


def command_line(draw: Draw) -> None:
    from click.testing import CliRunner

    from accountant.cli import main

    words = ["epsilon", "delta", "calibrate", "compare", "account", "explain", "--help"]
    words += ["--version", *main.commands]
    options = ["--q", "--sigma", "--steps", "--delta", "--epsilon", "--batch-size", "--epochs"]
    options += ["--dataset-size", "--json", "-x", "--order", "--fpr"]
    values = ["0.01", "1", "1000", "1e-5", "nan", "inf", "-1", "x", "", "1e400", "0", "9" * 30]
    values += ["1/3"]
    arguments = [draw.choice(words)]
    if arguments[0] in ("train", "compare"):
        return  # they read data, and may work for long
    for _ in range(draw.below(6)):
        arguments += [draw.choice(options), draw.choice(values)]
    done = CliRunner().invoke(main, arguments)  # without --plot nothing is written
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise Finding(f"accountant {arguments}: {done.exception!r}") from done.exception

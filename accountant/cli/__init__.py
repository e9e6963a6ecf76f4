"""The command line: one question a command, answers rounded to the safe side.

Those about one DP-SGD run are in ``dp_sgd``, those about ledgers, pipelines and their statements in
``ledgers`` and ``report``, those about shared budgets in ``stores``, those about what is installed
in ``installation``; ``options`` reads releases, budgets and pipelines.
"""

import click

import accountant
from accountant.cli import dp_sgd, installation, ledgers, report, stores
from accountant.cli.group import Group
from accountant.cli.train import train

__all__ = ["main"]


@click.group(
    cls=Group,
    context_settings={"help_option_names": ["-h", "--help"]},
    sections={
        "How much was spent?": ("epsilon", "delta", "curve", "compose", "samplers"),
        "How much noise, how many steps?": ("sigma", "steps", "q"),
        "Train, and show what it cost": ("train", "show", "report", "certify"),
        "Budgets": ("ledger", "store"),
        "This installation": ("doctor", "audit", "completion", "web"),
    },
    examples=(
        (
            "accountant epsilon --batch-size 256 --dataset-size 60000 --epochs 60 --sigma 1.1"
            " --delta 1e-5"
        ),
        "accountant sigma --q 0.01 --steps 1000 --epsilon 3 --delta 1e-5",
        "accountant compose pipeline.toml",
        "accountant report ledger.json -o report.html",
        "accountant epsilon --help",
    ),
    epilog="Exit codes: 0 answered, 1 doctor or audit found a fault, 2 the question or a file is"
    " wrong, 3 a budget refuses, 4 no certified answer was reached, 70 a fault of accountant, 130"
    " interrupted.",
)
@click.version_option(accountant.__version__, prog_name="accountant")
def main() -> None:
    """How much privacy did this training run spend?

    Every answer is certified and rounded to the safe side.

    The add-or-remove relation is meant unless an answer names another. Questions about one run are
    about DP-SGD with Poisson sampling.
    """


for _command in (
    *dp_sgd.COMMANDS,
    *ledgers.COMMANDS,
    *report.COMMANDS,
    *stores.COMMANDS,
    *installation.COMMANDS,
    train,
):
    main.add_command(_command)

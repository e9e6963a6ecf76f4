"""The command line: one question a command, answers rounded to the safe side.

``entry`` lists the commands. Those about one DP-SGD run are in ``dp_sgd``, those about pipelines
and samplers in ``compositions``, those about saved ledgers in ``ledgers`` and
``report``; the others have a file
each.
"""

from accountant.cli.entry import main

__all__ = ["main"]

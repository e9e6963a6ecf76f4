"""Targets of the fuzzer: bytes choose an entry and its arguments; a wrong answer raises Finding.

tests/test_harden_fuzz.py runs a little of each target, ``python tests/harden/fuzz.py`` as much as
one likes.
"""

from __future__ import annotations

from collections.abc import Callable

from draws import Draw, Finding, judged
from entries_command_line import command_line
from entries_files import bytes_of_ledgers, checkpoints, ledgers, trees_of_ledgers
from entries_mechanisms import mechanisms
from entries_numbers import calibration, conversion, quick

__all__ = ["TARGETS", "Draw", "Finding", "judged"]

TARGETS: dict[str, Callable[[Draw], None]] = {
    target.__name__: target
    for target in (
        quick,
        calibration,
        conversion,
        mechanisms,
        ledgers,
        bytes_of_ledgers,
        trees_of_ledgers,
        checkpoints,
        command_line,
    )
}

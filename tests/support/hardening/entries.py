"""Targets of the fuzzer: bytes choose an entry and its arguments; a wrong answer raises Finding.

tests/hardening/test_fuzz.py runs a little of each target, ``make fuzz`` as much as
one likes.
"""

from __future__ import annotations

from collections.abc import Callable

from support.hardening.draws import Draw, Finding, judged
from support.hardening.entries_command_line import command_line
from support.hardening.entries_files import bytes_of_ledgers, checkpoints, ledgers, trees_of_ledgers
from support.hardening.entries_mechanisms import mechanisms
from support.hardening.entries_numbers import calibration, conversion, quick

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

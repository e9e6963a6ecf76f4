"""Plant every bug of the registry alone, and see whether the default suite turns red.

    PYTHONPATH=tests python -m support.planted.alone [NAME ...]

With names, those bugs only. Only the test that is beside a bug is run, with the markers of the
default suite; it prints a line a bug that this environment has the packages for, and exits with 1
when fewer than nine in ten are noticed.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.planted import BUGS, NAMED

ROOT = Path(__file__).parents[3]
NOTICED = 0.9
SHIPPED = "cross_cutting/test_planted_bugs.py::test_the_shipped_code_is_not_flagged"


def run(name, test, *more):
    """Run one test in a process of its own, in which the bug of this name is planted."""
    command = ["-m", "pytest", "-x", "-q", "-n", "0", "-p", "support.planted.plugin"]
    return subprocess.run(
        [sys.executable, *command, *more, f"tests/{test}"],
        cwd=ROOT,
        env={**os.environ, "PLANTED": name},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def main():
    """Print what the default suite says of every bug."""
    tests = [(bug.name, f"{SHIPPED}[{bug.check.__name__}]") for bug in BUGS]
    tests += [(bug.name, bug.check) for bug in NAMED if importlib.util.find_spec(bug.needs)]
    tests = [each for each in tests if len(sys.argv) == 1 or each[0] in sys.argv[1:]]
    noticed = []
    for name, test in tests:
        red = run(name, test).returncode == pytest.ExitCode.TESTS_FAILED
        noticed.append(red)
        print(f"{'noticed' if red else 'MISSED '}  {name}  ({test})", flush=True)
    print(f"{sum(noticed)} of {len(tests)} are noticed")
    sys.exit(sum(noticed) < NOTICED * len(tests))


if __name__ == "__main__":
    main()

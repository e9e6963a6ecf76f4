"""Importing the package is light."""

import resource
import subprocess
import sys

HEAVY = (
    *("scipy", "matplotlib", "torch", "click", "rich", "jinja2", "concurrent.futures"),
    "dp_accounting",
)

TIMED = """
import numpy, sys, time
start = time.perf_counter()
import accountant
print(time.perf_counter() - start)
print(*sys.modules, sep="\\n")
"""


def import_afresh():
    done = subprocess.run([sys.executable, "-c", TIMED], capture_output=True, text=True, check=True)
    seconds, *modules = done.stdout.split()
    return float(seconds), modules


def test_nothing_heavy_is_imported():
    modules = import_afresh()[1]
    assert "accountant.quick" in modules
    for heavy in HEAVY:
        assert not [m for m in modules if m == heavy or m.startswith(f"{heavy}.")]


def test_it_takes_under_150_ms_beyond_numpy():
    # The best of three: a busy machine only ever makes it slower.
    assert min(import_afresh()[0] for _ in range(3)) < 0.15


def test_a_cold_command_is_quick():
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "import accountant.cli"],
        capture_output=True,
        text=True,
        check=True,
    )
    for heavy in ("scipy", "matplotlib", "rich", "jinja2"):
        assert f" {heavy}\n" not in done.stderr


def test_a_cold_command_takes_under_400_ms():
    def spent():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    command = ["epsilon", "--q", "0.01", "--steps", "1000", "--sigma", "1.1", "--delta", "1e-5"]
    seconds = []
    for _ in range(3):
        before = spent()
        subprocess.run([sys.executable, "-m", "accountant", *command], check=True)
        seconds.append(spent() - before)
    # Of the processor, so that a busy machine does not count.
    assert min(seconds) < 0.4

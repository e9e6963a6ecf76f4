"""Importing the package is light."""

import subprocess
import sys

HEAVY = (
    *("scipy", "matplotlib", "torch", "click", "rich", "jinja2", "concurrent.futures"),
    "dp_accounting",
)

LISTED = """
import sys
import accountant
print(*sys.modules, sep="\\n")
"""


def import_afresh():
    command = [sys.executable, "-c", LISTED]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def test_nothing_heavy_is_imported():
    modules = import_afresh()
    assert "accountant.quick" in modules
    for heavy in HEAVY:
        assert not [m for m in modules if m == heavy or m.startswith(f"{heavy}.")]


def test_the_command_line_imports_nothing_heavy():
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "import accountant.cli"],
        capture_output=True,
        text=True,
        check=True,
    )
    for heavy in ("scipy", "matplotlib", "rich", "jinja2"):
        assert f" {heavy}\n" not in done.stderr

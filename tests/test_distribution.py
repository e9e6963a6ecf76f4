"""What is shipped: types, stubs, data, and the self-test that every wheel has to pass."""

import shlex
import tomllib
from pathlib import Path

from accountant.cli import main

ROOT = Path(__file__).parents[1]
CORE = ROOT / "accountant" / "_core"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WHEELS = PROJECT["tool"]["cibuildwheel"]


def test_every_native_module_has_a_stub():
    assert sorted(p.stem for p in CORE.glob("*.pyx")) == sorted(p.stem for p in CORE.glob("*.pyi"))


def test_types_stubs_templates_and_enclosures_are_package_data():
    patterns = PROJECT["tool"]["setuptools"]["package-data"]["accountant"]
    shipped = {path for pattern in patterns for path in (ROOT / "accountant").glob(pattern)}
    needed = {
        path
        for path in (ROOT / "accountant").rglob("*")
        if path.is_file()
        and CORE / "src" not in path.parents
        and path.suffix not in {".c", ".h", ".pxd", ".py", ".pyc", ".pyd", ".pxi", ".pyx", ".so"}
    }
    assert shipped == needed


def test_wheels_test_themselves_by_the_doctor():
    script, command = shlex.split(WHEELS["test-command"])
    assert script in PROJECT["project"]["scripts"]
    assert command in main.commands


def test_floating_point_flags_are_set_for_every_compiler():
    setup = (ROOT / "setup.py").read_text()
    assert '"-ffp-contract=off"' in setup
    for table in (WHEELS, WHEELS["linux"], WHEELS["macos"]):
        flags = table.get("environment", {}).get("CFLAGS", "")
        assert "fast" not in flags
        assert "march" not in flags

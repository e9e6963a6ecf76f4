"""What is shipped: types, stubs, data, and the self-test that every wheel has to pass."""

import re
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


def test_wheels_are_built_for_every_python_and_platform_that_is_promised():
    least = PROJECT["project"]["requires-python"].removeprefix(">=3.")
    assert WHEELS["build"].startswith(f"cp3{least}-*")
    assert WHEELS["linux"]["archs"] == ["x86_64", "aarch64"]
    assert WHEELS["macos"]["archs"] == ["x86_64", "arm64"]


def test_of_every_wheel_that_is_cross_compiled_the_page_says_whether_it_was_run():
    tags = re.findall(r'^    "(\w+)": \(', (ROOT / ".ci" / "wheels").read_text(), re.M)
    release = (ROOT / ".ci" / "release").read_text()
    page = (ROOT / "docs" / "install.md").read_text().splitlines()
    assert len(tags) == 6
    for tag in tags:
        (row,) = [row for row in page if row.startswith("|") and f"`{tag}`" in row]
        assert "not run" in row or "doctor` passes" in row
        tried, untried = release.split("UNTRIED", 1)
        assert tag in (tried if "linux" in tag else untried.split(")", 1)[0])


def test_floating_point_flags_are_set_for_every_compiler():
    setup = (ROOT / "setup.py").read_text()
    assert '"-ffp-contract=off"' in setup
    for table in (WHEELS, WHEELS["linux"], WHEELS["macos"]):
        flags = table.get("environment", {}).get("CFLAGS", "")
        assert "fast" not in flags
        assert "march" not in flags

"""The recipes of packagers: they ask for what pyproject.toml asks for, and their programs run."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from jinja2 import Environment

import accountant as ac
from support.native import compiler

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
RECIPE = ROOT / "packaging" / "conda" / "meta.yaml"
FORMULA = ROOT / "packaging" / "homebrew" / "libaccountant.rb"
pytestmark = pytest.mark.skipif(
    not RECIPE.exists(), reason="the recipes are not beside these tests"
)


def section(text, *names):
    """The items of a list in the recipe, which has two blanks for every level."""
    for depth, name in enumerate(names):
        text = re.split(rf"^{'  ' * depth}{name}:", text, maxsplit=1, flags=re.M)[1]
        text = re.split(rf"^ {{0,{2 * depth}}}\w", text, maxsplit=1, flags=re.M)[0]
    return [
        line.split("- ", 1)[1].split("#")[0].strip() for line in text.splitlines() if "- " in line
    ]


def recipe():
    words = {
        "PYTHON": "python",
        "compiler": lambda name: f"{name}-compiler",
        "stdlib": lambda name: f"{name}-stdlib",
        "target_platform": "linux-64",
    }
    return Environment().from_string(RECIPE.read_text()).render(words)


def test_the_conda_recipe_asks_for_what_the_project_asks_for():
    text = recipe()
    plain = [item.replace(" ", "") for item in section(text, "requirements", "run")]
    assert sorted(plain) == sorted([*PROJECT["project"]["dependencies"], "python"])
    host = {item.replace(" ", "") for item in section(text, "requirements", "host")}
    assert {need.lower() for need in PROJECT["build-system"]["requires"]} <= host
    assert f"version: {ac.__version__}" in text
    assert f"license: {PROJECT['project']['license']}" in text
    assert f"summary: {PROJECT['project']['description']}" in text
    (entry,) = section(text, "build", "entry_points")
    name, target = entry.split(" = ")
    assert PROJECT["project"]["scripts"][name] == target
    least = PROJECT["project"]["requires-python"].removeprefix(">=").replace(".", "")
    assert f"py<{least}" in text


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("CITATION.cff", "version: {}"),
        ("verifier/pyproject.toml", 'version = "{}"'),
        ("rust/Cargo.lock", 'version = "{}"'),
    ],
)
def test_every_part_of_a_release_has_its_version(file, line):
    """tests/libaccountant and tests/cli look at the rest."""
    assert line.format(ac.__version__) in (ROOT / file).read_text().splitlines()


@pytest.mark.slow
def test_the_formula_installs_a_library_that_its_test_can_use(tmp_path):
    if not (shutil.which("make") and shutil.which("pkg-config")):
        pytest.skip("no make or no pkg-config")
    text = FORMULA.read_text()
    words = re.search(r"system (\"make\".*)$", text, re.M)[1].replace("#{prefix}", f"{tmp_path}/in")
    command = re.findall(r'"([^"]*)"', words)
    quick = [f"CC={' '.join(compiler())}", "CFLAGS=-O1", f"build={tmp_path}/build"]
    subprocess.run([*command, *quick], cwd=ROOT, check=True, capture_output=True)
    program = re.search(r"<<~C\n(.*?)^    C$", text, re.S | re.M)[1]
    (tmp_path / "test.c").write_text(program)
    places = {"PKG_CONFIG_PATH": f"{tmp_path}/in/lib/pkgconfig", "PATH": "/usr/bin:/bin"}
    flags = subprocess.run(
        re.search(r'shell_output\("(.*)"\)', text)[1].split(),
        env=places, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    subprocess.run(
        [*compiler(), "test.c", "-o", "test", *flags], cwd=tmp_path, check=True, capture_output=True
    )
    found = {"LD_LIBRARY_PATH": f"{tmp_path}/in/lib", "DYLD_LIBRARY_PATH": f"{tmp_path}/in/lib"}
    assert subprocess.run([tmp_path / "test"], env=found).returncode == 0

"""The C core can be read from the bottom up: files include only what lies below them.

The theorem pages name C functions; those names must exist. No C file is compiled into two modules.
"""

import re
import subprocess
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from support.native import FLAGS, SOURCES, compiler, folders

ROOT = SOURCES.parents[2]
FILES = sorted(SOURCES.rglob("*.[ch]"))
CORE = [path for path in FILES if path.parent.name != "training"]
pytestmark = pytest.mark.skipif(not FILES, reason="the C sources are not beside these tests")


def included(path: Path) -> set[str]:
    return {Path(name).stem for name in re.findall(r'#include "(.+)"', path.read_text())}


def test_no_circle_between_files():
    """A subject is a header and its source: neither includes, by any detour, what includes it."""
    subjects: dict[str, set[str]] = {}
    for path in FILES:
        subjects.setdefault(path.stem, set()).update(included(path) - {path.stem})
    TopologicalSorter(subjects).prepare()  # raises CycleError, which names the circle


def test_calls_go_through_headers():
    """Without a declaration of its own a file could call upwards unseen by the test above."""
    for path in FILES:
        assert not re.findall(r"^extern\b", path.read_text(), re.M), path


@pytest.mark.long
def test_frames_are_small():
    """The core's own are looked at wherever a test compiles it (support.native)."""
    for path in sorted((SOURCES / "training").glob("*.c")):
        command = [*compiler(), *FLAGS, *folders(), "-c", path, "-o", "/dev/null"]
        done = subprocess.run([*map(str, command)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_no_call_of_libm_picks_the_larger_of_two():
    """acct_max and acct_min treat a NaN alike and cost an instruction or two."""
    for path in CORE:
        assert not re.findall(r"\bf(?:max|min)\(", path.read_text()), path


def test_every_function_named_in_the_theorems_exists():
    words = set(re.findall(r"\w+", " ".join(path.read_text() for path in FILES)))
    pages = sorted((ROOT / "docs").glob("theorems*.md"))
    named = {name for page in pages for name in re.findall(r"`(acct_\w+)`", page.read_text())}
    assert named, "no C function is named on any page"
    assert named <= words, named - words


def test_the_map_names_every_file():
    page = (SOURCES / "README.md").read_text()
    subjects = {path.stem for path in CORE} - {"gauss_legendre"}
    assert {name for name in subjects if not re.search(rf"\b{name}\b", page)} == set()


def test_one_home_for_each_formula():
    """What once stood in several files stands once."""
    text = {path: path.read_text() for path in FILES}
    for pattern in (
        r"target_clones",
        r"log1p\(1\.0 / ",  # Chernoff's factor
        r"16\.0 \* ACCT_U \* \(fabs\(u\) \+ fabs\(v\)\)",  # the error of V
        r"\* log\(rho\)",  # the rate of the quadrature
        r"1\.1102230246251565e-16",
        r"2\.5066282746310002",
        r"\(128\.0 \+ 12\.0 \*",  # the round-off of a weight
    ):
        homes = [path.name for path, source in text.items() for _ in re.findall(pattern, source)]
        assert len(homes) == 1, (pattern, homes)

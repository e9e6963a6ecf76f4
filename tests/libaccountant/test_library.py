"""libaccountant: the C library answers what Python answers, bit for bit, and installs."""

import ast
import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import accountant as ac
from support.native import compiler

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "libaccountant"
HEADER = LIBRARY / "include" / "accountant.h"
STORED = LIBRARY / "tests" / "cases.txt"
pytestmark = pytest.mark.skipif(not HEADER.exists(), reason="the library is not beside these tests")
# Optimised less, it is compiled in a third of the time; no result depends on that.
QUICK = "CFLAGS=-O1"
SANITIZED = "-O1 -g -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all"
# What the library as shipped may be asked of a public function's caller.
QUIET = os.environ | {"MAKEFLAGS": "--silent", "ASAN_OPTIONS": "detect_leaks=1"}


def run(*command, seconds=600.0, **environment):
    done = subprocess.run(
        [*map(str, command)],
        capture_output=True,
        text=True,
        timeout=seconds,
        env=QUIET | environment,
    )
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def make(*words, **more):
    if not shutil.which("make"):
        pytest.skip("no make")
    return run("make", "-C", LIBRARY, f"CC={' '.join(compiler())}", *words, **more)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("library")
    make(
        f"build={folder}",
        QUICK,
        "all",
        *(folder / name for name in ("cases", "threads", "stack", "elementary")),
    )
    return folder


def questions_and_answers():
    """The module that writes the file of cases."""
    path = LIBRARY / "tests" / "make_cases.py"
    spec = importlib.util.spec_from_file_location("make_cases", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def functions():
    return set(re.findall(r"^ACCOUNTANT_API .*\baccountant_(\w+)\(", HEADER.read_text(), re.M))


@pytest.mark.long
def test_the_library_gives_the_bits_that_python_gives(built, tmp_path):
    cases = tmp_path / "cases.txt"
    cases.write_text("\n".join(questions_and_answers().cases(150)) + "\n")
    assert "150 answers, 0 of them different" in run(built / "cases", cases)


@pytest.mark.long
def test_the_stored_answers_are_near_on_every_platform(built, tmp_path):
    cases = tmp_path / "cases.txt"
    cases.write_text("\n".join(STORED.read_text().splitlines()[:200]))
    assert "0 of them apart" in run(built / "cases", cases, "near")


@pytest.mark.long
def test_another_answer_is_noticed(built, tmp_path):
    lines = [line for line in STORED.read_text().splitlines() if not line.startswith("#")][:100]
    where = next(i for i, line in enumerate(lines) if line.startswith("epsilon_bounds"))
    words = lines[where].split()
    words[-1] = (float.fromhex(words[-1]) * (1.0 + 2.0**-52)).hex()
    lines[where] = " ".join(words)
    (tmp_path / "cases.txt").write_text("\n".join(lines))
    done = subprocess.run([built / "cases", tmp_path / "cases.txt"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "1 of them different" in done.stdout


def test_the_stored_questions_are_those_that_would_be_written():
    lines = [line for line in STORED.read_text().splitlines() if not line.startswith("#")]
    assert len(lines) == 1000
    stored = [line.split(" =")[0] for line in lines[:60]]
    made = [line.split(" =")[0] for line in questions_and_answers().cases(60)]
    assert stored == made, "run libaccountant/tests/make_cases.py libaccountant/tests/cases.txt"


def test_every_function_has_cases():
    asked = {line.split()[0] for line in STORED.read_text().splitlines()} - {"#"}
    assert asked == functions() - {"version", "status_message"}


@pytest.mark.long
def test_only_the_public_names_leave_the_library_and_nothing_can_be_written_to(built):
    if not shutil.which("nm"):
        pytest.skip("no nm")
    public = {f"accountant_{name}" for name in functions()}
    listed = run("nm", "-g", "--defined-only", built / "libaccountant.a").split("\n")
    assert {line.split()[-1].lstrip("_") for line in listed if len(line.split()) == 3} == public
    shared = next(built.glob("libaccountant.*.1"), None) or built / "libaccountant.so.1"
    if shared.suffix != ".dylib":
        listed = run("nm", "-D", "--defined-only", "--with-symbol-versions", shared).split("\n")
        names = {line.split()[-1] for line in listed if " T " in line}
        assert names == {f"{name}@@LIBACCOUNTANT_1" for name in public}
    for compiled in built.glob("*.o"):
        kinds = {
            line.split()[-2] for line in run("nm", compiled).splitlines() if len(line.split()) > 1
        }
        assert not kinds & set("bBdDcC"), f"{compiled.stem} has variables"


@pytest.mark.long
def test_the_c_library_errs_no_more_than_it_is_trusted_to(built, tmp_path):
    truths = ROOT / "accountant" / "selftest" / "elementary.json"
    run(built / "elementary", truths)
    # An error is noticed: one truth of the sine, off by sixteen units.
    before, after = truths.read_text().split('"sin": [\n', 1)
    row = re.match(r'\["[^"]+", "([^"]+)"', after)
    wrong = (float.fromhex(row[1]) * (1.0 + 2.0**-49)).hex()
    (tmp_path / "truths.json").write_text(before + '"sin": [\n' + after.replace(row[1], wrong, 1))
    done = subprocess.run([built / "elementary", tmp_path / "truths.json"], capture_output=True)
    assert done.returncode == 1


@pytest.mark.slow
def test_windows_answers_are_near(tmp_path):
    compiler = "x86_64-w64-mingw32-gcc-posix"
    if not (shutil.which(compiler) and shutil.which("wine")):
        pytest.skip("no mingw-w64 or no wine")
    run(
        *("make", "-C", LIBRARY, f"CC={compiler}", f"build={tmp_path}", "RUN=wine", "CALLS=20"),
        *("CFLAGS=-g0", "all", "check", f"CASES={STORED}", "MATCH=near"),
        seconds=1800.0,
        WINEPREFIX=str(tmp_path / "wine"),
        WINEDEBUG="-all",
    )


@pytest.mark.long
def test_threads_do_not_disturb_each_other(built):
    run(built / "threads")


@pytest.mark.long
def test_every_function_runs_on_a_small_stack(built):
    text = (LIBRARY / "tests" / "stack.c").read_text()
    assert set(re.findall(r"\baccountant_(\w+)\(", text)) == functions()
    assert "on 64 kB" in run(built / "stack")


@pytest.mark.long
@pytest.mark.parametrize("way", [[], ["--static"]])
def test_the_page_on_an_installed_library(built, tmp_path, way):
    if not shutil.which("pkg-config"):
        pytest.skip("no pkg-config")
    prefix = tmp_path / "prefix"
    make(f"build={built}", QUICK, "install", f"prefix={prefix}")
    found = {"PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig")}
    flags = run("pkg-config", "--cflags", "--libs", *way, "libaccountant", **found).split()
    if way:
        (prefix / "lib" / "libaccountant.so").unlink(missing_ok=True)
    page = (ROOT / "docs" / "c.md").read_text()
    program, printed = re.search(r"```c\n(.*?)```.*?```text\n(.*?)```", page, re.S).groups()
    (tmp_path / "noise.c").write_text(program)
    run(*compiler(), "-Wall", "-Werror", tmp_path / "noise.c", "-o", tmp_path / "noise", *flags)
    where = {"LD_LIBRARY_PATH": str(prefix / "lib"), "DYLD_LIBRARY_PATH": str(prefix / "lib")}
    assert run(tmp_path / "noise", **where) == printed
    assert run("pkg-config", "--modversion", "libaccountant", **found).strip() == ac.__version__
    make(f"build={built}", "uninstall", f"prefix={prefix}")
    assert not [path for path in prefix.rglob("*") if path.is_file()]


def test_the_header_is_cpp_too(tmp_path):
    command = next((c for c in ("c++", "g++", "clang++") if shutil.which(c)), None)
    if command is None:
        pytest.skip("no C++ compiler")
    (tmp_path / "x.cpp").write_text('#include "accountant.h"\nint main() { return 0; }\n')
    run(
        command,
        "-Wall",
        "-Wextra",
        "-Werror",
        f"-I{HEADER.parent}",
        "-fsyntax-only",
        tmp_path / "x.cpp",
    )


def test_the_header_names_the_release():
    assert f'ACCOUNTANT_VERSION "{ac.__version__}"' in HEADER.read_text()


def test_the_flags_are_those_of_the_extension_modules():
    (flags,) = re.findall(r"^numerics := (.*)$", (LIBRARY / "Makefile").read_text(), re.M)
    for node in ast.parse((ROOT / "setup.py").read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "FLAGS":
            assert flags.split() == ast.literal_eval(node.value)


def test_the_page_names_every_function_and_status():
    page = (ROOT / "docs" / "c.md").read_text()
    names = re.findall(r"^    (ACCOUNTANT_E?[A-Z]+) = ", HEADER.read_text(), re.M)
    assert len(names) == 8
    assert not [n for n in (*names, *(f"accountant_{f}" for f in functions())) if n not in page]


@pytest.mark.slow
def test_sanitizers_find_nothing(tmp_path):
    shared = f"CFLAGS={SANITIZED} -Wall -Wextra -Wconversion -Wshadow -Werror"
    print(
        make(
            f"build={tmp_path}",
            shared,
            f"LDFLAGS={SANITIZED}",
            "check",
            f"CASES={STORED}",
            "MATCH=near",
        )
    )


@pytest.mark.slow
def test_valgrind_finds_nothing(tmp_path):
    if not shutil.which("valgrind"):
        pytest.skip("valgrind is not installed")
    valgrind = "RUN=valgrind -q --error-exitcode=9 --leak-check=full"
    few = tmp_path / "few.txt"
    few.write_text("\n".join(STORED.read_text().splitlines()[:150]))
    print(
        make(
            f"build={tmp_path}",
            valgrind,
            "CALLS=20",
            "check",
            f"CASES={few}",
            "MATCH=near",
            seconds=3600.0,
        )
    )

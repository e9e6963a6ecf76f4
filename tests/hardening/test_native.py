"""The native core under sanitizers, valgrind and failing allocations; and free of warnings.

The programs are in support/hardening; HARDEN_CALLS multiplies how much they do (docs/hardening.md).
"""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.native import SOURCES, compiler, core_file, folders

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "tests" / "support" / "hardening"
SCALE = int(os.environ.get("HARDEN_CALLS", "1"))
WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
SANITIZERS = [
    "-fsanitize=address,undefined,float-cast-overflow",
    "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
]
WRAPPED = "-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free"
# Whatever a test finds must end the program, and memory kept is a finding.
ENVIRONMENT = os.environ | {
    "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}


def flags_of_the_build() -> list[str]:
    """FLAGS of setup.py, read and not run."""
    for node in ast.parse((ROOT / "setup.py").read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "FLAGS":
            return ast.literal_eval(node.value)
    raise AssertionError("setup.py no longer names FLAGS")


def run(*command: str, seconds: float = 600.0, **environment: str) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=seconds, env=ENVIRONMENT | environment
    )
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def build(directory: Path, *flags: str) -> Path:
    """Compile the whole core with ``flags``, and link each program of support/hardening with it."""
    includes = folders(SOURCES)
    command = [*compiler(), *flags_of_the_build(), *WARNINGS, *flags, *includes]
    objects = []
    for source in sorted(SOURCES.rglob("*.c")):
        objects.append(str(directory / f"{source.stem}.o"))
        run(*command, "-c", str(source), "-o", objects[-1])
    for source in sorted(PROGRAMS.glob("*.c")):
        wrap = [WRAPPED] if source.stem == "allocation" else []
        program = str(directory / source.stem)
        run(*command, str(source), *objects, *wrap, "-o", program, "-lm")
    return directory


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The core as it is shipped; that it compiles says that it is free of warnings."""
    return build(tmp_path_factory.mktemp("plain"), "-g")


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory):
    command = [*compiler(), *SANITIZERS, "-x", "c", "-", "-o", os.devnull]
    if subprocess.run(command, input="int main(void){return 0;}", text=True).returncode:
        pytest.skip("this compiler has no sanitizers")
    return build(tmp_path_factory.mktemp("sanitized"), "-O1", "-g", *SANITIZERS)


@pytest.mark.long
def test_programs_run_on_the_core_as_shipped(plain):
    run(str(plain / "profiles"), str(50 * SCALE), "11")
    run(str(plain / "arrays"), str(50 * SCALE), "12")


@pytest.mark.long
def test_every_failed_allocation_is_reported_and_nothing_is_kept(plain):
    run(str(plain / "allocation"), str(10 * SCALE), "13")


@pytest.mark.long
@pytest.mark.parametrize(("program", "calls"), [("profiles", 60), ("arrays", 100)])
def test_sanitizers_find_nothing(sanitized, program, calls):
    run(str(sanitized / program), str(calls * SCALE), "14")


@pytest.mark.slow
@pytest.mark.parametrize(("program", "calls"), [("profiles", 20), ("arrays", 40)])
def test_valgrind_finds_nothing(plain, program, calls):
    if not shutil.which("valgrind"):
        pytest.skip("valgrind is not installed")
    command = ["valgrind", "-q", "--error-exitcode=9", "--leak-check=full"]
    run(*command, str(plain / program), str(calls * SCALE), "15", seconds=3600.0)


# Planted in a copy of the core, each in a place the programs reach: the tools must see it.
PLANTED = {
    "an element past the end": ("grid.c", "k < g; k++) {\n        o", "k <= g; k++) {\n        o"),
    "workspace not freed": ("plan.c", "free(w->block);", ""),
    "shift by too much": ("vmath.h", "+ 1023) << 52", "+ 1023) << (52 + (x > 9.0 ? 16 : 0))"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANTED)
def test_planted_faults_are_found(name, tmp_path, monkeypatch, sanitized):
    file, old, new = PLANTED[name]
    copy = shutil.copytree(SOURCES, tmp_path / "src")
    path = core_file(file, copy)
    text = path.read_text()
    assert old in text, f"the patch of {name!r} no longer applies"
    path.write_text(text.replace(old, new, 1))
    monkeypatch.setitem(globals(), "SOURCES", copy)
    broken = build(tmp_path, "-O1", "-g", *SANITIZERS)
    programs = [str(broken / program) for program in ("profiles", "arrays")]
    done = [
        subprocess.run([program, "60", "16"], capture_output=True, text=True, env=ENVIRONMENT)
        for program in programs
    ]
    assert any("Sanitizer" in each.stderr or "runtime error" in each.stderr for each in done)


CORE_TESTS = [
    "core/test_boundary.py",
    "noise/test_generator.py",
    "learn/test_sensitivity.py",
    "core/test_consistency.py",
    "analyses/test_mixed.py",
]


@pytest.mark.slow
def test_sanitized_extensions_pass_the_tests_of_the_core(tmp_path, sanitized):
    """Cython's code, and the shapes Python hands over, under the same sanitizers."""
    copy = tmp_path / "copy"
    for part in ("accountant", "tests", "setup.py", "pyproject.toml", "README.md"):
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(
                source, copy / part, ignore=shutil.ignore_patterns("*.so", "__pycache__")
            )
        else:
            shutil.copy(source, copy / part)
    # Optimised, the generated code takes minutes to compile with sanitizers.
    setup = copy / "setup.py"
    setup.write_text(setup.read_text().replace('"-O3"', '"-O0"'))
    flags = " ".join(["-g", *SANITIZERS])
    environment = {"CFLAGS": flags, "LDFLAGS": flags, "PYTHONPATH": str(copy)}
    here = os.getcwd()
    os.chdir(copy)
    try:
        built = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
        run(*built, seconds=1800.0, **environment)
        preload = " ".join(
            subprocess.run(
                [*compiler(), f"-print-file-name={name}"], capture_output=True, text=True
            ).stdout.strip()
            for name in ("libasan.so", "libubsan.so")
        )
        # The interpreter itself keeps memory until it ends.
        environment |= {
            "LD_PRELOAD": preload,
            "ASAN_OPTIONS": "detect_leaks=0",
            "PYTHONMALLOC": "malloc",
        }
        tests = [str(Path("tests") / name) for name in CORE_TESTS]
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
        print(run(*command, seconds=3600.0, **environment))
    finally:
        os.chdir(here)

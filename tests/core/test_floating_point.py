"""A compiler, or options, that break what the proofs assume: the build fails and says why."""

import platform
import re
import subprocess

import pytest

from support.native import FLAGS, SOURCES, compiler, core_file, folders

HEADER = SOURCES / "floating_point.h"
CLOSE = "operation by operation"
WIDER = "FLT_EVAL_METHOD 0"


def errors(*words) -> str:
    """What the compiler says to a look at the files; empty where it accepts them."""
    command = [*compiler(), "-w", *folders(), "-fsyntax-only", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode != 0) == ("error" in done.stderr), done.stderr
    return done.stderr


def is_gcc() -> bool:
    said = subprocess.run([*compiler(), "--version"], capture_output=True, text=True).stdout
    return "Free Software Foundation" in said


def test_the_flags_of_a_build_are_accepted():
    assert not errors(*FLAGS, core_file("search.c"))


@pytest.mark.long
def test_no_file_with_floating_point_is_compiled_with_fast_math():
    files = sorted(SOURCES.rglob("*.c"))
    files = [path for path in files if re.search(r"\b(double|float)\b", path.read_text())]
    assert len(files) > 40
    refused = errors("-std=c11", "-ffast-math", *files)
    assert refused.count("error: #error") == len(files)
    assert CLOSE in refused


@pytest.mark.parametrize(
    "flag", ["-ffinite-math-only", "-freciprocal-math", "-fno-signed-zeros", "-ffp-contract=fast"]
)
def test_parts_of_fast_math_are_noticed(flag):
    if not is_gcc():
        pytest.skip("only GCC says which of its options contradict IEEE 754")
    assert CLOSE in errors("-std=c11", flag, core_file("search.c"))


def test_fused_operations_that_gcc_does_not_tell_of_are_not_risked():
    if not (is_gcc() and platform.machine() == "x86_64"):
        pytest.skip("the options are those of GCC for x86-64")
    assert "-ffp-contract=off" in errors("-std=gnu11", "-mfma", HEADER)
    assert not errors("-std=c11", "-mfma", "-ffp-contract=off", HEADER)


@pytest.mark.parametrize(
    ("macro", "sentence"),
    [("__FLT_EVAL_METHOD__=2", WIDER), ("__DBL_MANT_DIG__=64", "IEEE 754's binary64")],
)
def test_other_doubles_are_noticed(macro, sentence):
    assert sentence in errors("-std=c11", f"-D{macro}", core_file("search.c"))


def test_the_x87_unit_is_noticed():
    if platform.machine() != "x86_64":
        pytest.skip("the options are those of x86")
    words = ["-std=c11", "-m32", "-ffreestanding", "-x", "c", HEADER]
    assert WIDER in errors("-mfpmath=387", *words)
    assert not errors("-msse2", "-mfpmath=sse", *words)

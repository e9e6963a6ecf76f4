"""Compiles pieces of the native core on their own, for tests of what Python cannot reach."""

import ctypes
import getpass
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

SOURCES = Path(__file__).parents[2] / "accountant" / "_core" / "src"
# Beside the folder itself: searches, what certifies, and what trainers call.
FOLDERS = ("search", "certify", "training")
# setup.py's flags, but for the visibility: here C functions are called by name.
FLAGS = [
    "-std=c11",
    "-O3",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-wrapv",
    "-fPIC",
    # A thread may have a stack of 128 kB (musl) or less: whatever is large goes to the heap.
    "-Werror=frame-larger-than=16384",
]
OBJECTS = Path(tempfile.gettempdir()) / f"accountant-objects-{getpass.getuser()}"


def core_files(sources=SOURCES):
    """The C files of the accountant's core: all but those that trainers call."""
    return sorted(path for path in sources.rglob("*.c") if path.parent.name != "training")


def core_file(name, sources=SOURCES):
    """The file of that name, in whichever folder it is."""
    (found,) = sources.rglob(name)
    return found


def folders(sources=SOURCES):
    """The compiler's options for the folders of headers."""
    return [f"-I{sources}", *(f"-I{sources / folder}" for folder in FOLDERS)]


def compiler():
    """The C compiler's command; skips the test where there is none."""
    command = os.environ.get("CC", "").split() or [
        next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), "")
    ]
    if not shutil.which(command[0]):
        pytest.skip("no C compiler")
    if not SOURCES.is_dir():
        pytest.skip("the C sources are not beside these tests")
    return command


def build(directory, files, include=SOURCES):
    """Compile ``files`` into a library of its own in ``directory`` and load it.

    Objects of the core as it is are kept for the next library: many tests compile all of it.
    """
    library = directory / "library.so"
    headers = _contents(sorted(include.rglob("*.h")))
    kept = headers == _contents(sorted(SOURCES.rglob("*.h")))
    objects = [str(_compiled(directory, file, include, headers, kept=kept)) for file in files]
    _run([*compiler(), "-shared", *objects, "-o", str(library), "-lm"])
    return ctypes.CDLL(str(library))


def _compiled(directory, file, include, headers, *, kept):
    command = [*compiler(), *FLAGS, "-c", *folders(include), str(file), "-o"]
    original = next(SOURCES.rglob(file.name), None)
    if not kept or original is None or original.read_bytes() != file.read_bytes():
        found = directory / f"{file.stem}.o"
        _run([*command, str(found)])
        return found
    text = b"\0".join([headers, file.read_bytes(), *map(str.encode, [*compiler(), *FLAGS])])
    found = OBJECTS / f"{file.stem}-{hashlib.sha256(text).hexdigest()}.o"
    if not found.exists():
        OBJECTS.mkdir(mode=0o700, exist_ok=True)
        made = OBJECTS / f"{file.stem}-{os.getpid()}.tmp"
        _run([*command, str(made)])
        made.replace(found)  # another process may make the same one
    return found


def _contents(files):
    return b"\0".join(file.name.encode() + b"\0" + file.read_bytes() for file in files)


def _run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


DRIVER = """
#include <math.h>
#include "vmath.h"
#define EACH(name, expression)                                          \\
    void name(int n, const double *a, const double *b, double *out) {   \\
        for (int i = 0; i < n; i++) {                                   \\
            const double x = a[i], y = b[i];                            \\
            (void)y;                                                    \\
            out[i] = (expression);                                      \\
        }                                                               \\
    }
static double vsin(double x) { double s, c; acct_vsincos(x, &s, &c); return s; }
static double vcos(double x) { double s, c; acct_vsincos(x, &s, &c); return c; }
EACH(vexp, acct_vexp(x))
EACH(vexpm1, acct_vexpm1(x))
EACH(ve2, acct_ve2(x, acct_vexpm1(x)))
EACH(vlog1p, acct_vlog1p(x))
EACH(vlog, acct_vlog(x))
EACH(vatan2, acct_vatan2(x, y))
EACH(vector_sin, vsin(x))
EACH(vector_cos, vcos(x))
EACH(libm_exp, exp(x))
EACH(libm_expm1, expm1(x))
EACH(libm_log, log(x))
EACH(libm_log1p, log1p(x))
EACH(libm_sin, sin(x))
EACH(libm_cos, cos(x))
EACH(libm_atan2, atan2(x, y))
EACH(libm_erfc, erfc(x))
"""


class Elementary:
    """The elementary functions the core uses, by name, over float64 arrays."""

    def __init__(self, directory):
        source = directory / "driver.c"
        source.write_text(DRIVER)
        self._library = build(directory, [source])

    def __call__(self, name, x, y=None):
        x = np.ascontiguousarray(x, dtype=np.float64)
        y = x if y is None else np.ascontiguousarray(y, dtype=np.float64)
        out = np.empty_like(x)
        pointers = [a.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for a in (x, y, out)]
        self._library[name](ctypes.c_int(len(x)), *pointers)
        return out


class Patch(NamedTuple):
    """What stands in a file, and what is put there."""

    old: str
    new: str


class Mutant(NamedTuple):
    """A patch of one file of the core."""

    name: str
    file: str
    patch: Patch

    def applies(self):
        """Return whether there is one place for it."""
        return core_file(self.file).read_text().count(self.patch.old) == 1


def mutants(table):
    """Return the patches of a table by file and name."""
    return [Mutant(*reversed(key.split(": ", 1)), patch) for key, patch in table.items()]


def patched(directory, mutant):
    """Return a copy of the sources, patched."""
    sources = shutil.copytree(SOURCES, directory / "src")
    if mutant is not None:
        assert mutant.applies(), f"the patch of {mutant.name!r} no longer applies"
        path = core_file(mutant.file, sources)
        path.write_text(path.read_text().replace(*mutant.patch))
    return sources


class Bounds(ctypes.Structure):
    """A bracket, as the core returns it."""

    _fields_ = (("lower", ctypes.c_double), ("upper", ctypes.c_double))


class Core:
    """A core compiled from ``sources``, with the calls of accountant._core.answers."""

    REMOVE, ADD, EITHER = range(3)

    def __init__(self, directory, sources):
        self._library = build(directory, core_files(sources), sources)

    def _call(self, name, *arguments, direction):
        out = Bounds()
        doubles = map(ctypes.c_double, arguments)
        status = self._library[name](*doubles, ctypes.c_int(direction), ctypes.byref(out))
        assert status == 0, (name, arguments, status)
        return out.lower, out.upper

    def delta_bounds(self, q, sigma, steps, epsilon, direction):
        return self._call("acct_psg_delta", q, sigma, steps, epsilon, direction=direction)

    def epsilon_bounds(self, q, sigma, steps, delta, direction):
        return self._call("acct_psg_epsilon", q, sigma, steps, delta, direction=direction)

    def renyi_bounds(self, q, sigma, order, direction):
        return self._call("acct_psg_renyi", q, sigma, order, direction=direction)

"""Builds the native core; everything else about the package is in pyproject.toml."""

import hashlib
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

CORE = Path("accountant/_core")
SRC = CORE / "src"
INCLUDE = [str(SRC), *sorted(str(path) for path in SRC.iterdir() if path.is_dir())]
SOURCES = sorted(map(str, SRC.rglob("*.c")))
HEADERS = sorted(map(str, SRC.rglob("*.h")))
MODULES = ("answers", "tools", "training")
# pip builds in folders that it throws away; objects stay here, named by what they were made from.
OBJECTS = Path(os.environ.get("ACCOUNTANT_OBJECTS", "build/objects"))

# The certificates count round-offs operation by operation: no fused multiply-add may be formed
# behind the source's back and nothing may be reassociated (so never -ffast-math).
# The last three only say that nobody reads errno or floating-point traps, nor lets a signed integer
# overflow (Python's own -fwrapv does): values are the same, loops become vectors.
FLAGS = [
    "-std=c11",
    "-O3",
    "-ffp-contract=off",
    "-fvisibility=hidden",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-wrapv",
]
CORE_FLAGS = [*FLAGS, "-g0"]
# What Cython writes converts arguments, and takes four times as long to compile at -O3.
GLUE_FLAGS = [*FLAGS, "-g0", "-O1"]
LINK_FLAGS = ["-s"] if sys.platform == "linux" else []

# The same for Microsoft's compiler, which forms no fused multiply-add for x86-64.
MICROSOFT = ["/std:c11", "/O2", "/fp:precise"]


def processors() -> int:
    """Return how many files to compile at a time: MAX_JOBS, or the processors of this process."""
    jobs = os.environ.get("MAX_JOBS", "")
    if jobs.isdecimal() and int(jobs) > 0:
        return int(jobs)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class build_core(build_ext):  # noqa: N801 - the name of a command
    """Compiles the C core once, into a static library that every extension module links.

    Files are compiled in parallel (``build_ext --parallel`` or MAX_JOBS says how many at a time),
    and only those that something changed for since the last time.
    """

    def build_extensions(self) -> None:
        """Compile all C files together, then link the modules."""
        core_flags, glue_flags = CORE_FLAGS, GLUE_FLAGS
        if self.compiler.compiler_type == "msvc":
            core_flags = glue_flags = MICROSOFT
        with ThreadPoolExecutor(int(self.parallel or processors())) as pool:
            glue = [  # first, because these files take longest
                pool.submit(self.compiled, extension.sources[0], glue_flags)
                for extension in self.extensions
            ]
            core = [pool.submit(self.compiled, source, core_flags) for source in SOURCES]
        objects = [each.result() for each in core]
        library = self.compiler.library_filename("accountant_core", output_dir=self.build_temp)
        Path(library).unlink(missing_ok=True)  # an archive keeps members of other names
        self.compiler.create_static_lib(objects, "accountant_core", self.build_temp)
        for extension, made in zip(self.extensions, glue, strict=True):
            extension.extra_objects = extension.depends = [made.result(), library]
            extension.sources = []
            if self.compiler.compiler_type == "msvc":
                extension.libraries, extension.extra_link_args = [], []  # it has no libm
        super().build_extensions()

    def compiled(self, source: str, flags: list[str]) -> str:
        """Return the object of a C file, from the last time if nothing that made it changed."""
        compiler = getattr(self.compiler, "compiler_so", "cl")
        inputs = hashlib.sha256(repr([compiler, flags, sys.version]).encode())
        for file in (source, *HEADERS):
            inputs.update(Path(file).read_bytes())
        made = OBJECTS / f"{Path(source).stem}-{inputs.hexdigest()[:16]}.o"
        if not made.exists():
            OBJECTS.mkdir(parents=True, exist_ok=True)
            folders = [*INCLUDE, *self.compiler.include_dirs]
            with TemporaryDirectory(dir=OBJECTS) as unfinished:
                (new,) = self.compiler.compile(
                    [source], unfinished, include_dirs=folders, extra_postargs=flags
                )
                os.replace(new, made)
        return str(made)


extensions = [
    Extension(
        f"accountant._core.{name}",
        [str(CORE / f"{name}.pyx")],
        extra_link_args=LINK_FLAGS,
        libraries=["m"],
    )
    for name in MODULES
]

setup(
    cmdclass={"build_ext": build_core},
    ext_modules=cythonize(
        extensions,
        # Generated C goes here, so that it never lands beside, or on top of, the C sources.
        build_dir="build/cython",
        compiler_directives={
            "language_level": 3,
            "boundscheck": False,
            "wraparound": False,
            "freethreading_compatible": True,
            "autotestdict": False,  # no __test__ attribute: the stubs would have to name it
        },
    ),
)

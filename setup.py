"""Builds the native core; everything else about the package is in pyproject.toml."""

from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

CORE = Path("accountant/_core")
SRC = CORE / "src"


def units(folder: Path, *names: str) -> list[str]:
    """Return the paths of C files; all of the folder's when none is named."""
    return sorted(str(path) for path in folder.glob("*.c") if not names or path.stem in names)


TRAINING = SRC / "training"
RENYI = units(SRC, "mixture_renyi", "mixture_renyi_sum", "shift_law")
OTHERS = [*RENYI, *units(SRC, "convolution", "discretise", "elementary")]
SUBSAMPLED = [unit for unit in units(SRC) if unit not in OTHERS]
# One thin module each, and the C it needs: no C file is compiled or linked twice.
MODULES = {
    "convolution": units(SRC, "convolution"),
    "discretise": units(SRC, "discretise"),
    "elementary": units(SRC, "elementary"),
    "environment": [],
    "mixture_renyi": RENYI,
    "randomness": units(TRAINING, "chacha", "discrete_gaussian", "rounded_normal"),
    "rownorms": units(TRAINING, "rownorms"),
    "rows": units(TRAINING, "rows"),
    "subsampled_gaussian": SUBSAMPLED,
}
# Without these a changed header would rebuild nothing.
DEPENDS = sorted(str(path) for path in [*SRC.rglob("*.h"), *CORE.glob("*.pxd")])

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

# The same for Microsoft's compiler, which forms no fused multiply-add for x86-64.
MICROSOFT = ["/std:c11", "/O2", "/fp:precise"]


class build_core(build_ext):  # noqa: N801 - the name of a command
    """Compiles with the flags that the platform's compiler knows."""

    def build_extensions(self) -> None:
        """Exchange the flags, and leave out the library that Windows has no name for."""
        if self.compiler.compiler_type == "msvc":
            for extension in self.extensions:
                extension.extra_compile_args = MICROSOFT
                extension.libraries = []
        super().build_extensions()


extensions = [
    Extension(
        f"accountant._core.{name}",
        [str(CORE / f"{name}.pyx"), *sources],
        include_dirs=[str(SRC), str(TRAINING)],
        depends=DEPENDS,
        extra_compile_args=FLAGS,
        libraries=["m"],
    )
    for name, sources in MODULES.items()
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

"""Floating-point environments other than the default one, for the calling thread."""

import contextlib
import ctypes
import ctypes.util
import functools
import mmap
import platform
import sys

import pytest

# What the C library calls upward, downward and toward zero.
X86 = {"up": 0x800, "down": 0x400, "zero": 0xC00}
ARM = {"up": 0x400000, "down": 0x800000, "zero": 0xC00000}
MODES = ("up", "down", "zero", "flush", "zero and flush")
# stmxcsr [rdi]; ldmxcsr [rdi] and mrs x1, fpcr; str x1, [x0]; ldr x1, [x0]; msr fpcr, x1
MACHINE = platform.machine().lower()
CODE = {
    "x86_64": (b"\x0f\xae\x1f\xc3", b"\x0f\xae\x17\xc3"),
    "aarch64": (
        b"\x01\x44\x3b\xd5\x01\x00\x00\xf9\xc0\x03\x5f\xd6",
        b"\x01\x00\x40\xf9\x01\x44\x1b\xd5\xc0\x03\x5f\xd6",
    ),
}


@functools.cache
def _control():
    """Return what reads and what writes the control register."""
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(MACHINE, MACHINE)
    if machine not in CODE or not hasattr(mmap, "PROT_EXEC"):
        pytest.skip(f"no code for the control register of {platform.machine()}")
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError:
        pytest.skip("memory cannot be made executable here")
    reader, writer = CODE[machine]
    page.write(reader.ljust(64, b"\0") + writer)
    start = ctypes.addressof(ctypes.c_char.from_buffer(page))
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    read_to, write_from = kind(start), kind(start + 64)
    word = ctypes.c_uint64(0)

    def read():
        read_to(ctypes.addressof(word))
        return word.value

    def write(value, _keep=page):
        word.value = value
        write_from(ctypes.addressof(word))

    return read, write


def control():
    """Return the control bits of the floating-point environment, without the sticky flags."""
    return _control()[0]() & ~0x3F


@contextlib.contextmanager
def mode(name):
    """Run in an environment of ``MODES``."""
    read, write = _control()
    before, x86 = read(), MACHINE in ("x86_64", "amd64")
    libm = ctypes.CDLL(ctypes.util.find_library("m"))
    direction = name.removesuffix(" and flush")
    try:
        if direction in X86:
            # The C library's own way: both of x86's units.
            assert libm.fesetround((X86 if x86 else ARM)[direction]) == 0
        if name.endswith("flush"):
            write(read() | (0x8040 if x86 else 1 << 24))
        yield
    finally:
        libm.fesetround(0)
        write(before)


def forget():
    """Empty every cache of the package, so that nothing is remembered from another environment."""
    for name, module in list(sys.modules.items()):
        if name.startswith("accountant"):
            for value in list(vars(module).values()):
                if hasattr(value, "cache_clear"):
                    value.cache_clear()

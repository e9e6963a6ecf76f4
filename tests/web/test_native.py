"""The page's C functions under sanitizers: extreme and impossible questions."""

import os
import subprocess

import pytest

from support.native import SOURCES, compiler
from support.web import ROOT

SANITIZED = "-O1 -g -ffp-contract=off -fsanitize=address,undefined,float-cast-overflow"
LIBRARY, WEB = ROOT / "libaccountant", ROOT / "web"
pytestmark = pytest.mark.skipif(not WEB.exists(), reason="the page is not beside these tests")


@pytest.mark.slow
def test_sanitizers_find_nothing(tmp_path):
    alone = ("convolution", "discretise")
    units = [unit for unit in SOURCES.glob("*.c") if unit.stem not in alone]
    units = [unit for unit in units if not unit.stem.startswith("exchange")]
    units += [*(LIBRARY / "src").glob("*.c"), *(WEB / "native").glob("*.c")]
    folders = [LIBRARY / "include", SOURCES, WEB / "native", ROOT / "tests/support/hardening"]
    command = [*compiler(), "-std=c11", *SANITIZED.split(), "-fno-sanitize-recover=all"]
    command += [f"-I{folder}" for folder in folders]
    program = tmp_path / "hostile"
    subprocess.run(
        [*command, *units, WEB / "tests" / "hostile.c", "-o", program, "-lm"], check=True
    )
    done = subprocess.run(
        [program],
        capture_output=True,
        text=True,
        timeout=1800.0,
        env=os.environ | {"ASAN_OPTIONS": "detect_leaks=1"},
    )
    assert done.returncode == 0, done.stderr
    assert "nothing found" in done.stdout

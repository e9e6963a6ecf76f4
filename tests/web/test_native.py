"""The page's C functions under sanitizers: extreme and impossible questions."""

import os
import subprocess

import pytest

from support.native import compiler, core_files, folders
from support.web import ROOT

SANITIZED = "-O1 -g -ffp-contract=off -fsanitize=address,undefined,float-cast-overflow"
LIBRARY, WEB = ROOT / "libaccountant", ROOT / "web"
pytestmark = pytest.mark.skipif(not WEB.exists(), reason="the page is not beside these tests")


@pytest.mark.slow
def test_sanitizers_find_nothing(tmp_path):
    units = [unit for unit in core_files() if not unit.stem.startswith(("exchange", "grid"))]
    units += [*(LIBRARY / "src").glob("*.c"), *(WEB / "native").glob("*.c")]
    more = [LIBRARY / "include", WEB / "native", ROOT / "tests/support/hardening"]
    command = [*compiler(), "-std=c11", *SANITIZED.split(), "-fno-sanitize-recover=all"]
    command += [*folders(), *(f"-I{folder}" for folder in more)]
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

"""The R package and the Rust crate: one release, every function documented, the same functions.

`.ci/run` checks them with their own tools, where those can be had.
"""

import re
from pathlib import Path

import pytest

import accountant as ac

ROOT = Path(__file__).parents[2]
HEADER = ROOT / "libaccountant" / "include" / "accountant.h"
pytestmark = pytest.mark.skipif(not HEADER.exists(), reason="the library is not beside these tests")


def functions():
    names = re.findall(r"^ACCOUNTANT_API .*\baccountant_(\w+)\(", HEADER.read_text(), re.M)
    assert len(names) == 15
    return set(names) - {"version", "status_message"}


def test_all_are_of_one_release():
    assert f"Version: {ac.__version__}\n" in (ROOT / "r" / "DESCRIPTION").read_text()
    assert f'version = "{ac.__version__}"\n' in (ROOT / "rust" / "Cargo.toml").read_text()


def test_r_has_every_function_and_documents_what_it_exports():
    exported = re.findall(r"^export\((\w+)\)", (ROOT / "r" / "NAMESPACE").read_text(), re.M)
    names = {name.replace("renyi_bounds", "rdp_bounds") for name in functions()}
    assert names - {"epsilon_renyi_upper"} | {"get_epsilon_rdp"} <= set(exported)
    page = (ROOT / "docs" / "r.md").read_text()
    assert not [name for name in exported if f"`{name}`" not in page]


def test_rust_has_every_function_and_documents_it():
    source = "".join(path.read_text() for path in (ROOT / "rust" / "src").glob("*.rs"))
    public = set(re.findall(r"^pub fn (\w+)", source, re.M))
    assert public == functions() | {"version"}
    page = (ROOT / "docs" / "rust.md").read_text()
    assert not [name for name in public if f"`{name}`" not in page]
    native = set(re.findall(r"pub fn accountant_(\w+)\(", source))
    assert native == functions() | {"version", "status_message"}

"""Documentation that is not executed rots: run every example."""

import doctest
import importlib
import importlib.util
import pkgutil
from pathlib import Path

import pytest

import accountant

README = Path(__file__).parents[2] / "README.md"
# Adapters whose own library is no part of the tests' environment; read where it is installed.
NEEDS = {
    "accountant.adapters._opacus_draws": "opacus",
    "accountant.adapters._opacus_loaders": "opacus",
    "accountant.adapters._opacus_clipping": "opacus",
    "accountant.adapters._opacus_ghost": "opacus",
    "accountant.adapters._opacus_steps": "opacus",
    "accountant.adapters._torch_observer": "torch",
    "accountant.adapters.dp_events": "dp_accounting",
    "accountant.adapters.flower": "flwr",
    "accountant.adapters.flower_accountant": "flwr",
    "accountant.adapters.lightning": "lightning",
    "accountant.adapters.nvflare": "nvflare",
    "accountant.adapters.opacus": "opacus",
    "accountant.adapters.pfl": "pfl",
    "accountant.adapters.pipeline_dp": "pipeline_dp",
    "accountant.adapters.torch_steps": "torch",
    "accountant.adapters.torch_units": "torch",
    "accountant.adapters.transformers": "transformers",
}
MODULES = [
    module.name
    for module in pkgutil.walk_packages(accountant.__path__, "accountant.")
    if module.name not in NEEDS or importlib.util.find_spec(NEEDS[module.name])
]


@pytest.mark.long(keep=64)
@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_examples_in_the_readme():
    results = doctest.testfile(str(README), module_relative=False)
    assert results.attempted > 0
    assert results.failed == 0

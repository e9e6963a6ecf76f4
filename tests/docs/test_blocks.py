"""Every block of code on every page is run: here, or by the test that is named here."""

import re
import shlex
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

import accountant as ac
from accountant.cli import main
from accountant.learn import LogisticRegression
from support.teachers import Nearest

DOCS = Path(__file__).parents[2] / "docs"
# Pages whose blocks other tests run.
ELSEWHERE = {
    "python": {
        "audit.md": "tests/cli/test_audit.py",
        "census.md": "tests/analyses/test_smoothed_line.py",
        "how_it_works.md": "tests/docs/test_guides.py",
        "migration.md": "tests/docs/test_migration.py",
        "own_mechanism.md": "tests/docs/test_guides.py",
        "plots.md": "tests/docs/test_pages.py",
        "report.md": "tests/docs/test_pages.py",
        "textbook.md": "tests/docs/test_guides.py",
        "tutorial.md": "tests/docs/test_guides.py",
    },
    "sh": {
        "audit.md": "tests/cli/test_audit.py",
        "budgets.md": "tests/cli/test_ledgers.py",
        "c.md": "tests/libaccountant/test_library.py",
        "cli.md": "tests/docs/test_pages.py",
        "install.md": "tests/docs/test_install.py",
        "r.md": ".ci/run",
        "releasing.md": ".ci/release",
        "report.md": "tests/docs/test_pages.py",
        "store.md": "tests/cli/test_stores.py",
        "web.md": "tests/cli/test_web.py",
    },
}


SHELL = ("certificates.md", "choose_noise.md", "trainers.md", "tutorial.md")
# The checkers of certificates: tests/verifier builds and runs them.
NOT_OURS = ("pip install ./verifier", "dp-verify ", "cc ", "./dp_verify_c ")


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.S | re.M)


def people():
    """Return a table of ages and incomes, as the page on synthetic records has."""
    rng = np.random.default_rng(0)
    incomes = np.array([">50K", "<=50K"])
    return {"age": rng.uniform(16, 99, 500), "income": incomes[rng.integers(0, 2, 500)]}


def clusters(records):
    """Return records of ten classes that are far apart."""
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 10, records)
    return rng.normal(size=(records, 10)) * 0.1 + np.eye(10)[labels], labels


def of_pate():
    records, labels = clusters(6000)
    return {
        "X": records,
        "y": labels,
        "public": clusters(20)[0],
        "make_model": Nearest,
        "fit_student": lambda public, where, labels: Nearest().fit(public[where], labels),
        "result": SimpleNamespace(mechanism=ac.Gaussian(40.0)),
        "table": people(),
    }


def of_trainers():
    rng = np.random.default_rng(0)
    return {"X": rng.normal(size=(2048, 784)).astype(np.float32), "y": rng.integers(0, 10, 2048)}


def of_matrices():
    rng = np.random.default_rng(0)
    records = rng.normal(size=(8000, 3))
    labels = (records[:, 0] > 0).astype(np.int64)
    return {"model": LogisticRegression(3), "X": records, "y": labels}


def of_units(worker):
    """What the blocks for training by units begin with."""
    names = {
        "network": worker.Model(0),
        "records": worker.data(),
        "collate": worker.collate,
        "owners": list(range(30)) * 3,
    }
    if find_spec("lightning"):
        from support.lightning_module import Module

        names["module"] = Module()
    return names


def of_adapters():
    opacus = pytest.importorskip("opacus")
    pytest.importorskip("dp_accounting")
    import torch
    from dp_accounting import dp_event

    from support import units_worker

    model = torch.nn.Linear(3, 2)
    return {
        "opacus": opacus,
        "torch": torch,
        "data": torch.utils.data.TensorDataset(torch.randn(200, 3), torch.arange(200) % 2),
        "model": model,
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
        **of_units(units_worker),
        "event": dp_event.GaussianDpEvent(2.0),
        "count": 3,
    }


# What the text of a page says is there before its blocks.
GIVEN = {
    "adapters.md": of_adapters,
    "budgets.md": dict,
    "certificates.md": dict,
    "choose_noise.md": dict,
    "federations.md": dict,
    "linear_models.md": lambda: {"ac": ac},
    "matrix_mechanisms.md": of_matrices,
    "pate_and_selection.md": of_pate,
    "samplers.md": dict,
    "statistics.md": dict,
    "store.md": dict,
    "trainers.md": of_trainers,
}


@pytest.mark.long(keep=3)
@pytest.mark.parametrize("page", sorted(GIVEN))
def test_blocks_run_one_after_the_other(page, tmp_path, monkeypatch):
    if page == "linear_models.md":
        pytest.importorskip("sklearn")
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page", **GIVEN[page]()}
    for number, block in enumerate(blocks(DOCS / page, "python")):
        framework = re.search(
            r"^(?:from|import) (transformers|lightning|jax_privacy)\b", block, re.MULTILINE
        )
        if framework and not find_spec(framework[1]):
            compile(block, page, "exec")
            continue
        if "LocalCluster" in block:
            # Machines are tests/learn's matter: a cluster takes longer to start than all else.
            compile(block, page, "exec")
            continue
        exec(compile(block, f"{page}, block {number}", "exec"), names)


@pytest.mark.parametrize("page", SHELL)
def test_commands_run_one_after_the_other(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=(2000, 2)), rng.integers(0, 2, 2000)])
    np.savetxt("data.csv", rows, delimiter=",", header="a,b,label", comments="")
    ledger = ac.Accountant()
    ledger.step(noise_multiplier=1.1, sampling_probability=0.01, count=100)
    ledger.save("ledger.json")
    ran = 0
    for block in blocks(DOCS / page, "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            if line.startswith("accountant "):
                done = CliRunner().invoke(main, shlex.split(line)[1:])
                assert done.exit_code == 0, done.output
                ran += 1
            else:
                assert not line or line.startswith(NOT_OURS), line
    assert ran


@pytest.mark.parametrize("language", ["python", "sh"])
def test_no_block_is_forgotten(language):
    here = {"python": set(GIVEN), "sh": set(SHELL)}[language]
    pages = {page.name for page in DOCS.glob("*.md") if blocks(page, language)}
    assert pages == here | set(ELSEWHERE[language])
    for test in ELSEWHERE[language].values():
        assert (DOCS.parent / test).exists()

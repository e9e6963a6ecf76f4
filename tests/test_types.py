"""What a type checker and an editor see: no Any in what users write, and every typo."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = ROOT / "tests" / "support" / "typing"
# Part of every NumPy array's type: its shape is not checked.
SHAPES = re.compile(r"(tuple\[Any, \.\.\.\]|(floating|integer|signedinteger)\[Any\])")


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Check both scripts, the first with the type of each variable revealed."""
    pytest.importorskip("mypy")
    folder = tmp_path_factory.mktemp("types")
    text = (SCRIPTS / "typical.py").read_text()
    names = re.findall(r"^(\w+)(?:, (\w+))? = ", text, re.M)
    names = [name for pair in names for name in pair if name]
    (folder / "typical.py").write_text(text + "".join(f"\nreveal_type({name})" for name in names))
    (folder / "typos.py").write_text((SCRIPTS / "typos.py").read_text())
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"),
         str(folder / "typical.py"), str(folder / "typos.py")],
        capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip
    return names, done.stdout


@pytest.mark.slow
def test_typical_lines_have_no_any_and_typos_are_reported(found):
    names, output = found
    assert len(names) >= 50
    problems = [line for line in output.splitlines() if "typical.py" in line and "error:" in line]
    assert problems == []
    types = re.findall(r'typical\.py:\d+: note: Revealed type is "(.*)"', output)
    assert len(types) == len(names)
    for name, kind in zip(names, types, strict=True):
        assert "Any" not in SHAPES.sub("", kind), (name, kind)
    assert dict(zip(names, types, strict=True))["mixed"].endswith("Mechanism")
    lines = (SCRIPTS / "typos.py").read_text().splitlines()
    planted = {k for k, line in enumerate(lines, 1) if line.endswith("# typo")}
    reported = set(map(int, re.findall(r"typos\.py:(\d+): error", output)))
    assert len(planted) == 10
    assert reported == planted


ESTIMATOR = """
import numpy as np
from accountant.adapters.sklearn import DPLogisticRegression

X, y = np.zeros((10, 2)), np.zeros(10)
fitted = DPLogisticRegression(epsilon=1.0, data_norm=1.0).fit(X, y)
reveal_type(fitted)
reveal_type(fitted.score(X, y))
reveal_type(fitted.spent())
reveal_type(fitted.privacy_.epsilon)
fitted.pedict(X)
fitted.epsilon_
DPLogisticRegression(epsilom=1.0)
"""


@pytest.mark.slow
def test_estimators_have_types_though_scikit_learn_has_none(tmp_path):
    pytest.importorskip("mypy")
    pytest.importorskip("sklearn")
    (tmp_path / "estimator.py").write_text(ESTIMATOR)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"),
         str(tmp_path / "estimator.py")],
        capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip
    types = re.findall(r'Revealed type is "(.*)"', done.stdout)
    assert types == ["accountant.adapters.sklearn.DPLogisticRegression", *["float"] * 3]
    assert sorted(map(int, re.findall(r"estimator\.py:(\d+): error", done.stdout))) == [11, 12, 13]


@pytest.mark.long
def test_the_typical_lines_run():
    """Names and arguments are those of the library, whatever a checker says."""
    exec(compile((SCRIPTS / "typical.py").read_text(), "typical.py", "exec"), {})

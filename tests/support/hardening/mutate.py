"""Mutation testing: ``python tests/support/hardening/mutate.py [MODULE ...] [OPTIONS]``.

One mutant changes one operator, comparison, constant, min or max, or drops a negation, in one
function of a module whose errors would cost soundness. The module's own tests then run with -x in
a process of their own, what noticed earlier mutants first, then the quickest; tests that take
longer than --slowest are left out. A mutant they do not notice is printed as ``survived``. Mutants
are drawn at random when there are more than the limit; --match takes of those drawn the ones whose
description holds a text, or one of several.
"""

import argparse
import ast
import collections
import copy
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path

import pytest

# What takes long to import, and is not what is mutated.
for name in ("numpy", "scipy.special", "scipy.stats", "hypothesis", "flint", "mpmath"):
    import_module(name)

ROOT = Path(__file__).parents[3]
CONVERSIONS = ["conversions/test_conversions_mutants.py", "conversions/test_conversions.py"]
FILTERS = ["ledger/test_filters_mutants.py", "ledger/test_filters.py", "ledger/test_accountant.py"]
GRID = ["analyses/pld/test_loss_grid.py", "analyses/pld/test_pld.py"]
UNDERFLOW = ["cross_cutting/test_underflow.py"]
LAWS = ["mechanisms/test_gaussian_laplace_mutants.py", "mechanisms/test_mechanisms.py"]
MERGED = ["pairs/test_product.py"]
COMPOSED = ["composition/test_composition.py"]
# Whose errors would cost soundness, and which tests are about a module beside those of its name.
BESIDE = {
    "_basics/display": ["test_display.py"],
    "_basics/intervals": ["test_intervals.py", *CONVERSIONS[:1]],
    "_basics/rounding": ["test_rounding.py", *MERGED, *UNDERFLOW],
    "conversions/guarantees": CONVERSIONS,
    "conversions/renyi": ["analyses/test_renyi_conversion.py", *CONVERSIONS],
    "analyses/gdp": CONVERSIONS,
    "analyses/renyi_conversion": CONVERSIONS,
    "analyses/over_steps/history": [],
    "ledger/filters": FILTERS,
    "ledger/budget": FILTERS,
    "ledger/meters": FILTERS,
    "ledger/evaluation": FILTERS[:2],
    "ledger/kinds": ["ledger/test_accountant_affordable.py", *FILTERS],
    "composition/composition": [*COMPOSED, *MERGED],
    "composition/problems": COMPOSED,
    "pairs/excess": ["pairs/test_sampled_loss.py", *UNDERFLOW],
    "pairs/product": MERGED,
    "mechanisms/gaussian": LAWS,
    "mechanisms/laplace": LAWS,
    "audit/two_sample": ["audit/test_confidence_mutants.py", "audit/test_confidence.py"],
    "analyses/pld/loss_grid": ["analyses/pld/test_spacings.py", *GRID],
    "analyses/pld/fft": GRID,
    "analyses/pld/composed_law": GRID,
}
ALONE = ("analyses/classical", "audit/one_run")
ALONE += ("calibration/subsampled_gaussian", "ledger/individual", "search")
BESIDE |= {module: [] for module in ALONE}


def tests_of(module):
    """Return the tests named after a module, what mutation testing asked for first, and others."""
    folder, _, name = module.rpartition("/")
    own = [f"{folder}/test_{name}{more}.py".lstrip("/") for more in ("_mutants", "")]
    there = [each for each in own if (ROOT / "tests" / each).exists()]
    return list(dict.fromkeys([*there, *BESIDE[module]]))


ARITHMETIC = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
CALLS = {
    "min": "max", "max": "min", "up": "down", "down": "up", "any": "all", "all": "any",
    "ceiling": "floor", "floor": "ceiling", "ratio_up": "ratio_down",
}  # fmt: skip


def variants(node):
    """What may stand in a node's place."""
    made = []
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        made.append(_with(node, op=ARITHMETIC[type(node.op)]()))
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        made.append(_with(node, ops=[COMPARISONS[type(node.ops[0])](), *node.ops[1:]]))
        negated = ast.UnaryOp(ast.Not(), copy.deepcopy(node))
        made.append(negated)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
        made.append(copy.deepcopy(node.operand))
    if isinstance(node, ast.BoolOp):
        made.append(_with(node, op=ast.And() if isinstance(node.op, ast.Or) else ast.Or()))
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        made.append(ast.Constant(node.value + 1))
        if node.value:
            made.append(ast.Constant(node.value / 2 if type(node.value) is float else 0))
    if isinstance(node, ast.Call):
        name = (
            node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        )
        if name in CALLS:
            swapped = copy.deepcopy(node)
            if isinstance(swapped.func, ast.Attribute):
                swapped.func.attr = CALLS[name]
            else:
                swapped.func.id = CALLS[name]
            made.append(swapped)
    return made


def _with(node, **changes):
    made = copy.deepcopy(node)
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def _expressions(tree):
    """Every place in a function body: the function, the parent, the field, the index."""
    found = []
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        for statement in function.body:
            for parent in ast.walk(statement):
                if isinstance(parent, (ast.Raise, ast.JoinedStr)) or _in_message(parent, statement):
                    continue
                for field, value in ast.iter_fields(parent):
                    if isinstance(value, list):
                        found += [
                            (function.name, parent, field, i)
                            for i, item in enumerate(value)
                            if isinstance(item, ast.expr)
                        ]
                    elif isinstance(value, ast.expr):
                        found.append((function.name, parent, field, None))
    return found


def _in_message(node, statement):
    """Whether a node is part of what an exception says."""
    return any(
        node is inner
        for outer in ast.walk(statement)
        if isinstance(outer, (ast.Raise, ast.JoinedStr))
        for inner in ast.walk(outer)
    )


def mutants(source):
    """Every mutant of a source: what was changed, and the text."""
    tree, made, seen = ast.parse(source), [], set()
    original = ast.unparse(tree)
    for function, parent, field, index in _expressions(tree):
        value = getattr(parent, field)
        old = value if index is None else value[index]
        for new in variants(old):
            change = f"{ast.unparse(old)} -> {ast.unparse(ast.fix_missing_locations(new))}"
            owner, key = (vars(parent), field) if index is None else (value, index)
            owner[key] = new
            text = ast.unparse(ast.fix_missing_locations(tree))
            owner[key] = old
            if text != original and text not in seen:
                seen.add(text)
                made.append((f"{function}:{old.lineno}: {change}", text))
    return made


class Watched:
    """The tests of one module, and what is known of them: seconds, and mutants noticed."""

    def __init__(self, copied, names, slowest):
        self.copied, self.slowest = copied, slowest
        # Without the workers of pyproject.toml, and with nothing to say.
        self.options = ["-x", "-q", "-o", "addopts=", "-m", "not slow", "-p", "no:xdist"]
        self.options += ["-p", "no:cacheprovider"]
        self.options += [str(copied / "tests" / n) for n in names]
        self.seconds = {}
        self.noticed = collections.Counter()

    def pytest_collection_modifyitems(self, items):
        known = [i for i in items if self.seconds.get(i.nodeid, 0.0) < self.slowest]
        known.sort(key=lambda i: (-self.noticed[i.nodeid], self.seconds.get(i.nodeid, 0.0)))
        items[:] = known

    def pytest_runtest_logstart(self, nodeid):
        if self.seconds:  # one that no longer ends is killed, and so noticed
            signal.setitimer(signal.ITIMER_PROF, 2.0 + 8.0 * self.seconds.get(nodeid, self.slowest))
        os.write(self.pipe, f"started {nodeid}\n".encode())

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.failed:
            os.write(self.pipe, f"{report.duration} {report.nodeid}\n".encode())

    def fail(self):
        """Run the tests on what the copy holds, and remember which noticed."""
        read, self.pipe = os.pipe()
        child = os.fork()  # of a process that has imported all but the package
        if child == 0:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            os.chdir(self.copied)
            sys.path.insert(0, str(self.copied))
            os._exit(pytest.main(self.options, plugins=[self]) != 0)
        os.close(self.pipe)
        with open(read) as lines:
            seen = [line.rstrip().split(" ", 1) for line in lines]
        noticed = os.waitpid(child, 0)[1] != 0
        for seconds, name in seen:
            if seconds != "started":
                self.seconds.setdefault(name, float(seconds))
        if noticed and seen:
            self.noticed[seen[-1][1]] += 1
        return noticed


def prepared(copied, path, names, slowest):
    """Run the tests once without a mutant: how long each takes, and bytecode for all that stays."""
    path.write_text(ast.unparse(ast.parse(path.read_text())))
    tests = Watched(copied, names, slowest)
    sys.dont_write_bytecode = False
    assert not tests.fail(), f"the tests of {path} fail without a mutant"
    sys.dont_write_bytecode = True
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
        compiled.unlink()
    return tests


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*")
    parser.add_argument("--limit", type=int, default=10**6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--match", action="append")
    # Seconds: what takes longer measures time or memory, and would be run for every survivor.
    parser.add_argument("--slowest", type=float, default=2.5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        copied = Path(directory)
        shutil.copytree(ROOT / "accountant", copied / "accountant")
        shutil.copytree(ROOT / "tests", copied / "tests")
        shutil.copy(ROOT / "pyproject.toml", copied)
        for name in given.modules or BESIDE:
            path = copied / "accountant" / f"{name}.py"
            source = path.read_text()
            tests = prepared(copied, path, tests_of(name), given.slowest)
            every = mutants(source)
            chosen = random.Random(given.seed).sample(every, min(given.limit, len(every)))
            if given.match:
                chosen = [mutant for mutant in chosen if any(m in mutant[0] for m in given.match)]
            score, start = 0, time.monotonic()
            for what, text in chosen:
                path.write_text(text)
                noticed = tests.fail()
                score += noticed
                if not noticed:
                    print(f"  survived: {name}: {what}", flush=True)
            path.write_text(source)
            each = (time.monotonic() - start) / max(len(chosen), 1)
            found = f"{score} of {len(chosen)} noticed, {len(every)} in all"
            print(f"{name}: {found}, {each:.1f} s each", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

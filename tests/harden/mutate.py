"""Mutation testing: ``python tests/harden/mutate.py [MODULE ...] [--limit N] [--seed N]``.

One mutant changes one operator, comparison, constant, min or max, or drops a negation, in one
function of a module whose errors would cost soundness. The module's own tests then run with -x in
a process of their own; a mutant they do not notice is printed as ``survived``. Mutants are drawn
at random when there are more than the limit. docs/hardening.md has the scores.
"""

import argparse
import ast
import copy
import os
import random
import shutil
import signal
import sys
import tempfile
from importlib import import_module
from pathlib import Path

import pytest

# What takes long to import, and is not what is mutated.
for name in ("numpy", "scipy.special", "scipy.stats", "hypothesis", "flint", "mpmath"):
    import_module(name)
sys.dont_write_bytecode = True

ROOT = Path(__file__).parents[2]
# The tests that are about a module, quickest first.
TESTS = {
    "rounding": ["test_rounding.py"],
    "intervals": ["test_intervals.py"],
    "conversions/functional": ["test_conversions.py"],
    "conversions/gaussian": ["test_conversions.py"],
    "conversions/pure": ["test_conversions.py"],
    "conversions/renyi": ["test_conversions.py"],
    "analyses/classical": ["test_classical.py"],
    "analyses/gdp": ["test_classical.py", "test_conversions.py"],
    "analyses/renyi_conversion": ["test_conversions.py"],
    "ledger/filters": ["test_ledger_filters.py", "test_ledger.py"],
    "ledger/exact": ["test_ledger_filters.py"],
}
EXTRA = "test_harden_soundness.py"
ARITHMETIC = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
CALLS = {
    "min": "max", "max": "min", "up": "down", "down": "up", "any": "all", "all": "any",
    "ceiling": "floor", "floor": "ceiling", "ratio_up": "ratio_down",
}  # fmt: skip


def variants(node: ast.AST) -> list[ast.AST]:
    """What may stand in a node's place."""
    made: list[ast.AST] = []
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
                swapped.func.id = CALLS[name]  # type: ignore[attr-defined]
            made.append(swapped)
    return made


def _with(node: ast.AST, **changes: object) -> ast.AST:
    made = copy.deepcopy(node)
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def _expressions(tree: ast.Module) -> list[tuple[str, ast.AST, str, int | None]]:
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


def _in_message(node: ast.AST, statement: ast.AST) -> bool:
    """Whether a node is part of what an exception says."""
    return any(
        node is inner
        for outer in ast.walk(statement)
        if isinstance(outer, (ast.Raise, ast.JoinedStr))
        for inner in ast.walk(outer)
    )


def mutants(source: str) -> list[tuple[str, str]]:
    """Every mutant of a source: what was changed, and the text."""
    tree, made, seen = ast.parse(source), [], set()
    original = ast.unparse(tree)
    for function, parent, field, index in _expressions(tree):
        value = getattr(parent, field)
        old = value if index is None else value[index]
        for new in variants(old):
            line, before, after = (
                old.lineno,
                ast.unparse(old),
                ast.unparse(ast.fix_missing_locations(new)),
            )
            if index is None:
                setattr(parent, field, new)
            else:
                value[index] = new
            text = ast.unparse(ast.fix_missing_locations(tree))
            if index is None:
                setattr(parent, field, old)
            else:
                value[index] = old
            if text != original and text not in seen:
                seen.add(text)
                made.append((f"{function}:{line}: {before} -> {after}", text))
    return made


def killed(copied: Path, tests: list[str]) -> bool:
    """Whether the tests notice what the copy holds."""
    paths = [str(copied / "tests" / name) for name in tests if (copied / "tests" / name).exists()]
    child = os.fork()  # of a process that has imported all but the package
    if child == 0:
        signal.alarm(600)  # one that no longer ends is killed, and so noticed
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        os.chdir(copied)
        sys.path.insert(0, str(copied))
        os._exit(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *paths]) != 0)
    return os.waitpid(child, 0)[1] != 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*")
    parser.add_argument("--limit", type=int, default=10**6)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        copied = Path(directory)
        shutil.copytree(ROOT / "accountant", copied / "accountant")
        shutil.copytree(ROOT / "tests", copied / "tests")
        shutil.copy(ROOT / "pyproject.toml", copied)
        for name in given.modules or TESTS:
            path = copied / "accountant" / f"{name}.py"
            source, tests = path.read_text(), [EXTRA, *TESTS[name]]
            path.write_text(ast.unparse(ast.parse(source)))
            assert not killed(copied, tests), f"the tests of {name} fail without a mutant"
            every = mutants(source)
            chosen = random.Random(given.seed).sample(every, min(given.limit, len(every)))
            score = 0
            for what, text in chosen:
                path.write_text(text)
                noticed = killed(copied, tests)
                score += noticed
                if not noticed:
                    print(f"  survived: {name}: {what}", flush=True)
            path.write_text(source)
            print(f"{name}: {score} of {len(chosen)} noticed, {len(every)} in all", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Damaged and forged documents: never a traceback, never a pass of a false claim.

``CERTIFICATE_MUTANTS=10000 pytest -m slow tests/verifier/test_mutations.py`` is the long run.
A claim that the checker accepts is compared with the accountant's own lower bound.
"""

import ast
import copy
import json
import math
import os
import random
from pathlib import Path

import pytest

import accountant as ac
from dp_verifier import Refused, check
from dp_verifier.__main__ import main
from support.certificate_sweep import is_false, mutated

MUTANTS = int(os.environ.get("CERTIFICATE_MUTANTS", "1000"))
STEP = ac.PoissonSampled(ac.Gaussian(1.0), 0.01)
RUNS = (
    (1000 * STEP, 1e-5),
    (500 * STEP + 700 * ac.PoissonSampled(ac.Gaussian(1.2), 0.02) + ac.Gaussian(9.0), 1e-6),
    (380 * ac.PoissonSampled(ac.Gaussian(0.594), 3.77e-5), 1e-17),  # with labels
    (STEP, 1e-5),
    (4 * ac.Gaussian(1.0), 1e-9),
)


@pytest.fixture(scope="module")
def documents():
    return [json.loads(ac.certificate(*each).text) for each in RUNS]


def survivors(documents, count, seed):
    """Changed documents that pass with a false claim."""
    rng = random.Random(seed)
    for _ in range(count):
        text = json.dumps(mutated(rng.choice(documents), rng))
        try:
            claim, _ = check(text)
        except Refused:
            continue
        if is_false(claim):
            yield text


@pytest.mark.long
def test_no_changed_document_passes_with_a_false_claim(documents):
    assert next(survivors(documents, 120, 0), None) is None


@pytest.mark.slow
def test_no_changed_document_passes_with_a_false_claim_in_a_long_run(documents):
    assert next(survivors(documents, MUTANTS, 1), None) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "[]",
        "[" * 100_000,
        '{"a":' * 30_000,
        "1" * 300_000,
        '{"format": "dp-certificate", "format": "dp-certificate"}',
        '{"format": NaN}',
        '{"format": "\\ud800"}',
    ],
)
def test_what_is_no_certificate_is_refused(text):
    with pytest.raises(Refused):
        check(text)


@pytest.mark.slow
def test_work_is_bounded(documents):
    for key, value in (("orders", 10**5), ("nodes", 10**4), ("orders", 10**9), ("nodes", 10**9)):
        large = copy.deepcopy(documents[0])
        line = large["evidence"]["remove"]
        (line if key == "orders" else line["rules"][0])[key] = value
        large["claim"]["epsilon"] *= 0.5
        with pytest.raises(Refused):
            check(json.dumps(large))


def test_sums_over_many_shifts_at_many_knots_are_refused(documents):
    large = copy.deepcopy(documents[0])
    large["claim"]["parts"][0] |= {"shifts": [1] * 400, "weights": [1e-5] * 400}
    rule = large["evidence"]["remove"]["rules"][0]
    first, last = rule["first"], rule["first"] + (rule["nodes"] - 1) * rule["spacing"]
    rule["decay"] = [first + (last - first) * k / 2000 for k in range(2000)]
    with pytest.raises(Refused, match="shifts are too many"):
        check(json.dumps(large))


def test_the_command_prints_claim_and_verdict(documents, tmp_path, capsys):
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps(documents[1]))
    assert main([str(good)]) == 0
    printed = capsys.readouterr().out
    for words in ("claimed: (", "sigma 1.0, shifts [1.0], weights [0.01], count 500", "assumed"):
        assert words in printed
    assert printed.endswith("PASS\n")
    documents[1]["claim"]["epsilon"] *= math.nextafter(1.0, 0.0) * (1 - 1e-8)
    bad.write_text(json.dumps(documents[1]))
    assert main([str(bad), str(good)]) == 1
    assert "FAIL" in capsys.readouterr().out
    assert main([str(tmp_path / "missing.json")]) == 2
    assert main([str(tmp_path / "missing.json"), str(bad)]) == 1
    assert main([]) == 2


def test_the_command_says_of_which_direction_a_claim_is(documents, tmp_path, capsys):
    document, file = copy.deepcopy(documents[4]), tmp_path / "one.json"
    document["claim"]["direction"] = "add"
    del document["evidence"]["remove"]
    file.write_text(json.dumps(document))
    assert main([str(file)]) == 0
    printed = capsys.readouterr().out
    assert printed.endswith("PASS of the direction add alone\n")
    assert "-differential privacy of the direction add alone," in printed


def test_a_file_is_read_to_its_end_or_refused(documents, tmp_path):
    long = json.dumps(documents[0] | {"note": "\u00e9" * 99_000}, ensure_ascii=False).encode()
    assert len(long) < 200_000
    file = tmp_path / "long.json"
    file.write_bytes(long)
    assert main([str(file)]) == 0
    file.write_bytes(long + b" " * 5000 + b"something else")
    assert main([str(file)]) == 1


SOURCES = sorted((Path(__file__).parents[2] / "verifier" / "dp_verifier").glob("*.py"))


def lines_of_code(path):
    """Lines that are neither blank, nor a comment, nor part of a docstring."""
    text, doc = path.read_text(), set()
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", None)
        first = body[0] if isinstance(body, list) and body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            doc.update(range(first.lineno, first.end_lineno + 1))
    stripped = enumerate(map(str.strip, text.splitlines()), 1)
    return sum(bool(line) and line[0] != "#" and k not in doc for k, line in stripped)


def test_the_checker_has_at_most_500_lines_of_code():
    assert SOURCES
    assert sum(map(lines_of_code, SOURCES)) <= 500

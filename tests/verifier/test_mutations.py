"""Damaged and forged documents: never a traceback, never a pass of a false claim.

``CERTIFICATE_MUTANTS=10000 pytest -m slow tests/verifier/test_mutations.py`` is the long run.
A claim that the checker accepts is compared with the accountant's own lower bound.
"""

import copy
import json
import math
import os
import random

import numpy as np
import pytest

pytest.importorskip("flint")
import accountant as ac
from accountant._core import subsampled_gaussian as core
from dp_verifier import Refused, check
from dp_verifier.__main__ import main

MUTANTS = int(os.environ.get("CERTIFICATE_MUTANTS", "1000"))
STEP = ac.PoissonSampled(ac.Gaussian(1.0), 0.01)
RUNS = (
    (1000 * STEP, 1e-5),
    (500 * STEP + 700 * ac.PoissonSampled(ac.Gaussian(1.2), 0.02) + ac.Gaussian(9.0), 1e-6),
    (380 * ac.PoissonSampled(ac.Gaussian(0.594), 3.77e-5), 1e-17),  # with labels
    (STEP, 1e-5),
    (4 * ac.Gaussian(1.0), 1e-9),
)
VALUES = (None, True, "1", "", [], {}, [1.0], 0, -1, 0.0, 1e-300, 1e300, 10**30, float("nan"))
VALUES += (float("inf"), float("-inf"), 1, 2, 0.5, 1e-9, 1e9)


@pytest.fixture(scope="module")
def documents():
    return [json.loads(ac.certificate(*each).text) for each in RUNS]


def places(value, path=()):
    """Every place of a document."""
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*path, key))
    if isinstance(value, list):
        for index in range(len(value)):
            yield from places(value[index], (*path, index))


def mutated(document, rng):
    """A document with one to three changes."""
    document = copy.deepcopy(document)
    for _ in range(rng.choice((1, 1, 2, 3))):
        path = rng.choice([place for place in places(document) if place])
        holder = document
        for key in path[:-1]:
            holder = holder[key]
        key, old = path[-1], holder[path[-1]]
        kind = rng.random()
        if kind < 0.1:
            del holder[key]
        elif kind < 0.2:
            ways = document.get("evidence")
            if isinstance(ways, dict) and len(ways) == 2:
                document["evidence"] = dict(zip(ways, reversed(ways.values()), strict=True))
        elif kind < 0.4 or type(old) not in (int, float):
            holder[key] = copy.deepcopy(rng.choice(VALUES))
        elif type(old) is int:
            holder[key] = old + rng.choice((-old // 2, -1, 1, old, 10 * old))
        else:
            holder[key] = old * rng.choice((0.5, 0.99, 1 - 1e-8, 1 + 1e-8, 1.01, 2.0, -1.0))
    return document


def is_false(claim):
    """Whether the accountant's lower ends contradict a claim that was accepted."""
    laws = [part for part in claim.parts if getattr(part, "weights", (1,))[0]]
    if not laws or any(len(getattr(law, "shifts", ())) != 1 for law in laws):
        return False
    scale = [float(law.sigma) / float(law.shifts[0]) for law in laws]
    q, delta = [float(law.weights[0]) for law in laws], float(claim.delta)
    steps = [float(law.count) for law in laws]
    for way in ("remove", "add") if claim.direction == "both" else (claim.direction,):
        direction = core.REMOVE if way == "remove" else core.ADD
        try:
            found = core.heterogeneous_delta_bounds(
                np.array(q), np.array(scale), np.array(steps), float(claim.epsilon), direction
            )
        except ac.DomainError:  # noise that the core does not take
            continue
        if found[0] > delta * (1 + 1e-12):
            return True
    return False


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
    assert main([str(tmp_path / "missing.json")]) == 1
    assert main([]) == 2


def test_a_file_is_read_to_its_end_or_refused(documents, tmp_path):
    long = json.dumps(documents[0] | {"note": "\u00e9" * 99_000}, ensure_ascii=False).encode()
    assert len(long) < 200_000
    file = tmp_path / "long.json"
    file.write_bytes(long)
    assert main([str(file)]) == 0
    file.write_bytes(long + b" " * 5000 + b"something else")
    assert main([str(file)]) == 1

"""The sweep of certificates over the whole domain, one problem a seed, which can be continued.

``python -m support.certificate_sweep sweep.jsonl 0 10000`` in tests/ judges the seeds from 0 to
10,000 that the file does not have yet and appends one line each. A line has the digest of the
document: what is known of a document holds as long as the checker stays, whoever made it.
"""

import copy
import hashlib
import json
import random
import sys
import time
from pathlib import Path

import numpy as np

import accountant as ac
from accountant._core import answers as core
from dp_verifier import Refused, check
from support import floating_point_modes as modes
from support.draws import between

VALUES = (None, True, "1", "", [], {}, [1.0], 0, -1, 0.0, 1e-300, 1e300, 10**30, float("nan"))
VALUES += (float("inf"), float("-inf"), 1, 2, 0.5, 1e-9, 1e9)


def random_run(rng):
    """A problem of the sweep's domain: parameters over all their magnitudes."""

    kinds = rng.choice((1, 1, 1, 2, 3))
    run = None
    for _ in range(kinds):
        q, sigma = between(rng, 1e-9, 1.0), between(rng, 0.2, 100.0)
        steps = round(between(rng, 1, 1e12))
        part = steps * ac.PoissonSampled(ac.Gaussian(sigma), q)
        run = part if run is None else run + part
    return run, between(rng, 1e-30, 0.9)


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


def passes(document):
    """Whether the checker accepts a document; anything but a refusal is an error."""
    try:
        check(document if isinstance(document, str) else json.dumps(document))
    except Refused:
        return False
    return True


def timed(call, *arguments):
    """Return what a call returns, and the seconds of the processor that it takes."""
    start = time.process_time()
    found = call(*arguments)
    return found, time.process_time() - start


def judged(seed):
    """Make and check the certificate of one problem, a false claim and a damaged document.

    The claim is false with less ε, with none less δ; every tenth problem has both.
    """
    rng = random.Random(seed)
    run, delta = random_run(rng)
    record = {"seed": seed}
    if seed % 5 == 0:  # the answer asked afresh
        modes.forget()
        _, record["answer"] = timed(run.epsilon, delta)
    modes.forget()
    try:
        made, record["making"] = timed(ac.certificate, run, delta)
    except ac.UnsupportedError as error:
        return record | {"verdict": f"no certificate: {error}"}
    record |= {"digest": hashlib.sha256(made.text.encode()).hexdigest(), "larger": made.larger}
    record["bytes"] = len(made.text)
    least = float(run.epsilon_bounds(delta).lower)
    if made.epsilon < least:
        return record | {"verdict": "the claim is false"}
    accepted, record["checking"] = timed(passes, made.text)
    record["verdict"] = "passed" if accepted else "refused"
    document = json.loads(made.text)
    if made.epsilon * (1 - 1e-8) < least:
        claim = document["claim"] | {"epsilon": made.epsilon * (1 - 1e-8)}
        record["lower epsilon"] = passes(document | {"claim": claim})
    if made.epsilon == 0.0 or ("lower epsilon" in record and seed % 10 == 0):
        claim = document["claim"] | {"delta": delta * (1 - 1e-6)}
        if float(run.delta_bounds(made.epsilon).lower) > claim["delta"]:
            record["lower delta"] = passes(document | {"claim": claim})
    damaged = json.dumps(mutated(document, rng))
    try:
        record["damaged"] = "false" if is_false(check(damaged)[0]) else "accepted"
    except Refused:
        record["damaged"] = "refused"
    return record


def known(path):
    """The records of a file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def main():
    """Continue a sweep."""
    path, first, last = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    done = {record["seed"] for record in known(path)}
    with path.open("a") as file:
        for seed in range(first, last):
            if seed not in done:
                file.write(json.dumps(judged(seed)) + "\n")
                file.flush()


if __name__ == "__main__":
    main()

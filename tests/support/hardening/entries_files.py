"""The fuzzer at what is kept in files: ledgers and checkpoints, sound and damaged."""

from __future__ import annotations

import json
import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import accountant as ac
from accountant.learn import checkpoint
from accountant.ledger import schema
from accountant.ledger.document import checksum
from support.hardening.draws import CORNERS, INTEGERS, Draw, Finding, judged
from support.hardening.entries_mechanisms import mechanism


def _ledger(draw: Draw) -> ac.Accountant:
    ledger = ac.Accountant(ac.Budget(50.0, 1e-5) if draw.below(2) else None)
    for _ in range(draw.below(5)):
        before = ledger.history
        try:
            ledger.compose(mechanism(draw), draw.count(), draw.choice([None, "x", "é", 3, ""]))
        except ac.AccountantError:
            if ledger.history != before:
                raise Finding("a refused release was recorded") from None
        except Exception as error:
            raise Finding(f"compose raised {error!r}") from error
    return ledger


def _same(text: str | bytes) -> None:
    """A text is refused, or a ledger that writes itself as an equal one."""
    try:
        ledger = ac.Accountant.from_json(text)  # type: ignore[arg-type]
    except ac.AccountantError:
        return
    except Exception as error:
        raise Finding(f"from_json({text!r}) raised {error!r}") from error
    again = ac.Accountant.from_json(ledger.to_json())
    if again.history != ledger.history or again.budget != ledger.budget:
        raise Finding(f"{text!r} does not come back")


def ledgers(draw: Draw) -> None:
    """Records, questions, and the text they are kept as."""
    ledger = _ledger(draw)
    judged(ledger.epsilon, draw.delta())
    judged(ledger.delta, draw.loss(), most=1.0)
    if ledger.budget is not None:
        left = judged(ledger.remaining)
        if left is not None and not (0.0 <= left.fraction <= 1.0 and left.spent <= left.capacity):
            raise Finding(f"{ledger!r}: {left!r}")
    judged(ledger.to_json)
    _same(ledger.to_json())


def _templates() -> list[str]:
    ledger = ac.Accountant(ac.Budget(8.0, 1e-5, orders=[4, 8]))
    ledger.compose(ac.PoissonSampled(ac.Gaussian(1.5), 0.01), 10, "a")
    ledger.compose(ac.Laplace(20.0), 2, time=1.5)
    free = ac.Accountant()
    free.compose(2 * ac.Gaussian(3.0) + ac.RandomizedResponse(0.5))
    free.compose(ac.MixtureOfGaussians(2.0, sensitivities=(0.0, 1.0), probabilities=(0.5, 0.5)))
    free.compose(ac.DominatingPMFs((0.5, 0.5), (0.25, 0.75)))
    return [ac.Accountant().to_json(), ledger.to_json(), free.to_json()]


TEMPLATES = _templates()


def bytes_of_ledgers(draw: Draw) -> None:
    """A ledger's text, bytes changed: on disk and as text."""
    content = bytearray(draw.choice(TEMPLATES).encode())
    for _ in range(1 + draw.below(4)):
        at, kind = draw.below(len(content) + 1), draw.below(4)
        if kind == 0:
            content[at : at + 1] = draw.take(1)
        elif kind == 1:
            del content[at : at + 1 + draw.below(8)]
        elif kind == 2:
            content[at:at] = draw.take(1 + draw.below(8))
        else:
            del content[at:]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "ledger.json"
        path.write_bytes(bytes(content))
        judged(ac.Accountant.load, path)
    _same(content.decode("utf-8", "replace"))


def _json(draw: Draw, depth: int = 0) -> Any:
    kind = draw.below(10 if depth < 4 else 7)
    if kind < 3:
        value = draw.choice(CORNERS)
        return value if math.isfinite(value) else draw.choice(schema.names())
    if kind == 3:
        return draw.choice(INTEGERS)
    if kind == 4:
        return draw.choice([None, True, False, "", "inf", "ADD_OR_REMOVE", "Gaussian"])
    if kind == 5:
        return {"number": draw.choice(["inf", "-inf", "nan", "1", 3])}
    if kind == 6:
        return {"relation": draw.choice(["ADD_OR_REMOVE", "REPLACE_ONE", "X"])}
    if kind == 7:
        return [_json(draw, depth + 1) for _ in range(draw.below(4))]
    if kind == 8:
        return {"array": [_json(draw, depth + 1) for _ in range(draw.below(4))]}
    names = ["noise_multiplier", "sensitivity", "epsilon0", "parts", "mechanism", "scale", "base"]
    parameters = {draw.choice(names): _json(draw, depth + 1) for _ in range(draw.below(4))}
    return {"mechanism": draw.choice(schema.names()), "parameters": parameters}


def _places(value: Any) -> list[tuple[Any, Any]]:
    keys = (
        value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    )
    own = [(value, key) for key in keys]
    return own + [place for key in keys for place in _places(value[key])]


def trees_of_ledgers(draw: Draw) -> None:
    """A ledger's values changed, under a checksum that fits."""
    document = json.loads(draw.choice(TEMPLATES))
    for _ in range(1 + draw.below(3)):
        places = _places(document["ledger"])
        if not places:
            break
        container, key = draw.choice(places)
        if draw.below(6) == 0 and isinstance(container, dict):
            del container[key]
        elif draw.below(6) == 0 and isinstance(container, dict):
            container[draw.choice(["x", "", "count", "parameters"])] = _json(draw)
        else:
            container[key] = _json(draw)
    document["checksum"] = checksum(document["revision"], document["ledger"])
    _same(json.dumps(document))


def checkpoints(draw: Draw) -> None:
    """A checkpoint's bytes changed, with and without a code that fits."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "run"
        kept = checkpoint.Checkpoint(path)
        kept.save(checkpoint.Saved({"step": 3}, {"weights": np.arange(5.0)}))
        content = bytearray(path.read_bytes())
        for _ in range(1 + draw.below(3)):
            at = draw.below(len(content))
            if draw.below(3):
                content[at : at + 1] = draw.take(1)
            else:
                del content[at : at + 1 + draw.below(40)]
        if draw.below(2):
            body = bytes(content[: -checkpoint.CODE_BYTES])
            content[:] = body + kept._code(body)
        path.write_bytes(bytes(content))
        judged(kept.load)

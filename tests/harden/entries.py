"""Targets of the fuzzer: bytes choose an entry and its arguments; a wrong answer raises Finding.

A call may raise an AccountantError. Anything else it raises, a NaN, a bracket upside down or a
number outside its range is a finding. tests/test_harden_fuzz.py runs a little of each target,
``python tests/harden/fuzz.py`` as much as one likes.
"""

from __future__ import annotations

import dataclasses
import json
import math
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import accountant as ac
from accountant import attack, conversions
from accountant.analyses import classical, gdp
from accountant.bounds import Bounds
from accountant.learn import checkpoint
from accountant.ledger import schema
from accountant.ledger.document import checksum
from accountant.mechanisms.base import Mechanism


class Finding(Exception):  # noqa: N818 (what is found, not what goes wrong)
    """What no input may bring about."""


CORNERS = (
    0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 1e-5, 1e-9, 1e-300, 5e-324, 2.2250738585072014e-308, 1e300,
    1.7976931348623157e308, 2.0**53, 2.0**53 + 2.0, math.inf, -math.inf, math.nan,
    1.0 - 2.0**-53, 1.0 + 2.0**-52, 2.0**-53, 700.0, 745.2, 1e15, 0.1, 4.0, 100.0,
)  # fmt: skip
INTEGERS = (0, 1, 2, 3, 10, 1000, 10**6, 10**12, 2**53, 2**53 + 1, -1, 10**400, 64)
JUNK: tuple[Any, ...] = (
    None, True, False, "1.0", b"x", 1j, [], {}, [1.0, True], [[1.0], [1.0, 2.0]], np.array(["a"]),
    np.float32(0.1), np.int8(3), np.bool_(True), np.array([]), np.array([[0.5, 1.0]]), object, ...,
    np.longdouble("0.1"), np.float16(2.0), np.array([None]), (1, 2), range(3), float,
    np.datetime64(3, "s"),
)  # fmt: skip


class Draw:
    """Numbers, words and choices from bytes; zeros once they are used up."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def used(self) -> str:
        """What has been read, in hexadecimal."""
        return self._data[: self._at].hex()

    def take(self, size: int) -> bytes:
        part = self._data[self._at : self._at + size]
        self._at += size
        return part.ljust(size, b"\0")

    def below(self, n: int) -> int:
        return int.from_bytes(self.take(2 if n <= 1 << 16 else 4), "little") % n

    def choice(self, items: Any) -> Any:
        return items[self.below(len(items))]

    def unit(self) -> float:
        return int.from_bytes(self.take(4), "little") / 2**32

    def log_uniform(self, low: float, high: float) -> float:
        return math.exp(math.log(low) + self.unit() * (math.log(high) - math.log(low)))

    def wild(self) -> Any:
        """Anything at all."""
        kind = self.below(4)
        if kind == 0:
            return self.choice(CORNERS)
        if kind == 1:
            return self.choice(INTEGERS)
        if kind == 2:
            return struct.unpack("<d", self.take(8))[0]
        return self.choice(JUNK)

    def sane(self, low: float, high: float, odds: int = 12) -> Any:
        """Mostly a number that makes sense."""
        if self.below(odds) == 0:
            return self.wild()
        return self.log_uniform(low, high)

    def probability(self) -> Any:
        return self.sane(1e-9, 1.0)

    def delta(self) -> Any:
        return self.sane(1e-30, 0.99)

    def loss(self) -> Any:
        return self.sane(1e-6, 1e3)

    def noise(self) -> Any:
        return self.sane(0.2, 100.0)

    def count(self, most: int = 10**6) -> Any:
        return self.wild() if self.below(12) == 0 else round(self.log_uniform(1, most))


def judged(call: Callable[..., Any], *arguments: Any, most: float = math.inf, **named: Any) -> Any:
    """Call, and look at what comes back."""
    try:
        result = call(*arguments, **named)
    except ac.AccountantError as error:
        # The core's own "no certified answer" is a refusal too, but one it asks to be told of.
        if "no certified answer" in str(error) or not str(error):
            raise Finding(f"{call.__name__}{arguments}{named}: {error!r}") from error
        return None
    except Exception as error:
        raise Finding(f"{call.__name__}{arguments}{named} raised {error!r}") from error
    if isinstance(result, Bounds):
        ends = [result.lower, result.upper]
        good = np.all(np.asarray(ends[0]) <= np.asarray(ends[1]))
    else:
        ends, good = [result], True
    if isinstance(result, (Bounds, float, np.ndarray)):
        values = [np.asarray(end, dtype=float) for end in ends]
        good = good and all(np.all(v >= 0.0) and np.all(v <= most) for v in values)
        if not good:
            raise Finding(f"{call.__name__}{arguments}{named} returned {result!r}")
    return result


def quick(draw: Draw) -> None:
    q, sigma, steps, workers = draw.probability(), draw.noise(), draw.count(10**9), None
    if draw.below(8) == 0:
        q = np.array([draw.log_uniform(1e-6, 1.0) for _ in range(1 + draw.below(3))])
        workers = draw.choice([None, 1, 2, 0, -1, 1.5, True])
    kind = draw.below(9)
    if kind == 0:
        judged(ac.get_epsilon, q, sigma, steps, draw.delta(), workers=workers)
    elif kind == 1:
        judged(ac.get_delta, q, sigma, steps, draw.loss(), workers=workers, most=1.0)
    elif kind == 2:
        judged(ac.epsilon_bounds, q, sigma, steps, draw.delta())
    elif kind == 3:
        judged(ac.delta_bounds, q, sigma, steps, draw.loss(), most=1.0)
    elif kind == 4:
        judged(ac.get_rdp, q, sigma, steps, draw.sane(1.01, 1e4), workers=workers)
    elif kind == 5:
        judged(attack.attack_tpr, q, sigma, steps, draw.probability(), most=1.0)
    elif kind == 6:
        judged(attack.membership_advantage, q, sigma, steps, most=1.0)
    elif kind == 7:
        judged(attack.bayes_accuracy, q, sigma, steps, draw.probability(), most=1.0)
    else:
        prior, tpr = draw.probability(), draw.probability()
        judged(attack.positive_predictive_value, q, sigma, steps, prior, tpr, most=1.0)


def calibration(draw: Draw) -> None:
    epsilon, delta = draw.sane(1e-3, 100.0), draw.delta()
    kind = draw.below(4)
    if kind == 0:
        judged(ac.calibrate_sigma, epsilon, delta, q=draw.probability(), steps=draw.count(10**5))
    elif kind == 1:
        judged(ac.calibrate_steps, epsilon, delta, q=draw.probability(), sigma=draw.noise())
    elif kind == 2:
        judged(
            ac.calibrate_q, epsilon, delta, sigma=draw.noise(), steps=draw.count(10**5), most=1.0
        )
    else:
        judged(ac.calibrate, lambda x: ac.Gaussian(x), epsilon=epsilon, delta=delta)


CONVERSIONS: tuple[tuple[Callable[..., Any], str, float], ...] = (
    (conversions.approximate_dp_tradeoff, "edp", 1.0),
    (conversions.gdp_to_epsilon, "md", math.inf),
    (conversions.gdp_to_delta, "me", 1.0),
    (conversions.gdp_to_rdp, "mo", math.inf),
    (conversions.gdp_to_zcdp, "m", math.inf),
    (conversions.largest_gdp, "ed", math.inf),
    (conversions.pure_to_rdp, "eo", math.inf),
    (conversions.pure_to_zcdp, "e", math.inf),
    (conversions.pure_to_gdp, "e", math.inf),
    (conversions.zcdp_to_rdp, "eo", math.inf),
    (conversions.zcdp_to_epsilon, "ed", math.inf),
    (conversions.zcdp_to_delta, "ee", 1.0),
    (conversions.tcdp_to_epsilon, "eod", math.inf),
    (conversions.tcdp_to_delta, "eoe", 1.0),
    (gdp.gdp_delta_bounds, "me", 1.0),
    (gdp.gdp_epsilon_bounds, "md", math.inf),
)


def conversion(draw: Draw) -> None:
    kinds = {
        "e": draw.loss,
        "d": draw.delta,
        "p": draw.probability,
        "m": lambda: draw.sane(1e-6, 1e3),
        "o": lambda: draw.sane(1.0001, 1e6),
    }
    kind = draw.below(len(CONVERSIONS) + 4)
    if kind < len(CONVERSIONS):
        call, signature, most = CONVERSIONS[kind]
        judged(call, *(kinds[letter]() for letter in signature), most=most)
        return
    pairs = [(draw.loss(), draw.delta(), draw.count()) for _ in range(draw.below(4))]
    if kind == len(CONVERSIONS):
        judged(classical.basic_epsilon, pairs, draw.delta())
    elif kind == len(CONVERSIONS) + 1:
        form = draw.choice(["kairouz", "hyperbolic", "original", "x", None])
        judged(classical.advanced_epsilon, pairs, draw.delta(), form=form)
    elif kind == len(CONVERSIONS) + 2:
        judged(gdp.compose_gdp, [(draw.sane(1e-6, 1e3), draw.count()) for _ in pairs])
    else:
        slope = draw.choice([draw.log_uniform(1e-6, 1e3), *CORNERS])
        judged(conversions.rdp_to_epsilon, lambda order: order * slope, draw.delta())
        judged(conversions.rdp_to_delta, lambda order: order * slope, draw.loss(), most=1.0)


def _field(draw: Draw, part: dataclasses.Field[Any], depth: int) -> Any:
    kind = str(part.type)
    if draw.below(20) == 0:
        return draw.wild()
    if "tuple[tuple[Mechanism" in kind:
        return tuple(
            (mechanism(draw, depth + 1), draw.count(1000)) for _ in range(1 + draw.below(2))
        )
    if "tuple[Mechanism" in kind:
        return tuple(mechanism(draw, depth + 1) for _ in range(1 + draw.below(2)))
    if "tuple[float" in kind:
        weights = [draw.unit() for _ in range(1 + draw.below(4))]
        total = math.fsum(weights) or 1.0
        return tuple(w / total for w in weights)
    if kind == "Mechanism":
        return mechanism(draw, depth + 1)
    if kind == "bool":
        return bool(draw.below(2))
    if "Relation" in kind:
        return draw.choice(list(ac.NeighbouringRelation))
    if "int" in kind:
        return draw.count(30)
    if kind == "float":
        if "probability" in part.name or "delta" in part.name:
            return draw.sane(1e-6, 1.0)
        return draw.sane(0.05, 20.0)
    return draw.choice(["gumbel", "laplace", "exponential", None, 1.0])


def mechanism(draw: Draw, depth: int = 0) -> Mechanism:
    """A mechanism of a random kind; AccountantError where its parameters are refused."""
    # Not what other tests have registered.
    shipped = schema._registry().items()
    registry = [
        kind
        for name, kind in sorted(shipped)
        if name not in SKIPPED and kind.__module__.startswith("accountant.")
    ]
    if depth > 1:
        return ac.Gaussian(draw.log_uniform(0.3, 10.0))
    kind = draw.choice(registry)
    fields = [part for part in dataclasses.fields(kind) if part.init]
    values = {schema._argument(part): _field(draw, part, depth) for part in fields}
    # By far the commonest mistake would be a relation the others do not have.
    if draw.below(4) and "relation" in values:
        del values["relation"]
    return kind(**values)


# Their parameters are functions.
SKIPPED = ("LossDistribution", "RenyiCurve")


def mechanisms(draw: Draw) -> None:
    try:
        value = mechanism(draw)
    except ac.AccountantError:
        return
    except Exception as error:
        raise Finding(f"a constructor raised {error!r}") from error
    kind = draw.below(8)
    if kind == 0:
        judged(value.epsilon, draw.delta())
    elif kind == 1:
        judged(value.delta, draw.loss(), most=1.0)
    elif kind == 2:
        judged(value.epsilon_bounds, draw.delta())
    elif kind == 3:
        judged(value.delta_bounds, draw.loss(), most=1.0)
    elif kind == 4:
        judged(value.rdp, draw.sane(1.01, 1e4))
    elif kind == 5:
        judged(value.tradeoff, draw.probability(), most=1.0)
    elif kind == 6:
        judged(lambda: value.mu)
        judged(lambda: value.rho)
    else:
        judged(lambda: hash(value))
        judged(lambda: value.group(draw.count(10)))
        judged(lambda: repr(value))
        judged(lambda: draw.count(100) * value + value)


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
    free.compose(ac.MixtureOfGaussians(2.0, (0.0, 1.0), (0.5, 0.5)))
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


def command_line(draw: Draw) -> None:
    from click.testing import CliRunner

    from accountant.cli import main

    words = [
        "epsilon",
        "delta",
        "calibrate",
        "compare",
        "account",
        "explain",
        "--help",
        "--version",
    ]
    words += list(main.commands)
    options = ["--q", "--sigma", "--steps", "--delta", "--epsilon", "--batch-size", "--epochs"]
    options += ["--dataset-size", "--json", "-x", "--order", "--fpr"]
    values = [
        "0.01",
        "1",
        "1000",
        "1e-5",
        "nan",
        "inf",
        "-1",
        "x",
        "",
        "1e400",
        "0",
        "9" * 30,
        "1/3",
    ]
    arguments = [draw.choice(words)]
    if arguments[0] in ("train", "compare"):
        return  # they read data, and may work for long
    for _ in range(draw.below(6)):
        arguments += [draw.choice(options), draw.choice(values)]
    done = CliRunner().invoke(main, arguments)  # without --plot nothing is written
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise Finding(f"accountant {arguments}: {done.exception!r}") from done.exception


TARGETS: dict[str, Callable[[Draw], None]] = {
    target.__name__: target
    for target in (
        quick,
        calibration,
        conversion,
        mechanisms,
        ledgers,
        bytes_of_ledgers,
        trees_of_ledgers,
        checkpoints,
        command_line,
    )
}

"""Targets of the fuzzer: bytes choose an entry and its arguments; a wrong answer raises Finding.

tests/hardening/test_fuzz.py runs a little of each target, ``make fuzz`` as much as
one likes.
"""

import dataclasses
import json
import math
import tempfile
from pathlib import Path

import numpy as np
from click.testing import CliRunner

import accountant as ac
from accountant import attack, conversions
from accountant.analyses import classical, gdp
from accountant.cli import main
from accountant.learn import checkpoint
from accountant.learn.convex.mechanism import ObjectivePerturbation
from accountant.ledger import schema
from accountant.ledger.document import checksum
from support.hardening.draws import CORNERS, INTEGERS, Draw, Finding, judged  # noqa: F401

# Numbers in, numbers out: one call, calibration, conversion.


def quick(draw):
    q, sigma, steps, workers = draw.probability(), draw.noise(), draw.count(10**9), None
    if draw.below(8) == 0:
        q = np.array([draw.log_uniform(1e-6, 1.0) for _ in range(1 + draw.below(3))])
        workers = draw.choice([None, 1, 2, 0, -1, 1.5, True])
    run = q, sigma, steps
    calls = [
        lambda: judged(ac.get_epsilon, *run, draw.delta(), workers=workers),
        lambda: judged(ac.get_delta, *run, draw.loss(), workers=workers, most=1.0),
        lambda: judged(ac.epsilon_bounds, *run, draw.delta()),
        lambda: judged(ac.delta_bounds, *run, draw.loss(), most=1.0),
        lambda: judged(ac.get_rdp, *run, draw.sane(1.01, 1e4), workers=workers),
        lambda: judged(attack.attack_tpr, *run, draw.probability(), most=1.0),
        lambda: judged(attack.membership_advantage, *run, most=1.0),
        lambda: judged(attack.bayes_accuracy, *run, draw.probability(), most=1.0),
        lambda: judged(
            attack.positive_predictive_value, *run, draw.probability(), draw.probability(), most=1.0
        ),
    ]
    draw.choice(calls)()


def calibration(draw):
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


CONVERSIONS = (
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


def conversion(draw):
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


# Mechanisms of every kind and their compositions.

# Their parameters are functions.
SKIPPED = ("LossDistribution", "RenyiCurve")


def _field(draw, part, depth):
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


def mechanism(draw, depth=0):
    """A mechanism of a random kind; AccountantError where its parameters are refused."""
    # Not what was registered by other tests, or when they imported more of the package: the same
    # bytes always mean the same mechanism.
    kinds = {**schema._built_in(), "ObjectivePerturbation": ObjectivePerturbation}
    registry = [kind for name, kind in sorted(kinds.items()) if name not in SKIPPED]
    if depth > 1:
        return ac.Gaussian(draw.log_uniform(0.3, 10.0))
    kind = draw.choice(registry)
    fields = [part for part in dataclasses.fields(kind) if part.init]
    values = {schema._argument(part): _field(draw, part, depth) for part in fields}
    # By far the commonest mistake would be a relation the others do not have.
    if draw.below(4) and "relation" in values:
        del values["relation"]
    return kind(**values)


def mechanisms(draw):
    try:
        value = mechanism(draw)
    except ac.AccountantError:
        return
    except Exception as error:
        raise Finding(f"a constructor raised {error!r}") from error
    calls = [
        lambda: judged(value.epsilon, draw.delta()),
        lambda: judged(value.delta, draw.loss(), most=1.0),
        lambda: judged(value.epsilon_bounds, draw.delta()),
        lambda: judged(value.delta_bounds, draw.loss(), most=1.0),
        lambda: judged(value.rdp, draw.sane(1.01, 1e4)),
        lambda: judged(value.tradeoff, draw.probability(), most=1.0),
        lambda: (judged(lambda: value.mu()), judged(lambda: value.rho())),
    ]
    kind = draw.below(len(calls) + 1)
    if kind < len(calls):
        calls[kind]()
    else:
        judged(lambda: hash(value))
        judged(lambda: value.group(draw.count(10)))
        judged(lambda: repr(value))
        judged(lambda: draw.count(100) * value + value)


# What is kept in files: ledgers and checkpoints, sound and damaged.


def _ledger(draw):
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


def _same(text):
    """A text is refused, or a ledger that writes itself as an equal one."""
    try:
        ledger = ac.Accountant.from_json(text)
    except ac.AccountantError:
        return
    except Exception as error:
        raise Finding(f"from_json({text!r}) raised {error!r}") from error
    again = ac.Accountant.from_json(ledger.to_json())
    if again.history != ledger.history or again.budget != ledger.budget:
        raise Finding(f"{text!r} does not come back")


def ledgers(draw):
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


def _templates():
    ledger = ac.Accountant(ac.Budget(8.0, 1e-5, orders=[4, 8]))
    ledger.compose(ac.PoissonSampled(ac.Gaussian(1.5), 0.01), 10, "a")
    ledger.compose(ac.Laplace(20.0), 2, time=1.5)
    free = ac.Accountant()
    free.compose(2 * ac.Gaussian(3.0) + ac.RandomizedResponse(0.5))
    free.compose(ac.MixtureOfGaussians(2.0, sensitivities=(0.0, 1.0), probabilities=(0.5, 0.5)))
    free.compose(ac.DominatingPMFs((0.5, 0.5), (0.25, 0.75)))
    return [ac.Accountant().to_json(), ledger.to_json(), free.to_json()]


TEMPLATES = _templates()


def bytes_of_ledgers(draw):
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


def _json(draw, depth=0):
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


def _places(value):
    keys = (
        value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    )
    own = [(value, key) for key in keys]
    return own + [place for key in keys for place in _places(value[key])]


def trees_of_ledgers(draw):
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


def checkpoints(draw):
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


def command_line(draw):
    words = ["epsilon", "delta", "calibrate", "compare", "account", "explain", "--help"]
    words += ["--version", *main.commands]
    options = ["--q", "--sigma", "--steps", "--delta", "--epsilon", "--batch-size", "--epochs"]
    options += ["--dataset-size", "--json", "-x", "--order", "--fpr"]
    values = ["0.01", "1", "1000", "1e-5", "nan", "inf", "-1", "x", "", "1e400", "0", "9" * 30]
    values += ["1/3"]
    arguments = [draw.choice(words)]
    if arguments[0] in ("train", "compare"):
        return  # they read data, and may work for long
    for _ in range(draw.below(6)):
        arguments += [draw.choice(options), draw.choice(values)]
    done = CliRunner().invoke(main, arguments)  # without --plot nothing is written
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise Finding(f"accountant {arguments}: {done.exception!r}") from done.exception


TARGETS = {
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

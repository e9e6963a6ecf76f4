"""What shows the truths of conformance/truths.json, and what is often accounted too low.

The file states each question: tests/cross_cutting/test_conformance.py shows both of its ends anew,
δ(ε) of the larger direction above δ at the lower end and at most δ at the upper one, in ball
arithmetic.
"""

import math
from pathlib import Path

from flint import arb

from support.oracle import composed, compositions, monotone_ratio, psg

ROOT = Path(__file__).parents[2]
TRUTHS = ROOT / "conformance" / "truths.json"
SIDES = "remove", "add"


def part(kind, count=1, **parameters):
    """Return one part of a release, as the file writes it."""
    return {"kind": kind, "count": count, **parameters}


def gaussian_run(q, sigma, steps):
    """Return Gaussian noise on Poisson samples, or on all records."""
    return part("gaussian", steps, sigma=sigma, **({"q": q} if q < 1.0 else {}))


def shuffled_loaders():
    """Yield parts, δ, relation, oracle and the lower end of shuffled batches."""
    for sigma, batches, delta in ((0.4, 1000, 1e-6), (0.5, 100, 1e-5), (0.5, 10000, 1e-6)):
        made = part("shuffled gaussian", sigma=sigma, batches=batches)
        yield [made], delta, "zero-out", "event", shuffled(sigma, batches, delta)


def fixed_sizes():
    """Yield the same for batches of fixed size."""
    for sigma, steps in ((1.0, 500), (2.0, 2000), (4.0, 10_000)):
        made = part("fixed size gaussian", steps, sigma=sigma, batch=100, records=10_000)
        yield [made], 1e-5, "replace-one", "one pair", replaced(made, 1e-5)


# What is often accounted too low.
COUNTEREXAMPLES = {"shuffled": shuffled_loaders, "fixed size": fixed_sizes}


def shuffled(sigma, batches, delta):
    """Return a lower bound on ε of an epoch of shuffled batches, its record zeroed or not.

    All other records contribute -1: the batch of the record is +2 above the others, or +1 where it
    is zeroed. The event is that the largest release is above a threshold.
    """

    def level(at, sigma, erfc, log):
        below = 1 - erfc(at) / 2
        p, q = (1 - below ** (batches - 1) * (1 - erfc(at - s / sigma) / 2) for s in (2, 1))
        return log((p - delta) / q) if p > delta and q > 0 else -math.inf

    # In units of √2. The best threshold is found in floating point, and bounded in balls.
    root = math.sqrt(2.0)
    at = max(
        (k / 50 / root for k in range(1, 1000)),
        key=lambda at: level(at, sigma * root, math.erfc, math.log),
    )
    return float(level(arb(at), arb(sigma) * arb(2).sqrt(), arb.erfc, arb.log).lower())


def replaced(made, delta):
    """Return a lower bound on ε of batches of fixed size, where one record is replaced.

    All others contribute -1 and the record +1, or -1 like them: its batch is +2 above the rest, or
    not, which is a Poisson-sampled Gaussian of twice the sensitivity.
    """
    run = gaussian_run(made["batch"] / made["records"], made["sigma"] / 2, made["count"])
    guess = float(mechanism([made]).epsilon(delta))
    for share in (1.0 - 2.0**k * 1e-4 for k in range(12)):
        if run_profile(run, share * guess)[1]["remove"] > delta:
            return share * guess
    raise ArithmeticError("no lower end was shown")


def mechanism(parts):
    """Return the release as this package writes it: for candidates alone."""
    from conformance.accountants import ours

    return ours(parts)


def profile(parts, epsilon):
    """Return name of the oracle and δ(ε) of both directions."""
    kinds = [each["kind"] for each in parts]
    one = parts[0]
    if kinds == ["gaussian"]:
        return run_profile(one, epsilon)
    if kinds == ["gaussian", "randomized response"]:
        # The answers' losses are l = (2j - n)·ε0: δ is the mean of the run's δ at ε - l.
        response, total = parts[1], {}
        name, law = "", compositions.power(answers(response), response["count"])
        for side in ("remove", "add"):
            total[side] = arb(0)
            for p, q in law:
                name, found = run_profile(one, epsilon - float((p / q).log().mid()))
                total[side] += p * found[side]
        return name, total
    if kinds == ["laplace"]:
        return laplace(one, epsilon)
    if kinds == ["randomized response"] and one["k"] == 2:
        value = composed.randomized_response(one["epsilon"], one["count"], epsilon)
        return "outcomes", {"both": value}
    if kinds == ["gaussian mixture"]:
        given = (map(arb, one[name]) for name in ("shifts", "weights"))
        return "closed form", both(monotone_ratio.shifted(arb(one["sigma"]), *given), epsilon)
    if kinds == ["discrete gaussian"]:
        law = compositions.discrete_gaussian(one["sigma"], 1, math.ceil(40 * one["sigma"]))
    elif kinds == ["discrete laplace"]:
        law = compositions.discrete_laplace(one["scale"], 1)
    else:
        law = answers(one)
    return "outcomes", {
        "both": compositions.profile(compositions.power(law, one["count"]), epsilon)
    }


def both(profiles, epsilon):
    """Return what two profiles are at ε, by their direction."""
    return {side: each(arb(epsilon)) for side, each in zip(SIDES, profiles, strict=True)}


def run_profile(one, epsilon):
    """δ(ε) of a run; below 0 by δ(-ε) of the other direction: H(ε) = 1 - e^ε + e^ε·H'(-ε)."""
    q, sigma, steps = one.get("q", 1.0), one["sigma"], one["count"]
    found = {}
    if steps == 1 and q < 1.0:
        return "closed form", both(monotone_ratio.sampled(sigma, q), epsilon)
    for side, other in (("remove", "add"), ("add", "remove")):
        # One step's loss under addition is at most -log(1 - q).
        if side == "add" and q < 1.0 and epsilon > -steps * math.log1p(-q) * (1.0 + 1e-9):
            found[side] = arb(0)
            continue
        value, name = psg.profile(q, sigma, steps, abs(epsilon), side if epsilon >= 0 else other)
        grown = arb(epsilon).exp()
        found[side] = value if epsilon >= 0 else 1 - grown + grown * value
    return ("closed form" if name == "closed" else "contours"), found


def laplace(one, epsilon):
    """δ(ε) of Laplace releases, or of one on a sample, which moves the ratio's threshold."""
    scale, q = one["scale"], one.get("q")
    if q is None:
        return "closed form", {"both": composed.laplace(scale, one["count"], epsilon)}
    e, rate = arb(epsilon), arb(q)
    removed = (1 + (e.exp() - 1) / rate).log()
    level = ((-e).exp() - 1 + rate) / rate
    added = arb(0)
    if level > 0:
        added = e.exp() * rate * level * composed.laplace(scale, 1, -level.log())
    return "closed form", {"remove": rate * composed.laplace(scale, 1, removed), "add": added}


def answers(one):
    """Return the outcomes of one randomised answer."""
    return compositions.response(one["epsilon"], one["k"])

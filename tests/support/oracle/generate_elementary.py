"""Write accountant/selftest/elementary.json: elementary functions to 25 digits at hard arguments.

    python -m support.oracle.generate_elementary [arguments.txt ...]

The truths are ball arithmetic. The arguments are those of the file as it is, random ones where a
function has too few, and those in the files named: lines of a function's name, an argument in
hexadecimal (two for atan2 and pow) and anything else. `worst_arguments.c` finds such; files with
the arguments that are hardest to round are published by the authors of correctly rounded libraries.
"""

import json
import sys
from pathlib import Path

import numpy as np
from flint import arb, ctx

TARGET = Path(__file__).parents[3] / "accountant" / "selftest" / "elementary.json"
# Random arguments of each function, and at most so many from each file.
RANDOM, KEPT = 120, 80
U = arb(2) ** -53


def normal_below(x):
    return (-x / arb(2).sqrt()).erfc() / 2


TRUTHS = {
    "exp": lambda x: x.exp(),
    "expm1": lambda x: x.expm1(),
    "log": lambda x: x.log(),
    "log1p": lambda x: x.log1p(),
    "sin": lambda x: x.sin(),
    "cos": lambda x: x.cos(),
    "atan2": lambda y, x: arb.atan2(y, x),
    "erf": lambda x: x.erf(),
    "erfc": lambda x: x.erfc(),
    "pow": lambda x, y: x**y,
    "ndtr": normal_below,
}


def log_uniform(rng, low, high):
    return np.exp(rng.uniform(np.log(low), np.log(high), RANDOM // 2))


def signed(rng, low, high):
    return rng.choice([-1.0, 1.0], RANDOM // 2) * log_uniform(rng, low, high)


def drawn(name, rng):
    """Random arguments on the ranges that the certificates use."""
    uniform = lambda low, high: rng.uniform(low, high, RANDOM // 2)
    both = lambda one, other: (np.concatenate([one, other]),)
    if name in ("exp", "expm1"):
        return both(uniform(-700.0, 709.0), signed(rng, 1e-300, 2.0))
    if name == "log":
        return both(log_uniform(rng, 1e-300, 1e300), uniform(0.5, 2.0))
    if name == "log1p":
        return both(signed(rng, 1e-300, 0.9), np.exp(uniform(-36.0, 30.0)) - 1.0)
    if name in ("sin", "cos"):
        return both(signed(rng, 1e-300, 1.0), uniform(-1e6, 1e6))
    if name == "erf":
        return both(uniform(-6.0, 6.0), signed(rng, 1e-300, 1.0))
    if name == "erfc":
        return both(uniform(-6.0, 26.0), uniform(0.5, 3.0))
    if name == "ndtr":
        return both(uniform(-37.0, 8.0), uniform(-3.0, 3.0))
    if name == "pow":
        return log_uniform(rng, 1e-3, 1e3), uniform(-30.0, 30.0)
    return signed(rng, 1e-100, 1e100), signed(rng, 1e-100, 1e100)


def given(path):
    """Arguments by function, the widest errors first where the lines tell them."""
    found = {}
    for line in Path(path).read_text().split("\n"):
        words = line.split()
        if len(words) < 2 or words[0] not in TRUTHS:
            continue
        count = TRUTHS[words[0]].__code__.co_argcount
        values = [float.fromhex(word) for word in words[1 : 1 + count]]
        error = float(words[1 + count]) if len(words) > 1 + count else 0.0
        found.setdefault(words[0], []).append((-error, tuple(values)))
    return {name: [values for _, values in sorted(rows)[:KEPT]] for name, rows in found.items()}


def row(name, values):
    """The arguments, the nearest double of the truth, and the rest in units of roundoff."""
    truth = TRUTHS[name](*map(arb, values))
    nearest = float(truth)
    rest = (truth - arb(nearest)) / (U * abs(arb(nearest)))
    assert abs(rest) < 2, (name, values)
    assert rest.rad() < 1e-9, (name, values)
    return [*(value.hex() for value in values), nearest.hex(), round(float(rest), 4)]


def main(files):
    ctx.prec = 400
    stored = json.loads(TARGET.read_text()) if TARGET.exists() else {}
    lists = [given(path) for path in files]
    out = {}
    for index, (name, truth) in enumerate(TRUTHS.items()):
        count = truth.__code__.co_argcount
        arguments = [
            tuple(map(float.fromhex, each[:count])) for each in stored.get(name, [])
        ] or list(zip(*drawn(name, np.random.default_rng(index)), strict=True))
        for each in lists:
            arguments += each.get(name, [])
        kept = sorted({tuple(map(float, values)) for values in arguments})
        out[name] = [row(name, values) for values in kept]
    TARGET.write_text(
        "{\n"
        + ",\n".join(
            f'"{name}": [\n' + ",\n".join(json.dumps(each) for each in rows) + "\n]"
            for name, rows in out.items()
        )
        + "\n}\n"
    )


if __name__ == "__main__":
    main(sys.argv[1:])

"""Write accountant/selftest/enclosures.json: what `accountant doctor` compares with.

Ball arithmetic throughout, sharing no code with the package: rows of the stored oracle problems,
and closed forms of composed Gaussian, Laplace and randomised-response mechanisms.
"""

import json
from pathlib import Path

from flint import arb

from support.oracle import stored
from support.oracle.composed import ball, gaussian, laplace, precision, randomized_response
from support.oracle.moments import enclosing_decimals

TARGET = Path(__file__).parents[3] / "accountant" / "selftest" / "enclosures.json"


def kept(name, count, keep):
    """About `count` rows of each family, evenly spaced."""
    groups = {}
    for row in stored.rows(name):
        groups.setdefault(keep(row), []).append(row)
    chosen = []
    for group in groups.values():
        step = max(len(group) // count, 1)
        chosen += group[::step][:count]
    return chosen


def row(kind, parameters, enclosure):
    lower, upper = enclosing_decimals(enclosure)
    return {"kind": kind, **parameters, "lower": lower, "upper": upper}


def closed_forms():
    for sigma in (0.3, 0.8, 1.0, 2.5, 11.0):
        for epsilon in (0.0, 0.1, 1.0, 4.0):
            value = gaussian(ball(1.0) / ball(sigma), epsilon)
            yield row("gaussian", {"sigma": sigma, "epsilon": epsilon}, value)
    for sigmas in ([1.0, 2.0], [0.7, 1.3, 2.9, 5.0], [3.0 + 0.25 * k for k in range(12)]):
        for epsilon in (0.0, 0.5, 2.0):
            with precision(400):
                mu = sum((1 / ball(s) ** 2 for s in sigmas), arb(0)).sqrt()
            yield row("mixed", {"sigmas": sigmas, "epsilon": epsilon}, gaussian(mu, epsilon))
    for scale, count in ((2.0, 1), (5.0, 4), (3.0, 7)):
        for epsilon in (0.0, 0.25, 1.0):
            if epsilon < count / scale:
                value = laplace(scale, count, epsilon)
                given = {"scale": scale, "count": count, "epsilon": epsilon}
                yield row("laplace", given, value)
    for pure, count in ((0.5, 3), (0.1, 50), (1.0, 20)):
        for epsilon in (0.0, 0.3, 2.0):
            if epsilon < pure * count:
                value = randomized_response(pure, count, epsilon)
                given = {"pure": pure, "count": count, "epsilon": epsilon}
                yield row("response", given, value)


def main():
    rows = []
    for one in kept("psg_profile.jsonl", 6, lambda row: (row["family"], row["direction"])):
        names = ("q", "sigma", "steps", "direction", "epsilon", "lower", "upper")
        rows.append({"kind": "profile"} | {name: one[name] for name in names})
    for one in kept("psg_renyi.jsonl", 40, lambda row: row["direction"]):
        names = ("q", "sigma", "alpha", "direction", "lower", "upper")
        rows.append({"kind": "renyi"} | {name: one[name] for name in names})
    rows += closed_forms()
    TARGET.write_text("[\n" + ",\n".join(json.dumps(each) for each in rows) + "\n]\n")
    print(len(rows), "rows")


if __name__ == "__main__":
    main()

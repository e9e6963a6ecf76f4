"""Files of reference values, one line a problem, which is drawn from its number alone."""

import json
import math
import pathlib
import signal
import sys
import time

from support.oracle.moments import enclosing_decimals

DATA = pathlib.Path(__file__).parents[1] / "data"


def log_uniform(rng, a, b):
    return math.exp(rng.uniform(math.log(a), math.log(b)))


def rows(name):
    return [json.loads(line) for line in (DATA / name).open()] if (DATA / name).exists() else []


def line(number, found, lower=None, upper=None, *, ball=None, **more):
    """A line of a file; ``more`` comes after the ends, which may be those of a ball."""
    if ball is not None:
        lower, upper = enclosing_decimals(ball)
    row = dict(id=number, **found, lower=lower, upper=upper, **more)
    return json.dumps(row, separators=(",", ":")) + "\n"


def too_long(*_):
    raise ArithmeticError("took too long")


def extend(name, solve, start, stop, seconds=0):
    """Append ``solve(number)``, a line, for each number that the file lacks; failures are told."""
    known = {row["id"] for row in rows(name)}
    signal.signal(signal.SIGALRM, too_long)
    for number in range(int(start), int(stop)):
        if number in known:
            continue
        began = time.time()
        signal.alarm(seconds)
        try:
            made = solve(number)
        except (ArithmeticError, IndexError, SystemError, ValueError) as error:
            print(number, "left out:", repr(error)[:300], file=sys.stderr, flush=True)
            continue
        finally:
            signal.alarm(0)
        with (DATA / name).open("a") as out:
            out.write(made)
        print(number, f"{time.time() - began:.1f} s", flush=True)

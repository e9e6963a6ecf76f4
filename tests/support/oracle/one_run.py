"""The best guesser of fair coins against any (ε, δ)-private mechanism, by linear programming.

Shares no code with accountant.audit. Outputs may be merged when the guesses made at them agree, so
an output *is* a pattern of guesses, and the mechanism is a table of probabilities: linear
constraints say that it is private under the flip of each coin, and the probability of many right
guesses is linear. The table found is made rational; what is returned of it is exact.
"""

import itertools
from fractions import Fraction

import numpy as np
from scipy import sparse
from scipy.optimize import linprog


def most_right_guesses(m, made, correct, growth, delta):
    """Return exact (P{correct or more of made guesses are right}, δ) of the best table found.

    ``growth`` is e^ε, a Fraction; the table is (ε, δ)-private with the δ that is returned, which
    the solver's tolerance may leave a little above the one asked for.
    """
    coins = list(itertools.product((0, 1), repeat=m))
    patterns = [y for y in itertools.product((0, 1, None), repeat=m) if m - y.count(None) == made]
    flips = [
        (row, coins.index((*s[:i], 1 - s[i], *s[i + 1 :])))
        for row, s in enumerate(coins)
        for i in range(m)
    ]
    wins = np.array(
        [
            [sum(a == b for a, b in zip(s, y, strict=True)) >= correct for y in patterns]
            for s in coins
        ]
    )
    table = _solve(wins, flips, float(growth), delta)
    exact = [[Fraction(max(float(x), 0.0)) for x in row] for row in table]
    exact = [[x / total for x in row] for row in exact for total in [sum(row)]]
    won = sum(
        x for row, hit in zip(exact, wins, strict=True) for x, w in zip(row, hit, strict=True) if w
    )
    worst = max(
        sum(max(x - growth * y, Fraction(0)) for x, y in zip(exact[a], exact[b], strict=True))
        for a, b in flips
    )
    return won / len(coins), worst


def _solve(wins, flips, growth, delta):
    """Maximise the mean of ``wins`` over tables; slack variables hold (p - e^ε q)₊."""
    rows, columns = wins.shape
    size, slack = rows * columns, len(flips) * columns
    at, on = zip(*flips, strict=True)
    place = np.arange(columns)
    first = np.concatenate([a * columns + place for a in at])
    second = np.concatenate([b * columns + place for b in on])
    line = np.arange(slack)
    pointwise = sparse.csr_matrix(
        (
            np.repeat([1.0, -growth, -1.0], slack),
            (np.tile(line, 3), np.concatenate([first, second, size + line])),
        ),
        shape=(slack, size + slack),
    )
    ones = np.ones(slack)
    sums = sparse.csr_matrix((ones, (line // columns, size + line)), (len(flips), size + slack))
    whole = sparse.csr_matrix(
        (np.ones(size), (np.arange(size) // columns, np.arange(size))), (rows, size + slack)
    )
    found = linprog(
        np.concatenate([-wins.ravel().astype(float) / rows, np.zeros(slack)]),
        sparse.vstack([pointwise, sums]),
        np.concatenate([np.zeros(slack), np.full(len(flips), delta)]),
        whole,
        np.ones(rows),
        method="highs",
    )
    assert found.status == 0, found.message
    return found.x[:size].reshape(rows, columns)

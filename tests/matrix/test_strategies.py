"""Strategies against brute force in exact fractions: every pattern, every sign."""

import math
from fractions import Fraction
from itertools import combinations, pairwise, product

import numpy as np
import pytest

import accountant as ac
from accountant import matrix
from accountant.matrix.toeplitz import pattern_sum

STEPS = 8
STRATEGIES = {
    "square root": matrix.banded_square_root(STEPS, bands=3),
    "full square root": matrix.banded_square_root(STEPS, bands=STEPS),
    "signed": matrix.BandedToeplitz((1.0, -0.7, 0.2), steps=STEPS),
    "rising": matrix.BandedToeplitz((1.0, 0.2, 1.5, 0.1), steps=STEPS),
    "identity": matrix.input_perturbation(STEPS),
    "prefix sums": matrix.output_perturbation(STEPS),
    "lambda": matrix.lambda_cgd(STEPS, cancelled=0.9),
    "inverse square root": matrix.banded_inverse_square_root(STEPS, bands=4),
    "signed inverse": matrix.BandedInverse((1.0, 0.6, -0.3), steps=STEPS),
    "buffers": matrix.BufferedToeplitz(weights=(0.3, 0.25), decays=(0.95, 0.5), steps=STEPS),
    "heavy buffers": matrix.BufferedToeplitz(weights=(2.0,), decays=(0.7,), steps=STEPS),
    "tree": matrix.BinaryTree(STEPS),
}


def exact_matrix(strategy):
    """The strategy in fractions, from the definitions alone."""
    steps = strategy.steps
    match strategy:
        case matrix.BandedToeplitz():
            column = [Fraction(c) for c in strategy.column]
        case matrix.BandedInverse():
            inverse = [Fraction(h) for h in strategy.inverse_column]
            column = [Fraction(1)]
            for t in range(1, steps):
                column.append(
                    -sum(inverse[i] * column[t - i] for i in range(1, min(t + 1, len(inverse))))
                )
        case matrix.BufferedToeplitz():
            buffers = [
                (Fraction(w), Fraction(d))
                for w, d in zip(strategy.weights, strategy.decays, strict=True)
            ]
            column = [Fraction(1)] + [
                sum(w * d ** (t - 1) for w, d in buffers) for t in range(1, steps)
            ]
        case matrix.BinaryTree():
            return [
                [Fraction(t - (t & -t) < i <= t) for i in range(1, steps + 1)]
                for t in range(1, steps + 1)
            ]
    column += [Fraction(0)] * (steps - len(column))
    return [[column[t - i] if i <= t else Fraction(0) for i in range(steps)] for t in range(steps)]


def gram_of(rows):
    steps = len(rows)
    return [[sum(row[i] * row[j] for row in rows) for j in range(steps)] for i in range(steps)]


def patterns(steps, separation, most, cyclic):
    for size in range(1, most + 1):
        for p in combinations(range(steps), size):
            gaps = [b - a for a, b in pairwise(p)]
            if all(g == separation if cyclic else g >= separation for g in gaps):
                yield p


def largest(gram, chosen):
    """The largest squared norm over patterns and signs (reached), and that of absolute values."""
    reached = absolute = Fraction(0)
    for p in chosen:
        absolute = max(absolute, sum(abs(gram[i][j]) for i in p for j in p))
        for signs in product((1, -1), repeat=len(p) - 1):
            s = dict(zip(p, (1, *signs), strict=True))
            reached = max(reached, sum(s[i] * s[j] * gram[i][j] for i in p for j in p))
    return reached, absolute


@pytest.mark.long(keep=34)
@pytest.mark.parametrize("cyclic", [False, True])
@pytest.mark.parametrize(("separation", "most"), [(8, 1), (4, 2), (3, 3), (2, 4), (1, 2), (1, 3)])
@pytest.mark.parametrize("name", STRATEGIES)
def test_sensitivity_by_enumeration(name, separation, most, cyclic):
    strategy = STRATEGIES[name]
    gram = gram_of(exact_matrix(strategy))
    reached, absolute = largest(gram, patterns(STEPS, separation, most, cyclic))
    found = strategy.sensitivity_bounds(
        min_separation=separation, max_participations=most, cyclic=cyclic
    )
    assert Fraction(found.upper) ** 2 >= reached
    assert Fraction(found.lower) ** 2 <= reached
    if name not in ("signed", "rising", "signed inverse", "tree", "heavy buffers"):
        assert found.width <= 1e-12 * found.upper
    if most == 1 or (name == "signed" and separation >= strategy.bands):
        assert found.width <= 1e-12 * found.upper
        assert Fraction(found.upper) ** 2 <= absolute * (1 + Fraction(1, 10**11))


@pytest.mark.parametrize("name", STRATEGIES)
def test_errors_in_fractions(name):
    strategy = STRATEGIES[name]
    rows = exact_matrix(strategy)
    # A C⁻¹ by forward substitution from the right: B C = A.
    steps = strategy.steps
    decoder = [[Fraction(0)] * steps for _ in range(steps)]
    for t in range(steps):
        for i in reversed(range(steps)):
            rest = sum(decoder[t][j] * rows[j][i] for j in range(i + 1, steps))
            decoder[t][i] = (Fraction(i <= t) - rest) / rows[i][i]
    squares = [sum(x * x for x in row) for row in decoder]
    mean, most = sum(squares) / steps, max(squares)
    for found, truth in ((strategy.rms_error_bounds(), mean), (strategy.max_error_bounds(), most)):
        assert Fraction(found.lower) ** 2 <= truth <= Fraction(found.upper) ** 2
        assert found.width <= 1e-11 * found.upper


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("name", STRATEGIES)
def test_streams_solve_the_strategy(name, whole):
    strategy = STRATEGIES[name]
    rows = np.array(exact_matrix(strategy), dtype=float)
    rng = np.random.default_rng(1)
    fresh = rng.normal(size=(STEPS, 5)) * 1e6
    fresh = np.rint(fresh) if whole else fresh
    stream = strategy.stream(5, whole=whole)
    noise = []
    for t, row in enumerate(fresh):
        if t == 4:  # a stream that was saved goes on as if nothing had been
            saved, stream = stream.state, strategy.stream(5, whole=whole)
            stream.restore(4, saved)
        noise.append(stream.next(row))
    noise = np.array(noise)
    off = np.abs(rows @ noise - fresh).max()
    if whole:
        assert (noise == np.rint(noise)).all()
        # Rounding enters as Theorem X5 says, by half a unit a step.
        inverse = isinstance(strategy, matrix.BandedInverse)
        assert off <= (0.51 * np.abs(rows[:, 0]).sum() if inverse else 0.51)
    else:
        assert off <= 1e-8
    with pytest.raises(ac.DomainError, match="steps"):
        stream.next(fresh[0])


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 100])
@pytest.mark.parametrize("separation", [1, 3, 30, 40])
def test_pattern_sum(separation, count):
    values = np.random.default_rng(0).integers(0, 9, 37).astype(float)
    expected = [
        sum(values[t - a * separation] for a in range(count) if t - a * separation >= 0)
        for t in range(37)
    ]
    assert pattern_sum(values, separation, count).tolist() == expected


@pytest.mark.parametrize("steps", [1, 2, 3, 7, 8, 1000, 1023, 1024])
def test_tree_errors(steps):
    ones = [t.bit_count() for t in range(1, steps + 1)]
    tree = matrix.BinaryTree(steps)
    assert Fraction(tree.max_error_bounds().lower) ** 2 <= max(ones)
    assert Fraction(tree.max_error_bounds().upper) ** 2 >= max(ones)
    assert tree.max_error_bounds().width < 1e-12
    mean = Fraction(sum(ones), steps)
    found = tree.rms_error_bounds()
    assert Fraction(found.lower) ** 2 <= mean <= Fraction(found.upper) ** 2
    assert found.width < 1e-12


def test_long_runs_are_bounded_without_a_matrix():
    import tracemalloc

    steps = 10**6
    buffers = matrix.BufferedToeplitz(weights=(0.01, 0.1), decays=(1 - 1e-6, 0.9), steps=steps)
    root = matrix.banded_square_root(steps, bands=1000)
    for strategy in (buffers, root):
        tracemalloc.start()
        found = strategy.sensitivity_bounds(min_separation=777, max_participations=500)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 100e6
        assert found.width < 1e-8 * found.upper
    # Against a plain loop over participations.
    total = np.zeros(steps)
    column = buffers.coefficients()
    for a in range(500):
        total[a * 777 :] += column[: steps - a * 777]
    found = buffers.sensitivity_bounds(min_separation=777, max_participations=500)
    assert found.upper == pytest.approx(float(np.linalg.norm(total)), rel=1e-9)


def test_an_unstable_inverse_has_no_finite_error():
    strategy = matrix.BandedToeplitz((1.0, 3.0), steps=2000)
    assert strategy.rms_error_bounds() == ac.Bounds(0.0, math.inf)
    assert matrix.BandedInverse((1.0, 3.0), steps=2000).sensitivity_bounds().upper == math.inf


def test_the_reciprocal_of_a_long_series_is_certified():
    root = matrix.banded_square_root(3000, bands=3000)
    inverse = root.inverse_coefficients()
    j = np.arange(1.0, 3000)
    assert np.allclose(inverse[1:], np.cumprod((2 * j - 3) / (2 * j)), rtol=0, atol=1e-12)
    # The prefix sums' square root decodes by itself: its rows have the norms of its columns.
    best = root.max_error_bounds()
    assert best.upper == pytest.approx(root.sensitivity_bounds().upper, rel=1e-9)


def test_the_mechanism_is_gaussian():
    strategy = matrix.banded_square_root(100, bands=4)
    one = strategy.mechanism(2.0)
    assert one == ac.Gaussian(
        2.0,
        sensitivity=strategy.sensitivity_bounds().upper,
        relation=ac.NeighbouringRelation.ZERO_OUT,
    )
    with pytest.raises(ac.UnsupportedError, match="correlated noise"):
        strategy.mechanism(2.0, relation=ac.NeighbouringRelation.ADD_OR_REMOVE)


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
def test_repr_evaluates_back(strategy):
    names = {name: getattr(matrix, name) for name in matrix.__all__}
    assert eval(repr(strategy), names) == strategy
    assert hash(strategy) == hash(eval(repr(strategy), names))


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: matrix.BandedToeplitz((0.5,), steps=3), "column must begin with 1"),
        (lambda: matrix.BandedToeplitz((1.0, 2.0), steps=1), "at most steps"),
        (lambda: matrix.BandedToeplitz((1.0, math.nan), steps=3), "column must be"),
        (lambda: matrix.BandedToeplitz((1.0, 1e200), steps=3), "column must be"),
        (lambda: matrix.BandedToeplitz((1.0,), steps=0), "steps must be"),
        (lambda: matrix.lambda_cgd(3, cancelled=1.0), "cancelled must be"),
        (lambda: matrix.banded_square_root(3, bands=4), "bands must be"),
        (
            lambda: matrix.BufferedToeplitz(weights=(1.0,), decays=(), steps=3),
            "weights and decays must",
        ),
        (
            lambda: matrix.BufferedToeplitz(weights=(-1.0,), decays=(0.5,), steps=3),
            "weights must be",
        ),
        (lambda: matrix.BinaryTree(4).stream(2).next(np.zeros(3)), "fresh must"),
        (lambda: matrix.BinaryTree(4).stream(2).restore(1, {}), "state must"),
    ],
)
def test_what_is_refused(make, match):
    with pytest.raises((ac.DomainError, ac.ArgumentTypeError), match=match):
        make()


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_short_runs(steps):
    for strategy in (
        matrix.input_perturbation(steps),
        matrix.output_perturbation(steps),
        matrix.lambda_cgd(steps, cancelled=0.5),
        matrix.banded_square_root(steps, bands=1),
        matrix.banded_inverse_square_root(steps, bands=steps),
        matrix.BufferedToeplitz(weights=(), decays=(), steps=steps),
        matrix.BinaryTree(steps),
    ):
        bounds = strategy.sensitivity_bounds(min_separation=1)
        assert 1.0 <= bounds.upper < 4.0
        assert strategy.rms_error_bounds().lower <= strategy.max_error_bounds().upper
        assert strategy.stream(0).next(np.zeros(0)).shape == (0,)

"""Correlated noise: the sensitivity of a strategy against every pattern of participation."""

import math
from itertools import combinations, pairwise

import numpy as np
import pytest

import accountant as ac
from accountant import sampling
from accountant.sampling import correlated_noise


def brute_sensitivity(matrix, separation, most):
    gram = matrix.T @ matrix
    best = 0.0
    for size in range(1, most + 1):
        for p in combinations(range(matrix.shape[1]), size):
            if all(b - a >= separation for a, b in pairwise(p)):
                best = max(best, float(np.abs(gram[np.ix_(p, p)]).sum()))
    return math.sqrt(best)


@pytest.mark.parametrize(("separation", "most"), [(1, 3), (2, 3), (3, 2), (4, 2), (6, 1)])
@pytest.mark.parametrize("kind", ["root", "prefix", "tree", "random", "banded"])
def test_sensitivity_by_enumeration(kind, separation, most):
    rng = np.random.default_rng(8)
    matrix = {
        "root": sampling.square_root_strategy(8),
        "prefix": np.tril(np.ones((8, 8))),
        "tree": sampling.tree_strategy(8),
        "random": np.tril(rng.uniform(size=(8, 8))),
        "banded": np.tril(np.triu(rng.normal(size=(8, 8)), -1)),
    }[kind]
    found = sampling.MatrixMechanism(
        matrix, min_separation=separation, max_participations=most
    ).sensitivity_bounds()
    exact = brute_sensitivity(matrix, separation, most)
    assert found.upper >= exact * (1 - 1e-12)
    assert found.upper <= exact * (1 + 1e-9)
    assert found.lower <= exact * (1 + 1e-12)
    if kind != "banded":  # non-negative products: the bound is attained
        assert found.lower >= exact * (1 - 1e-9)


def test_the_general_enclosure_of_a_sensitivity(monkeypatch):
    from accountant.sampling import correlated_noise

    monkeypatch.setattr(correlated_noise, "_PATTERNS", 0)
    rng = np.random.default_rng(9)
    matrix = np.tril(rng.uniform(size=(9, 9)))
    found = sampling.MatrixMechanism(
        matrix, min_separation=2, max_participations=3
    ).sensitivity_bounds()
    exact = brute_sensitivity(matrix, 2, 3)
    assert found.lower <= exact <= found.upper <= 1.5 * exact


def test_correlated_noise_is_gaussian():
    tree = sampling.MatrixMechanism(sampling.tree_strategy(8))
    assert tree.sensitivity_bounds() == ac.Bounds(2.0, 2.0)
    exact = ac.Gaussian(1.5).epsilon(1e-5)
    assert tree.mechanism(3.0).epsilon(1e-5) == pytest.approx(exact, rel=1e-12)
    identity = sampling.MatrixMechanism(np.eye(6), min_separation=3, max_participations=2)
    cyclic = sampling.CyclicBatches(dataset_size=30, batch_size=10, epochs=2)
    assert identity.epsilon_bounds(2.0, 1e-5).upper == pytest.approx(
        cyclic.epsilon(2.0, 1e-5), rel=1e-12
    )
    root = sampling.square_root_strategy(6)
    assert np.allclose(root @ root, np.tril(np.ones((6, 6))))


@pytest.mark.parametrize("bad", [np.ones((3, 3)), np.ones(3), [[np.nan]], [["a"]], np.ones((0, 2))])
def test_strategies_that_are_refused(bad):
    with pytest.raises((ac.DomainError, ac.ArgumentTypeError), match="strategy must"):
        sampling.MatrixMechanism(bad)


@pytest.mark.parametrize(("separation", "most"), [(1, 3), (2, 2), (2, 4), (3, 3), (4, 2)])
def test_a_row_at_its_best_has_the_best_pattern_around_it(separation, most):
    """Against all patterns that hold the step, the ones that just keep the separation included."""
    rng = np.random.default_rng(separation * 10 + most)
    for steps in (5, 9):
        row = rng.random(steps)
        for i in range(steps):
            patterns = [
                pattern
                for size in range(1, most + 1)
                for pattern in combinations(range(steps), size)
                if i in pattern and all(b - a >= separation for a, b in pairwise(pattern))
            ]
            best = max(sum(row[j] for j in pattern) for pattern in patterns)
            assert correlated_noise._row(row, i, separation, most) >= best * (1 - 1e-12)

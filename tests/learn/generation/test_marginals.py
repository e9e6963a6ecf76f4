"""Synthetic records: the domain, noisy marginals, trees."""

import math

import numpy as np
import pytest

import accountant as ac
from accountant.errors import ArgumentTypeError, BudgetExceeded, DomainError
from accountant.learn.generation import Category, Domain, Numeric, synthesize_marginals
from accountant.learn.generation import marginals as module
from accountant.learn.generation.marginals import Measurement, fit_tree, on_simplex, walk

DOMAIN = Domain(
    {
        "age": Numeric((0, 20, 40, 60, 100)),
        "sex": Category(("f", "m")),
        "job": Category(("a", "b", "c")),
    }
)


def people(n, seed=0):
    rng = np.random.default_rng(seed)
    job = rng.integers(3, size=n)
    return {
        "age": 20.0 * job + 30.0 * rng.random(n),
        "sex": np.array(["f", "m"])[(rng.random(n) < 0.3 + 0.2 * job).astype(int)],
        "job": np.array(["a", "b", "c"])[job],
    }


def test_odd_entries_are_mapped_and_never_raise():
    odd = [math.nan, -5, 1e9, None, "x", "30", [], math.inf, -math.inf, 10**400]
    codes = DOMAIN.encode({"age": odd, "sex": odd, "job": odd})
    assert codes[:, 0].tolist() == [0, 0, 3, 0, 0, 1, 0, 3, 0, 0]
    assert (codes[:, 1] == 1).all()
    assert (codes[:, 2] == 2).all()
    assert np.isfinite(DOMAIN.features({"age": odd, "sex": odd, "job": odd})).all()


def test_one_record_does_not_change_how_others_are_read():
    # As one array, [1, 2, "x"] would be three words.
    domain = Domain({"a": Category((1, 2, "rest")), "b": Numeric((0, 1.5, 3))})
    for odd in ("x", None, math.nan, [3], True, 10**400):
        codes = domain.encode({"a": [1, 2, odd], "b": [1, 2, odd]})
        assert codes[:2].tolist() == [[0, 0], [1, 1]]


def test_decoding_inverts_encoding():
    table = people(500)
    codes = DOMAIN.encode(table)
    again = DOMAIN.encode(DOMAIN.decode(codes, np.random.default_rng(1)))
    assert (codes == again).all()
    features = DOMAIN.features(table)
    assert features.shape == (500, 6)
    assert features.min() >= 0.0
    assert features.max() <= 1.0
    read = DOMAIN.read(features, np.random.default_rng(1))
    assert read["age"] == pytest.approx(table["age"])
    assert (read["job"] == table["job"]).all()


def test_one_record_moves_one_count_of_each_marginal_by_one():
    codes = DOMAIN.encode(people(200))
    for columns in ((0,), (1,), (0, 2), (1, 2)):
        more = module._counts(codes, DOMAIN, columns)
        less = module._counts(codes[1:], DOMAIN, columns)
        assert np.abs(more - less).sum() == 1


def test_scores_move_by_at_most_one_and_reach_it():
    codes = DOMAIN.encode(people(300))
    rng = np.random.default_rng(2)
    largest = 0.0
    for _ in range(20):
        first = fit_tree(
            DOMAIN.sizes,
            [
                Measurement((i,), rng.normal(100.0, 60.0, size), 1.0)
                for i, size in enumerate(DOMAIN.sizes)
            ],
        )
        for edge in ((0, 1), (0, 2), (1, 2)):
            whole = module._score(codes, DOMAIN, first, edge)
            for i in range(0, 300, 23):
                less = module._score(np.delete(codes, i, axis=0), DOMAIN, first, edge)
                assert abs(whole - less) <= 1.0
                largest = max(largest, abs(whole - less))
    assert largest == 1.0


def test_the_cost_is_that_of_what_was_measured(monkeypatch):
    calls = []
    for name in ("_measure", "select_exponential"):
        real = getattr(module, name)
        monkeypatch.setattr(
            module, name, lambda *a, real=real, name=name, **k: calls.append(name) or real(*a, **k)
        )
    ledger = ac.Accountant()
    found = synthesize_marginals(people(300), DOMAIN, target_epsilon=1.0, delta=1e-6, rng=1,
                                 ledger=ledger)  # fmt: skip
    assert calls.count("_measure") == 5
    assert calls.count("select_exponential") == 2
    noise = dict(found.mechanism.parts)
    gaussian, choice = noise
    assert noise[gaussian] == 5
    assert noise[choice] == 2
    assert 0.999 < found.epsilon <= 1.0
    assert ledger.epsilon(1e-6) == pytest.approx(found.epsilon)
    ledger.compose(ac.Laplace(3.0))
    assert ac.Accountant.from_json(ledger.to_json()).epsilon(1e-6) > found.epsilon
    assert not found.private
    assert synthesize_marginals(people(9), DOMAIN, target_epsilon=1.0, delta=1e-6).private


def test_measured_counts_have_the_noise_they_are_accounted_for():
    generator = module.generator_of(7)
    codes = DOMAIN.encode(people(100))
    exact = module._counts(codes, DOMAIN, (2,))
    draws = [module._measure(codes, DOMAIN, (2,), 5.0, generator).counts for _ in range(4000)]
    errors = (np.array(draws) - exact).ravel()
    assert errors.mean() == pytest.approx(0.0, abs=0.25)
    assert errors.std() == pytest.approx(5.0, rel=0.03)
    assert (errors * 2.0**10 == np.rint(errors * 2.0**10)).all()  # on the grid


def test_without_noise_the_tree_is_the_data():
    table = people(20_000)
    found = synthesize_marginals(
        table, DOMAIN, noise_multiplier=1e-3, delta=1e-6, rng=3, pairs=[("age", "job"),
                                                                       ("job", "sex")],
    )  # fmt: skip
    codes = DOMAIN.encode(table)
    for (a, b), joint in found.model.pairs.items():
        truth = module._counts(codes, DOMAIN, (a, b)) / 20_000
        assert joint == pytest.approx(truth, abs=1e-3)
    drawn = DOMAIN.encode(found.sample(40_000, seed=1))
    for pair in ((0, 2), (1, 2), (0, 1)):
        law = module._counts(drawn, DOMAIN, pair) / 40_000
        truth = module._counts(codes, DOMAIN, pair) / 20_000
        # Age and sex depend on each other through the job only, in these data.
        assert np.abs(law - truth).sum() < 0.05
    assert found.model.total == pytest.approx(20_000, abs=1.0)


def test_the_tree_is_chosen_by_dependence():
    rng = np.random.default_rng(5)
    a = rng.integers(4, size=5000)
    table = {"a": a, "b": a, "c": rng.integers(4, size=5000)}
    domain = Domain(dict.fromkeys("abc", Category((0, 1, 2, 3))))
    found = synthesize_marginals(table, domain, target_epsilon=1.0, delta=1e-6, rng=1)
    assert found.pairs[0] == ("a", "b")
    sample = found.sample(2000, seed=2)
    assert np.mean(sample["a"] == sample["b"]) > 0.9


@pytest.mark.parametrize("n", [0, 1, 3])
def test_few_records_are_no_error(n):
    found = synthesize_marginals(people(n), DOMAIN, target_epsilon=0.1, delta=1e-6, rng=4)
    table = found.sample(50, seed=1)
    assert {name: len(column) for name, column in table.items()} == {
        "age": 50,
        "sex": 50,
        "job": 50,
    }
    assert len(found.sample(0)["age"]) == 0


def test_a_budget_refuses_before_anything_is_measured(monkeypatch):
    monkeypatch.setattr(module, "_measure", None)
    ledger = ac.Accountant(ac.Budget(0.5, 1e-6))
    with pytest.raises(BudgetExceeded):
        synthesize_marginals(people(9), DOMAIN, target_epsilon=1.0, delta=1e-6, ledger=ledger)
    assert len(ledger) == 0


def test_simplex_and_walk():
    assert on_simplex(np.array([0.5, 0.5])).tolist() == [0.5, 0.5]
    assert on_simplex(np.array([2.0, -1.0, 0.0])).tolist() == [1.0, 0.0, 0.0]
    rng = np.random.default_rng(0)
    for _ in range(50):
        v = rng.normal(size=6)
        best = on_simplex(v)
        for other in rng.dirichlet(np.ones(6), size=50):
            assert np.square(v - best).sum() <= np.square(v - other).sum() + 1e-12
    order = walk(5, [(0, 3), (1, 3), (2, 4)])
    seen = set()
    for child, parent in order:
        assert parent is None or parent in seen
        seen.add(child)
    assert len(order) == 5


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: Category(("a",)), DomainError),
        (lambda: Category(("a", "a")), DomainError),
        (lambda: Category("ab"), ArgumentTypeError),
        (lambda: Category(([1], [2])), ArgumentTypeError),
        (lambda: Numeric((1,)), DomainError),
        (lambda: Numeric((0, math.nan)), DomainError),
        (lambda: Numeric((-1e308, 1e308)), DomainError),
        (lambda: Numeric((2, 1)), DomainError),
        (lambda: Numeric("12"), ArgumentTypeError),
        (lambda: Domain({}), DomainError),
        (lambda: Domain([1]), ArgumentTypeError),
        (lambda: Domain({"a": 3}), ArgumentTypeError),
        (lambda: DOMAIN.encode({"age": [1]}), DomainError),
        (lambda: DOMAIN.encode({"age": [1], "sex": [], "job": []}), DomainError),
        (lambda: DOMAIN.encode(np.zeros((3, 2))), DomainError),
        (lambda: DOMAIN.encode(3), ArgumentTypeError),
        (lambda: DOMAIN.encode({"age": "abc", "sex": "abc", "job": "abc"}), ArgumentTypeError),
        (lambda: DOMAIN.encode({n: np.zeros((3, 2)) for n in DOMAIN.names}), DomainError),
        (lambda: DOMAIN.encode(dict.fromkeys(DOMAIN.names, iter([1]))), ArgumentTypeError),
        (lambda: synth(delta=0.0), DomainError),
        (lambda: synth(target_epsilon=math.nan), DomainError),
        (lambda: synth(target_epsilon=None), DomainError),
        (lambda: synth(noise_multiplier=1.0), DomainError),
        (lambda: synth(target_epsilon=None, noise_multiplier=0.0), DomainError),
        (lambda: synth(pairs="cycle"), DomainError),
        (lambda: synth(pairs=[("age", "sex"), ("sex", "job"), ("job", "age")]), DomainError),
        (lambda: synth(pairs=[("age", "height")]), DomainError),
        (lambda: synth(pairs=[3]), ArgumentTypeError),
        (lambda: synth(rng=1.5), ArgumentTypeError),
        (lambda: synth().sample(-1), DomainError),
        (lambda: synth().sample(2.0), ArgumentTypeError),
    ],
)
def test_bad_input_is_refused(call, error):
    with pytest.raises(error):
        call()


def synth(**options):
    settings = {"target_epsilon": 1.0, "delta": 1e-6, "rng": 1} | options
    return synthesize_marginals(people(20), DOMAIN, **settings)


def test_a_column_has_one_dimension():
    """A second dimension used to be read as the domain's next columns."""
    domain = Domain({"a": Numeric((0, 1, 2)), "b": Category((0, 1))})
    with pytest.raises(DomainError, match="one dimension; these do not: \\['a'\\]"):
        domain.encode({"a": np.ones((4, 2)), "b": [0, 1, 0, 1]})


def test_a_number_beyond_the_doubles_warns_of_nothing():
    column = np.array(["1e4000", "1"], dtype=np.longdouble)
    assert Numeric((0, 1, 2)).encode(column).tolist() == [1, 1]

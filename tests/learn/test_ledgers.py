"""Everything that takes a ledger charges it before the noise, and says what all of it costs."""

import numpy as np
import pytest

import accountant as ac
from accountant.errors import BudgetExceeded, UnsupportedError
from accountant.learn import (
    Batches,
    LogisticRegression,
    Noise,
    pate,
    selection,
    train_dp_sgd,
)
from accountant.learn.account import charged
from accountant.learn.convex.fit import NoiseSource
from accountant.learn.generation import (
    Category,
    Domain,
    PateGanSettings,
    synthesize_marginals,
    train_dp_gan,
    train_pate_gan,
)
from accountant.noise import SecureGenerator
from accountant.relations import NeighbouringRelation
from accountant.report import statement
from support.convex_fits import FITS

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
Y = (X[:, 0] > 0).astype(int)
SIGNS = 2 * Y - 1
COLUMNS = Domain({"a": Category((0, 1)), "b": Category((0, 1))})
TABLE = {"a": Y.tolist(), "b": (X[:, 1] > 0).astype(int).tolist()}
SMALL = PateGanSettings(teachers=4, iterations=2, labels=3, batch=8, teacher_hidden=4)


def dp_sgd(**given):
    return train_dp_sgd(
        LogisticRegression(2), X, Y, batches=Batches(20, steps=3), noise=Noise(2.0),
        clipping_norm=1.0, delta=1e-5, **given,
    )  # fmt: skip


def student(**given):
    shards = pate.TeacherEnsemble(lambda x, y: lambda z: np.zeros(len(z), int), 4, 2, rng=1)
    return pate.train_student(
        shards.fit(X, Y), X[:5], lambda public, answered, labels: None, pate.GNMax(4.0),
        delta=1e-5, **given,
    )  # fmt: skip


CASES = {
    "train_dp_sgd": dp_sgd,
    "train_dp_gan": lambda **given: train_dp_gan(
        TABLE, COLUMNS, delta=1e-5, batches=Batches(20, steps=3), noise=Noise(2.0), **given
    ),
    "train_pate_gan": lambda **given: train_pate_gan(
        TABLE, COLUMNS, delta=1e-5, sigma=4.0, settings=SMALL, **given
    ),
    "synthesize_marginals": lambda **given: synthesize_marginals(
        TABLE, COLUMNS, delta=1e-5, target_epsilon=1.0, **given
    ),
    "train_student": student,
    "select_best": lambda **given: selection.select_best(
        lambda setting: setting, [1, 2], float, mechanism=ac.Gaussian(4.0), delta=1e-5, **given
    ),
    **{name: lambda name=name, **given: FITS[name](X, SIGNS, **given) for name in FITS},
    "private_mean, pure": lambda **given: FITS["private_mean"](X, SIGNS, delta=0.0, **given),
}
each = pytest.mark.parametrize("run", CASES.values(), ids=CASES)


@pytest.mark.long(keep=9)
@each
def test_alone_everything_in_the_ledger_is_the_run(run):
    result = run()
    assert len(result.ledger) > 0
    assert result.epsilon == result.run_epsilon > 0.0
    assert run().ledger is not result.ledger
    # The number on the result is one that its ledger certifies, up to the last digits.
    assert result.ledger.epsilon(result.delta) <= result.epsilon * (1.0 + 1e-6)


@pytest.mark.long(keep=2)
@each
def test_on_a_ledger_with_more_in_it_the_whole_is_stated_and_the_run_apart(run):
    alone = run()
    relation = alone.ledger.relation
    ledger = ac.Accountant()
    ledger.compose(ac.PureDP(0.5, relation=relation))
    result = run(ledger=ledger)
    assert result.ledger is ledger
    assert len(ledger) == 1 + len(alone.ledger)
    assert result.epsilon == ledger.epsilon(result.delta)
    assert result.epsilon > result.run_epsilon + 0.2
    assert result.run_epsilon == alone.run_epsilon


def no_noise(*given):
    raise AssertionError("noise was drawn")


@pytest.mark.long
@each
def test_what_the_budget_does_not_allow_is_refused_before_any_noise(run, monkeypatch):
    relation = run().ledger.relation
    ledger = ac.Accountant(ac.Budget(1e-3, 1e-9, filter="non-adaptive"))
    ledger.compose(ac.PureDP(1e-4, relation=relation))
    # The objective's random linear term is no function of the data: it may come before the charge.
    for owner, name in RELEASES[: 3 if run is CASES["perturb_objective"] else None]:
        monkeypatch.setattr(owner, name, no_noise)
    with pytest.raises(BudgetExceeded):
        run(ledger=ledger)
    assert len(ledger) == 1


RELEASES = [
    (NoiseSource, "release"),
    (NoiseSource, "release_pure"),
    (NoiseSource, "weighted_index"),
    (SecureGenerator, "rounded_normal"),
    (SecureGenerator, "discrete_gaussian"),
]


@each
def test_a_ledger_of_another_relation_is_left_as_it_is(run):
    mine = run().ledger.relation
    other = next(one for one in NeighbouringRelation if one is not mine)
    ledger = ac.Accountant()
    ledger.compose(ac.PureDP(0.5, relation=other))
    with pytest.raises(UnsupportedError, match="relation"):
        run(ledger=ledger)
    assert len(ledger) == 1


@each
def test_what_is_no_ledger_is_refused(run):
    with pytest.raises(ac.ArgumentTypeError, match="ledger must be an Accountant"):
        run(ledger=ac.Budget(1.0, 1e-5))


def test_of_a_release_of_several_parts_all_are_charged_or_none():
    ledger = ac.Accountant(ac.Budget(3.0, 1e-5, filter="non-adaptive"))
    with pytest.raises(BudgetExceeded):
        charged(ledger, (ac.Gaussian(4.0), ac.Gaussian(0.1)), "two parts", SecureGenerator())
    assert len(ledger) == 0
    parts = ac.Gaussian(4.0), ac.Gaussian(8.0)
    assert charged(ledger, parts, "two parts", SecureGenerator()) is ledger
    assert [entry.label for entry in ledger.history] == ["two parts"] * 2


@each
def test_a_seed_is_marked_in_the_ledger_and_in_its_statement(run):
    fresh, seeded = run(), run(rng=1)
    assert fresh.private
    assert not seeded.private
    for result, marked in ((fresh, False), (seeded, True)):
        labels = [entry.label for entry in result.ledger.history]
        assert labels
        assert all(("not private: seeded" in label) is marked for label in labels)
        said = statement(result.ledger, 1e-5, certificate=False).not_private
        assert bool(said) is marked


def test_a_generator_of_the_callers_own_is_marked_as_well():
    class Mine(SecureGenerator):
        pass

    for result in (CASES["synthesize_marginals"](rng=Mine()), dp_sgd(rng=Mine())):
        assert not result.private
        assert all("not private: " in entry.label for entry in result.ledger.history)

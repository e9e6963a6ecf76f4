"""DP-GAN and PATE-GAN: what private records reach, what is paid, what is learned."""

import math
import pickle

import numpy as np
import pytest

import accountant as ac
from accountant import NeighbouringRelation as Relation
from accountant.errors import ArgumentTypeError, BudgetExceeded, DomainError
from accountant.learn import Adam, Batches, Noise
from accountant.learn.generation import (
    Category,
    Domain,
    Numeric,
    PateGanSettings,
    pate_gan,
    train_dp_gan,
    train_pate_gan,
)
from accountant.learn.generation.dp_gan import Generator
from accountant.learn.generation.pate_gan import Teachers
from accountant.noise import SecureGenerator
from support.dp_sgd_runs import arranged

DOMAIN = Domain({"a": Category((0, 1, 2, 3)), "b": Category((0, 1, 2, 3)), "x": Numeric((0, 1))})


def twins(n, seed=0):
    """Two columns that nearly always agree, and a number that goes with them."""
    rng = np.random.default_rng(seed)
    a = rng.choice(4, size=n, p=[0.5, 0.25, 0.15, 0.1])
    b = np.where(rng.random(n) < 0.9, a, rng.integers(4, size=n))
    return {"a": a, "b": b, "x": np.clip(0.2 + 0.2 * a + 0.05 * rng.standard_normal(n), 0, 1)}


def distance(table, other):
    laws = [
        np.bincount(np.asarray(t["a"]) * 4 + np.asarray(t["b"]), minlength=16) / len(t["a"])
        for t in (table, other)
    ]
    return 0.5 * np.abs(laws[0] - laws[1]).sum()


def gan(table, **options):
    settings = {
        "delta": 1e-5,
        "expected_batch_size": 200,
        "steps": 20,
        "noise_multiplier": 1.0,
        "rng": 1,
    } | options
    return train_dp_gan(table, DOMAIN, **arranged(settings))


def crowd(table, **options):
    small = {"teachers": 10, "iterations": 6, "labels": 8}
    own = {"delta": 1e-5, "sigma": 5.0, "rng": 1}
    for name, value in options.items():
        (own if name in ("delta", "sigma", "rng", "target_epsilon", "ledger") else small)[name] = (
            value
        )
    return train_pate_gan(table, DOMAIN, settings=PateGanSettings(**small), **own)


@pytest.mark.parametrize("size", [1.0, 1e300, np.inf, np.nan])
def test_a_teacher_without_records_does_not_feel_whether_there_are_any(size, monkeypatch):
    # All records are the second teacher's; the weights of all of them have diverged.
    monkeypatch.setattr(
        "accountant.learn.generation.pate_gan.assign_shards", lambda n, k, rng: np.full(n, 1)
    )
    few = PateGanSettings(teachers=3, teacher_hidden=4, teacher_rate=0.5, batch=8)
    learnt = []
    for records in (np.zeros((0, 2)), np.full((1, 2), 0.5)):
        teachers = Teachers(records, few, SecureGenerator(1), np.random.default_rng(0))
        teachers._outer *= size
        teachers.learn(np.random.default_rng(1).random((8, 2)))
        learnt.append([teachers._inner[[0, 2]].tobytes(), teachers._outer[[0, 2]].tobytes()])
    assert learnt[0] == learnt[1]


def test_gradients_of_the_generator():
    """Through the heads and layers, against differences, the draws held fixed."""
    domain = Domain({"x": Numeric((0, 1)), "y": Numeric((0, 1))})
    generator = Generator(domain, 3, (5,), np.random.default_rng(1))
    weights = np.random.default_rng(2).normal(size=(7, 2))

    def value():
        generator.random = np.random.default_rng(3)
        return float((generator.draw(7) * weights).sum())

    value()
    gradient = generator.gradient(weights)
    for i in range(generator.parameters.size):
        kept = generator.parameters[i]
        ends = []
        for shift in (1e-6, -1e-6):
            generator.parameters[i] = kept + shift
            ends.append(value())
        generator.parameters[i] = kept
        assert gradient[i] == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-6)


def test_generated_values_are_draws_of_the_softmax():
    generator = Generator(DOMAIN, 4, (8,), np.random.default_rng(1))
    records = generator.draw(500)
    assert set(np.unique(records[:, :8]).tolist()) == {0.0, 1.0}
    assert (records[:, :4].sum(axis=1) == 1.0).all()
    assert generator.explore(500, 1.0).shape == records.shape


def test_a_dp_gan_pays_for_the_discriminator_alone():
    ledger = ac.Accountant()
    found = gan(twins(1000), ledger=ledger)
    q = found.training.plan.sampling_probability
    assert found.mechanism == 20 * ac.PoissonSampled(ac.Gaussian(1.0), q)
    assert found.epsilon == found.mechanism.epsilon(1e-5)
    assert ledger.epsilon(1e-5) == pytest.approx(found.epsilon, rel=1e-9)
    assert found.epsilon == pytest.approx(ac.get_epsilon(0.2, 1.0, 20, 1e-5), rel=1e-3)
    ledger.compose(ac.Laplace(5.0))
    assert ac.Accountant.from_json(ledger.to_json()).epsilon(1e-5) > found.epsilon
    assert not found.private
    assert gan(twins(300), rng=None, steps=2).private


@pytest.mark.long
def test_the_generator_of_a_dp_gan_sees_released_parameters_only(monkeypatch):
    """With the noisy gradients fixed, the private records change nothing."""
    from accountant.learn import release

    def released(self, value, rule, generator):
        generator.words(3)
        return np.full(value.size, 0.01), 1.0

    monkeypatch.setattr(release.Privatiser, "release", released)
    one, other = gan(twins(400, 1)), gan(twins(400, 2))
    assert (one.generator.parameters == other.generator.parameters).all()
    assert (one.sample(50, seed=3)["x"] == other.sample(50, seed=3)["x"]).all()


@pytest.mark.long
def test_a_dp_gan_learns():
    table = twins(3000)
    found = gan(table, steps=500, optimizer=Adam(1e-2, 0.5), noise_multiplier=0.6)
    drawn = found.sample(4000, seed=1)
    assert distance(drawn, table) < 0.25  # independence is at 0.5
    assert np.corrcoef(drawn["a"].astype(float), drawn["x"])[0, 1] > 0.7


def test_one_record_moves_one_vote_of_every_label_throughout(monkeypatch):
    """Whatever was released before: the transcript of labels is fixed, the votes are compared."""
    seen = []

    def ask(self, votes, **_):
        self.queries += 1
        self.answers += 1
        seen[-1].append(votes.copy())
        return len(seen[-1]) % 2

    monkeypatch.setattr(pate_gan.VoteStream, "ask", ask)
    table = twins(120)
    less = {name: column[:-1] for name, column in table.items()}
    odd = {name: np.append(column[:-1], column[0]) for name, column in table.items()}
    for data in (table, less, odd, {name: column[:0] for name, column in table.items()}):
        seen.append([])
        crowd(data, iterations=15)
    whole = np.array(seen[0])
    assert whole.shape == (120, 2)
    assert (whole.sum(axis=1) == 10).all()
    for other in seen[1:3]:
        assert np.abs(whole - np.array(other)).sum(axis=1).max() == 2
    assert np.abs(whole - np.array(seen[3])).sum(axis=1).max() > 2  # no record at all


def test_teachers_see_their_own_shards_only():
    features = DOMAIN.features(twins(200))
    generated = np.random.default_rng(4).random((16, features.shape[1]))
    states = []
    for spoiled in (None, 3):
        few = PateGanSettings(teachers=6, teacher_hidden=8, teacher_rate=0.1, batch=16)
        teachers = Teachers(features.copy(), few, SecureGenerator(5), np.random.default_rng(6))
        if spoiled is not None:
            start, size = teachers._starts[spoiled], teachers._sizes[spoiled]
            teachers._rows[start : start + size] = math.nan
        for _ in range(5):
            teachers.learn(generated)
        states.append((teachers._inner, teachers.votes(generated)))
    same = [np.array_equal(a, b) for a, b in zip(states[0][0], states[1][0], strict=True)]
    assert same == [True] * 3 + [False] + [True] * 2
    assert np.abs(states[0][1] - states[1][1]).sum(axis=1).max() <= 2


def test_a_pate_gan_pays_for_every_label():
    ledger = ac.Accountant()
    found = crowd(twins(200), ledger=ledger)
    assert found.labels == 48
    root = math.sqrt(2.0)
    assert found.epsilon == pytest.approx(
        (48 * ac.Gaussian(5.0, sensitivity=root)).epsilon(1e-5), rel=1e-12
    )
    assert found.epsilon >= ac.get_epsilon(1.0, 5.0 / root / math.sqrt(48.0), 1, 1e-5)
    assert ledger.epsilon(1e-5) == found.epsilon
    assert found.mechanism.relation is Relation.ADD_OR_REMOVE
    assert 0.999 < crowd(twins(50), sigma=None, target_epsilon=1.0).epsilon <= 1.0
    assert not found.private
    assert crowd(twins(30), rng=None).private


def test_the_student_sees_labels_only(monkeypatch):
    """With the labels fixed, the private records change nothing."""

    def ask(self, votes, **_):
        self.queries += 1
        self.answers += 1
        return self.answers % 3 % 2

    monkeypatch.setattr(pate_gan.VoteStream, "ask", ask)
    one, other = crowd(twins(90, 1)), crowd(twins(70, 2))
    assert (one.generator.parameters == other.generator.parameters).all()


@pytest.mark.long
def test_a_pate_gan_learns_from_clear_votes():
    domain = Domain(dict.fromkeys("ab", Category((0, 1, 2, 3))))
    table = {name: column for name, column in twins(3000).items() if name != "x"}
    found = train_pate_gan(
        table, domain, delta=1e-5, sigma=0.01, settings=PateGanSettings(teachers=20), rng=1
    )
    assert distance(found.sample(4000, seed=1), table) < 0.42  # independence is at 0.5


@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_records_are_no_error(n):
    table = twins(n)
    assert len(crowd(table).sample(7, seed=1)["a"]) == 7
    if n:
        drawn = gan(table, expected_batch_size=1, steps=3).sample(7, seed=1)
        assert len(drawn["x"]) == 7
        assert set(drawn["a"].tolist()) <= {0, 1, 2, 3}


def test_odd_entries_are_no_error():
    table = {"a": [0, None, "x", 3], "b": [9, 1, math.nan, []], "x": [math.nan, "?", 1e300, -1]}
    assert crowd(table).labels == 48
    assert gan(table, expected_batch_size=2, steps=3).training.steps == 3


@pytest.mark.long
def test_a_budget_refuses_before_training(monkeypatch):
    monkeypatch.setattr(pate_gan, "Teachers", None)
    ledger = ac.Accountant(ac.Budget(0.1, 1e-5))
    with pytest.raises(BudgetExceeded):
        crowd(twins(30), ledger=ledger)
    with pytest.raises(BudgetExceeded):
        gan(twins(300), ledger=ledger)
    assert len(ledger) == 0


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda t: gan(t, delta=2.0), DomainError),
        (lambda t: gan(t, noise_multiplier=0.0), DomainError),
        (lambda t: gan(t, noise_multiplier=math.nan), DomainError),
        (lambda t: gan(t, target_epsilon=1.0), DomainError),
        (lambda t: gan(t, steps=0), DomainError),
        (lambda t: gan(t, generator_rate=-1.0), DomainError),
        (lambda t: gan(t, hidden=(0,)), DomainError),
        (lambda t: gan(t, expected_batch_size=0), DomainError),
        (lambda t: gan({"a": [1]}), DomainError),
        (lambda t: gan(t, rng=1.5), ArgumentTypeError),
        (
            lambda t: train_dp_gan(t, 3, batches=Batches(2, steps=1), noise=Noise(1.0), delta=1e-5),
            ArgumentTypeError,
        ),
        (lambda t: crowd(t, delta=0.0), DomainError),
        (lambda t: crowd(t, sigma=0.0), DomainError),
        (lambda t: crowd(t, sigma=None), DomainError),
        (lambda t: crowd(t, target_epsilon=1.0), DomainError),
        (lambda t: crowd(t, teachers=0), DomainError),
        (lambda t: crowd(t, labels=2.0), ArgumentTypeError),
        (lambda t: crowd(t, teacher_rate=math.inf), DomainError),
        (lambda t: crowd(t, rng="x"), ArgumentTypeError),
        (lambda t: crowd(t, hidden=(0,)), DomainError),
        (lambda t: train_pate_gan(t, None, delta=1e-5, sigma=1.0), ArgumentTypeError),
        (lambda t: train_pate_gan(t, DOMAIN, delta=1e-5, sigma=1.0, settings=3), ArgumentTypeError),
    ],
)
def test_bad_input_is_refused(call, error):
    with pytest.raises(error):
        call(twins(300))


def test_a_dp_gan_can_be_pickled():
    made = gan(twins(400), steps=20)
    again = pickle.loads(pickle.dumps(made))
    assert (again.epsilon, again.private) == (made.epsilon, made.private)
    one, other = made.sample(50, seed=3), again.sample(50, seed=3)
    assert all(np.array_equal(one[name], other[name]) for name in one)
    # What is drawn follows the parameters, and not a second copy of them.
    again.generator.kept[:] = [np.zeros_like(again.generator.parameters)]
    other = again.sample(50, seed=3)
    assert not all(np.array_equal(one[name], other[name]) for name in one)

"""DP-SGD with correlated noise: its account, its noise, its batches, and runs that are resumed."""

import math
from fractions import Fraction

import numpy as np
import pytest

import accountant as ac
from accountant import matrix
from accountant.errors import BudgetExceeded
from accountant.learn import SGD, AdaptiveQuantile, Checkpoint
from accountant.learn.checkpoint import CheckpointError
from accountant.learn.clipping import as_clipping
from accountant.learn.release import ClassBatches, CorrelatedPrivatiser
from accountant.ledger import Accountant, Budget
from accountant.noise import SecureGenerator
from support.dp_sgd_runs import Still, X, Y, train

STEPS = 24
STRATEGIES = {
    "banded": matrix.banded_square_root(STEPS, bands=4),
    "inverse": matrix.banded_inverse_square_root(STEPS, bands=3),
    "lambda": matrix.lambda_cgd(STEPS, cancelled=0.9),
    "buffers": matrix.BufferedToeplitz(weights=(0.1, 0.3), decays=(0.95, 0.4), steps=STEPS),
    "tree": matrix.BinaryTree(STEPS),
    "identity": matrix.input_perturbation(STEPS),
}


def dense(strategy):
    """C, from streams: row by row, C maps the noise back to what was drawn."""
    stream = strategy.stream(strategy.steps)
    return np.linalg.inv(np.array([stream.next(row) for row in np.eye(strategy.steps)]))


def test_sampled_blocks_are_charged_before_they_begin():
    strategy = STRATEGIES["banded"]
    seen = []
    ledger = Accountant()
    result = train(
        noise=strategy, steps=None, ledger=ledger,
        callbacks=[lambda p: seen.append((p.step, ledger.counts)) or p.step == 10],
    )  # fmt: skip
    assert result.steps == 10
    charged = [sum(n for _, n in counts) for _, counts in seen]
    assert charged == [-(-t // 4) for t in range(1, 11)]
    rate = float(4 * Fraction(result.plan.sampling_probability))
    assert result.plan.rate >= rate
    assert result.run_epsilon == ac.get_epsilon(result.plan.rate, 1.0, 3, 1e-5)
    assert result.epsilon == result.run_epsilon
    assert result.plan.epsilon == ac.get_epsilon(result.plan.rate, 1.0, 6, 1e-5)


@pytest.mark.parametrize("name", STRATEGIES)
def test_whole_runs_are_charged_before_the_first_step(name):
    result = train(
        noise=STRATEGIES[name], sampler="cyclic", steps=None, noise_multiplier=2.0,
        callbacks=[lambda p: True],
    )  # fmt: skip
    assert result.steps == 1
    assert result.plan.classes == 8
    assert result.run_epsilon == result.epsilon == ac.Gaussian(2.0).epsilon(1e-5)
    assert "8 classes" in result.statement or not result.private


@pytest.mark.parametrize("sampler", ["poisson", "cyclic", "full"])
@pytest.mark.parametrize("name", STRATEGIES)
def test_the_fresh_noise_has_the_deviation_of_the_account(name, sampler):
    strategy = STRATEGIES[name]
    if sampler == "poisson" and strategy.bands > 8:
        return
    model, releases = Still(), []

    def note(progress):
        releases.append(progress.parameters)

    train(
        model, optimizer=SGD(1.0), noise=strategy, sampler=sampler, noise_multiplier=2.0,
        clipping_norm=0.5, steps=None, callbacks=[note],
    )  # fmt: skip
    noise = np.diff(np.array([np.zeros(4000), *releases]), axis=0) * -50
    fresh = dense(strategy) @ noise
    separation = {"poisson": None, "cyclic": 8, "full": 1}[sampler]
    sensitivity = strategy.sensitivity_bounds(min_separation=separation, cyclic=True).upper
    expected = 2.0 * 0.5 * sensitivity
    # The deviation is never below the account's, and hardly above.
    assert 0.985 < fresh.std() / expected < 1.02
    correlations = np.corrcoef(fresh)
    assert np.abs(correlations - np.eye(STEPS)).max() < 6 / math.sqrt(4000)


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("name", STRATEGIES)
def test_a_record_moves_the_fresh_noise_no_further_than_bounded(name, sampled):
    """Theorem X5, record by record: which fresh noise would have given the same releases?"""
    strategy = STRATEGIES[name]
    classes, size, scale = 8, 6, 300.0
    if sampled and strategy.bands > classes:
        return
    rng = np.random.default_rng(3)
    reached = 0.0
    for trial in range(40):
        start = int(rng.integers(classes))
        when = np.arange(start, STEPS, classes)[: 1 if sampled else None]
        moved = np.zeros((STEPS, size))
        direction = rng.normal(size=size)
        for t in when:
            if trial % 2:
                direction = rng.normal(size=size)
            moved[t] = np.rint(50.0 * direction / np.linalg.norm(direction))
        unit = max(float(np.linalg.norm(row)) for row in moved)
        one, other = strategy.stream(size, whole=True), strategy.stream(size, whole=True)
        total = 0.0
        for t in range(STEPS):
            fresh = np.rint(scale * rng.normal(size=size))
            noise = one.next(fresh)
            # The other data set has the sum 0 - moved here, and the same release.
            there = noise + moved[t]
            needed = there - np.rint(other._earlier())
            other._remember(needed, there)
            other.step += 1
            total += float(((needed - fresh) ** 2).sum())
        separation = None if sampled else classes
        bound = strategy.sensitivity_bounds(min_separation=separation, cyclic=True).upper * unit
        shift = strategy.rounded_shift(scale, min_separation=separation, block=sampled)
        bound += math.sqrt(size) * shift
        assert math.sqrt(total) <= bound
        reached = max(reached, math.sqrt(total) / bound)
    assert reached > 0.5  # the bound is one that can be missed


@pytest.mark.long(keep=15)
@pytest.mark.parametrize("sampler", ["poisson", "cyclic", "full"])
@pytest.mark.parametrize("name", STRATEGIES)
def test_a_resumed_run_ends_where_an_uninterrupted_one_does(name, sampler, tmp_path):
    strategy = STRATEGIES[name]
    if sampler == "poisson" and strategy.bands > 8:
        return
    given = {"noise": strategy, "sampler": sampler, "steps": None}
    whole = train(**given)
    place = Checkpoint(tmp_path / "run", every=3)
    ledger = Accountant()
    train(**given, checkpoint=place, ledger=ledger, callbacks=[lambda p: p.step == 10])
    resumed = train(**given, checkpoint=place, ledger=ledger)
    assert resumed.steps == STEPS
    assert (resumed.parameters == whole.parameters).all()
    assert resumed.epsilon == whole.epsilon
    other = matrix.banded_square_root(STEPS, bands=2)
    with pytest.raises(CheckpointError, match="strategy"):
        train(**given | {"noise": other}, checkpoint=place)


def test_a_run_killed_at_once_draws_the_same_classes(tmp_path):
    given = {"noise": STRATEGIES["banded"], "sampler": "cyclic", "steps": None}
    place = Checkpoint(tmp_path / "run", every=100)

    def die(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(**given, checkpoint=place, callbacks=[die])
    assert (train(**given, checkpoint=place).parameters == train(**given).parameters).all()


def test_classes_and_batches_follow_the_law():
    records, classes, rate, steps = 300, 5, 0.3, 2000
    batches = ClassBatches(records, classes, rate)
    generator = SecureGenerator(4)
    seen = np.zeros((records, classes))
    for step in range(steps):
        seen[batches.draw(step, generator), step % classes] += 1
    assert ((seen > 0).sum(axis=1) == 1).all()
    sizes = np.bincount(batches.of, minlength=classes)
    assert np.abs(sizes - records / classes).max() < 5 * math.sqrt(records / classes)
    trials = steps / classes
    deviation = math.sqrt(trials * rate * (1 - rate))
    counts = seen.max(axis=1)
    assert abs(counts.mean() - trials * rate) < 5 * deviation / math.sqrt(records)
    assert 0.8 < counts.std() / deviation < 1.2


@pytest.mark.parametrize("target", [0.5, 4.0])
@pytest.mark.parametrize("sampler", ["poisson", "cyclic"])
def test_a_target_is_met(sampler, target):
    result = train(
        noise=STRATEGIES["banded"], sampler=sampler, steps=None, noise_multiplier=None,
        target_epsilon=target,
    )  # fmt: skip
    assert 0.999 * target < result.epsilon <= target


def test_a_budget_that_cannot_pay_refuses_before_any_step():
    ledger = Accountant(Budget(0.5, 1e-5))
    with pytest.raises(BudgetExceeded, match="do not fit"):
        train(noise=STRATEGIES["tree"], sampler="cyclic", steps=None, ledger=ledger)
    assert not ledger.counts
    paid = Accountant(Budget(5.0, 1e-5))
    result = train(
        noise=STRATEGIES["banded"], sampler="cyclic", steps=None, noise_multiplier=1.5, ledger=paid
    )
    assert result.steps == STEPS
    assert result.epsilon <= 5.0


def test_more_noise_needs_no_more_than_the_grid_allows():
    wild = matrix.BandedToeplitz((1.0, 3.0), steps=STEPS)
    with pytest.raises(ac.DomainError, match="noise must be a strategy whose rounding"):
        train(noise=matrix.BandedToeplitz((1.0, 3.0), steps=2000), steps=2000, sampler="cyclic")
    model = Still(50)
    privatiser = CorrelatedPrivatiser(model, wild, 1.0, 8, sampled=False, cap=100)
    assert privatiser.growth > 3.0**10


@pytest.mark.parametrize("sampled", [False, True])
def test_noise_beyond_the_integers_of_doubles_is_refused(sampled):
    """It would be rounded by amounts that its own fresh part decides (Theorem X5)."""
    rule = as_clipping(1.0).rule(1)
    given = {"sampled": sampled, "cap": 100}
    grown = matrix.BandedToeplitz((1.0, 1.5), steps=60)
    with pytest.raises(ac.DomainError, match="whose rounding can be bounded"):
        CorrelatedPrivatiser(Still(50), grown, 1.0, 8, **given).settings(rule)
    shorter = matrix.BandedToeplitz((1.0, 1.5), steps=30)
    privatiser = CorrelatedPrivatiser(Still(50), shorter, 1.0, 8, **given)
    grid, deviation = privatiser.settings(rule)
    generator = SecureGenerator(3)
    for _ in range(30):
        fresh = generator.rounded_normal(50, deviation / grid.step)
        assert np.abs(privatiser.stream.next(fresh)).max() < 2.0**52


def test_round_off_is_bounded_for_the_noise_of_the_other_data_set(monkeypatch):
    """With little noise that is moved by a record further than it is large."""
    seen, drift = [], matrix.BandedToeplitz._drift

    def spy(self, scale, participation):
        seen.append(scale)
        return drift(self, scale, participation)

    monkeypatch.setattr(matrix.BandedToeplitz, "_drift", spy)
    privatiser = CorrelatedPrivatiser(
        Still(50), STRATEGIES["banded"], 1e-6, 8, sampled=True, cap=100
    )
    grid, _ = privatiser.settings(as_clipping(1.0).rule(1))
    assert 40.0 * seen[-1] >= 1.0 / grid.step


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"noise": "gaussian", "sampler": "cyclic"}, "without strategy"),
        ({"noise": "laplace"}, "noise must be"),
        ({"noise": 3}, "strategy of accountant.matrix"),
        ({"noise": STRATEGIES["banded"], "steps": 25}, "at most 24"),
        ({"noise": STRATEGIES["lambda"]}, "at most 1 / bands"),
        ({"noise": STRATEGIES["banded"], "clipping_norm": AdaptiveQuantile(1.0)}, "stay the same"),
        ({"noise": STRATEGIES["banded"], "sampling_probability": 0.0}, "must be > 0"),
        (
            {"noise": STRATEGIES["tree"], "sampler": "cyclic", "sampling_probability": 5e-324},
            "at least 2",
        ),
    ],
)
def test_what_is_refused(given, match):
    with pytest.raises(ac.AccountantError, match=match):
        train(**given)


def test_no_noise_is_not_private():
    result = train(noise=STRATEGIES["banded"], noise_multiplier=0.0, steps=None)
    assert not result.private
    assert result.epsilon == math.inf
    assert len(X) == len(Y)

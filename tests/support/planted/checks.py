"""The checks: audits of whole runs and of releases, and tests of single properties."""

import contextlib
import math
import tempfile
from pathlib import Path

import mpmath
import numpy as np
from scipy import special

import accountant as ac
from accountant import learn
from accountant.audit import audit_mechanism, audit_trainer
from accountant.learn import LogisticRegression, MultilayerPerceptron, train_dp_sgd
from accountant.learn.clipping import Rule
from accountant.learn.models.base import Totals
from accountant.learn.release import Privatiser
from accountant.noise import Grid, SecureGenerator
from support.dp_sgd_runs import arranged
from support.oracle.losses import sampled_step

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = (X[:, 0] > 0).astype(int)
DELTA = 1e-5


def finding(report):
    return str(report) if report.flagged else None


def train(model=None, data=X, labels=Y, **given):
    settings = {
        "clipping_norm": 1.0,
        "noise_multiplier": 1.0,
        "delta": DELTA,
        "steps": 4,
        "optimizer": learn.SGD(1.0),
        "rng": 1,
        "sampler": "full",
        "expected_batch_size": 120.0,
    } | given
    if settings["sampler"] == "poisson":
        settings.setdefault("sampling_probability", None)
    return train_dp_sgd(model or LogisticRegression(3), data, labels, **arranged(settings))


# Audits of whole runs: Dirac canaries, in by fair coins, and what was released of them.


def audit_run(**given):
    model = given.pop("model", None) or LogisticRegression(3)
    settings = {
        "clipping_norm": 1.0,
        "noise_multiplier": 2.0,
        "steps": 4,
        "sampler": "full",
        "canaries": 40_000,
        "rng": 5,
        "delta": DELTA,
    } | given
    return finding(audit_trainer(model, X, Y, **arranged(settings)))


def full_batch_audit():
    """whole run, full batches (`audit_trainer`)"""
    return audit_run()


def per_layer_audit():
    """whole run, one clipping norm a layer (`audit_trainer`)"""
    return audit_run(model=MultilayerPerceptron((3, 4, 2)), clipping_norm=learn.PerLayer(1.0))


def poisson_audit():
    """whole run, Poisson sampling (`audit_trainer`)"""
    return audit_run(
        sampler="poisson", expected_batch_size=2530.0, noise_multiplier=1.5, canaries=10_000
    )


def one_epoch_audit():
    """whole run, one epoch with little noise (`audit_trainer`)"""
    return audit_run(
        sampler="poisson", expected_batch_size=2530.0, noise_multiplier=0.3, canaries=10_000
    )


def release_audit():
    """the trainer's own release (`audit_mechanism`)"""
    n = 100_000
    privatiser = Privatiser(LogisticRegression(n, bias=False), "gaussian", 1.0, 100.0)
    generator = SecureGenerator(2)
    return finding(
        audit_mechanism(
            lambda v: privatiser.release(v, Rule((0.5,)), generator)[0],
            0.5,
            claimed=ac.Gaussian(1.0),
            delta=DELTA,
            observations=n,
            vectorized=True,
        )
    )


# Twin runs: the same seed, so that the noise cancels and what is left is one record's influence.


def twin_runs():
    """twin runs with one seed differ by at most the sensitivity"""
    x = np.concatenate([np.tile([[3.0, 0.0, 0.0]], (20, 1)), [[-3.0, 0.0, 0.0], [0.1, 9.0, 9.0]]])
    y = np.ones(len(x), int)
    for gone in (20, 21, 0):
        values = []
        for rows in (np.arange(len(x)), np.delete(np.arange(len(x)), gone)):
            result = train(data=x[rows], labels=y[rows], steps=1, expected_batch_size=22.0)
            values.append(result.parameters.astype(float) * 22.0)
        distance = np.linalg.norm(values[0] - values[1])
        if not distance <= 1.003:
            return f"one record moves the sum by {distance}"
    return None


def one_record():
    """one record's clipped gradient is within the clipping norm"""
    rng = np.random.default_rng(3)
    for scale in (1e-3, 1.0, 1e3):
        for build in (LogisticRegression, lambda d: MultilayerPerceptron((d, 4, 2))):
            model = build(3)
            model.parameters[:] = rng.normal(size=model.size)
            _, y = model.check(np.zeros((1, 3)), [1])
            totals = Totals(np.zeros(model.size))
            model.add_rows(scale * rng.normal(size=(1, 3)), y, None, Rule((0.1,)), totals)
            if not np.linalg.norm(totals.gradient) <= 0.1 * (1 + 1e-9):
                return f"norm {np.linalg.norm(totals.gradient)} after clipping to 0.1"
    return None


def broken_records():
    """a record that overflows changes nothing but itself"""
    data, labels = X.copy(), Y.copy()
    data[:2], labels[:2] = 1e300, (0, 1)  # one of the two is far off, whatever the weights
    result = train(MultilayerPerceptron((3, 4, 2), activation="relu"), data, labels)
    length = np.linalg.norm(result.parameters)
    return None if length < 1e3 else f"one record made the parameters {length} long"


def looks_across_records():
    """models that look across records are refused"""

    def centred(w, x, t):
        rows = (x @ w - t)[:, None] * x
        return rows - rows.mean(axis=0)

    try:
        train(learn.PerExampleModel(np.zeros(3), centred))
    except ac.UnsupportedError:
        return None
    return "a model that normalises over the batch was trained"


# Noise and generators.


def every_coordinate_is_noisy():
    """every coordinate of every release gets noise, empty batches included"""
    for value in (np.linspace(-1, 1, 40), np.zeros(40)):
        privatiser = Privatiser(LogisticRegression(39), "gaussian", 1.0, 10.0)
        drawn = [
            privatiser.release(value.copy(), Rule((1.0,)), SecureGenerator())[0] for _ in "abc"
        ]
        spread = np.ptp(drawn, axis=0)
        if not (spread > 0).all():
            return f"coordinates without noise: {np.flatnonzero(spread == 0)}"
    return None


def noise_is_fresh():
    """steps, runs and generators share no noise"""
    seen = []
    for _ in range(2):
        at = []
        train(
            learn.PerExampleModel(np.zeros(8), lambda w, x, t: np.zeros((len(x), 8))),
            steps=3,
            rng=None,
            callbacks=[lambda p, at=at: at.append(p.parameters) and None],
        )
        seen += [at[0], at[1] - at[0], at[2] - at[1]]
    if len({np.round(noise, 9).tobytes() for noise in seen}) < 6:
        return "noise was drawn twice"
    # 8-bit seeds repeat among 257 generators with certainty.
    if len({SecureGenerator().words(2).tobytes() for _ in range(257)}) < 257:
        return "two generators agree"
    return None


def released_on_the_grid():
    """released values are multiples of a public step"""
    released = Grid(2.0**-12).release_gaussian(X.ravel().copy(), 0.7, SecureGenerator(1))
    scaled = released * 2.0**12
    return None if np.array_equal(scaled, np.rint(scaled)) else "digits below the grid"


def rounded_noise_has_its_law():
    """rounded Gaussian noise has its exact law (chi-square)"""
    drawn = SecureGenerator(2).rounded_normal(200_000, 0.7)
    values, counts = np.unique(drawn, return_counts=True)
    p = special.ndtr((values + 0.5) / 0.7) - special.ndtr((values - 0.5) / 0.7)
    keep = p * drawn.size > 10
    chi2 = ((counts - drawn.size * p) ** 2 / (drawn.size * p))[keep].sum()
    return None if chi2 < special.chdtri(keep.sum(), 1e-6) else f"chi-square {chi2}"


def poisson_batches_have_their_law():
    """batch sizes have a binomial variance"""
    sizes = []
    for seed in range(300):
        result = train(
            sampler="poisson",
            sampling_probability=0.25,
            expected_batch_size=30.0,
            steps=1,
            rng=seed,
            nonprivate_diagnostics=True,
        )
        sizes.append(result.history.private[0]["records"])
    spread = np.var(sizes)
    low, high = (special.chdtri(299, p) / 299 * 120 * 0.25 * 0.75 for p in (1 - 1e-6, 1e-6))
    return None if low < spread < high else f"batch sizes have variance {spread}"


def adaptive_norms_are_noisy():
    """the adaptive clipping norm is a noisy function of the data"""
    norms = {
        train(clipping_norm=learn.AdaptiveQuantile(1.0), steps=2, rng=seed).history.public[1][
            "clipping_norm"
        ]
        for seed in range(4)
    }
    return None if len(norms) == 4 else "the norm repeats"


def adaptive_count_is_paid():
    """gradient and count together spend one step"""
    rule = learn.AdaptiveQuantile(1.0, count_noise=0.6)
    spent = rule.gradient_noise(1.0) ** -2 + (2 * 0.6) ** -2
    return None if spent <= 1.0 else f"{spent} steps' worth of squared ratio"


# The account of a run.


def the_account_of_a_run():
    """the result's ε is that of an oracle for its sampler, steps and noise"""
    result = train(sampler="full", steps=4)
    if not result.epsilon >= gaussian_epsilon_below(math.sqrt(4.0), DELTA):
        return f"full batches: {result.epsilon}"
    result = train(
        sampler="poisson", sampling_probability=0.25, expected_batch_size=30.0, steps=1,
    )  # fmt: skip
    if not subsampled_delta(0.25, 1.0, result.epsilon) <= DELTA:
        return f"Poisson sampling: {result.epsilon}"
    return None


def resumed_ledgers():
    """a resumed run's ledger holds the steps before"""

    def stop(progress):
        if progress.step == 3:
            raise InterruptedError

    for ledger in (None, ac.Accountant()):
        with tempfile.TemporaryDirectory() as directory:
            place = learn.Checkpoint(Path(directory) / "run", every=1)
            with contextlib.suppress(InterruptedError):
                train(checkpoint=place, callbacks=[stop])
            result = train(checkpoint=place, ledger=ledger)
        spent = min(result.epsilon, result.run_epsilon, result.ledger.epsilon(DELTA))
        if not spent >= gaussian_epsilon_below(math.sqrt(4.0), DELTA):
            return f"the ledger says {spent}"
    return None


def budgets_are_kept():
    """no step is made that the budget does not allow"""
    ledger = ac.Accountant(ac.Budget(3.0, DELTA, filter="non-adaptive"))
    try:
        train(ledger=ledger, steps=50)
    except ac.BudgetExceeded:
        return None
    return f"50 steps on a budget for {ac.calibrate_steps(3.0, DELTA, q=1.0, sigma=1.0)}"


class Watched(LogisticRegression):
    """Looks at the ledger whenever a step reads a record, or fails there."""

    def __init__(self, look):
        super().__init__(3)
        self.look = look

    def add_rows(self, *given):
        self.look()
        super().add_rows(*given)


def charged_before_the_release():
    """when a step reads the records, the ledger holds the step"""
    ledger, held = ac.Accountant(), []
    train(Watched(lambda: held.append(len(ledger))), ledger=ledger, steps=3)
    return None if held == [1, 2, 3] else f"the ledger held {held} steps"


def failures_leave_the_charge():
    """a step that was charged and failed stays in the ledger"""
    ledger = ac.Accountant()

    def fail():
        if len(ledger) == 2:
            raise InterruptedError

    with contextlib.suppress(InterruptedError):
        train(Watched(fail), ledger=ledger)
    return None if len(ledger) == 2 else f"the ledger holds {len(ledger)} of 2 steps"


def a_second_run_states_both():
    """the ε of a second run on a ledger is that of both"""
    ledger = ac.Accountant()
    train(ledger=ledger)
    spent = train(ledger=ledger).epsilon
    return None if spent >= gaussian_epsilon_below(math.sqrt(8.0), DELTA) else f"it says {spent}"


# Oracles that share no code.


def gaussian_delta(mu, epsilon):
    with mpmath.workdps(40):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


def gaussian_epsilon_below(mu, delta):
    low, high = 0.0, 200.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian_delta(mu, middle) > delta else (low, middle)
    return low * (1 - 1e-9)


def subsampled_delta(q, sigma, epsilon):
    """The profile of one Poisson-subsampled Gaussian step, the larger direction."""
    with mpmath.workdps(40):
        ways = (sampled_step(*map(mpmath.mpf, (q, sigma, epsilon)), way) for way in (True, False))
        return max(ways)

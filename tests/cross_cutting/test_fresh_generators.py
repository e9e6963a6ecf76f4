"""In production no seed is used twice: every release draws a fresh, unseeded generator of its own.

The functions are found by walking the package, so that a new one cannot be forgotten.
"""

import importlib
import inspect
import pkgutil
import tracemalloc

import numpy as np
import pytest

import accountant
from accountant.learn import (
    Batches,
    LogisticRegression,
    Noise,
    convex,
    generation,
    local,
    pate,
    selection,
    train_dp_sgd,
)
from accountant.learn import blocks as blocks_room
from accountant.learn.dp_sgd import train_one_example_sgd, train_projected_gradient_descent
from accountant.mechanisms import Gaussian
from accountant.noise import SecureGenerator

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
X /= np.linalg.norm(X, axis=1, keepdims=True)
Y = np.where(X[:, 0] > 0, 1.0, -1.0)
LABELS = (Y > 0).astype(int)
VALUES = np.linspace(-0.9, 0.9, 60)
SCORES = np.zeros(200)
PURE = {"epsilon": 1.0, "data_norm": 1.0}
BOTH = PURE | {"delta": 1e-5}
SGD = {"clipping_norm": 1.0, "delta": 1e-5, "noise": Noise(1.0)}


def fit(train=train_dp_sgd, **given):
    settings = given or {"batches": Batches(60.0, steps=2, sampler="full")}
    return train(LogisticRegression(2), X, LABELS, **(SGD | settings)).parameters


DOMAIN = generation.Domain({"label": generation.Category((0, 1))})
TABLE = {"label": LABELS}

# What each release returns without a seed; two calls must differ.
RELEASES = {
    "train_dp_sgd": fit,
    "train_projected_gradient_descent": lambda: fit(
        train_projected_gradient_descent, projection_radius=2.0, expected_records=60.0, steps=2
    ),
    "train_one_example_sgd": lambda: fit(train_one_example_sgd, projection_radius=2.0, steps=2),
    "perturb_objective": lambda: convex.perturb_objective(X, Y, **BOTH).value,
    "perturb_output": lambda: convex.perturb_output(X, Y, **BOTH, regularization=5.0).value,
    "bolt_on_sgd": lambda: convex.bolt_on_sgd(X, Y, **BOTH, regularization=0.1).value,
    "noisy_gradient_descent": lambda: convex.noisy_gradient_descent(
        X, Y, **BOTH, steps=2, step_size=0.01
    ).value,
    "exponential_mechanism": lambda: convex.exponential_mechanism(X, Y, **PURE, radius=1.0).value,
    "gibbs_posterior": lambda: convex.gibbs_posterior(X, Y, **BOTH, regularization=5.0).value,
    "ada_ssp": lambda: convex.ada_ssp(X, VALUES, **BOTH, target_bound=1.0).value,
    "private_ridge": lambda: convex.private_ridge(X, VALUES, **BOTH, target_bound=1.0).value,
    "private_mean": lambda: convex.private_mean(X, epsilon=1.0, delta=1e-5, bound=1.0).value,
    "private_covariance": lambda: convex.private_covariance(
        X, epsilon=1.0, delta=1e-5, bound=1.0
    ).value,
    "private_quantile": lambda: convex.private_quantile(
        VALUES, 0.5, epsilon=1.0, lower=-1.0, upper=1.0
    ).value,
    "report_noisy_max": lambda: [selection.report_noisy_max(SCORES, 1.0).index for _ in range(9)],
    "select_exponential": lambda: [
        selection.select_exponential(SCORES, 1.0).index for _ in range(9)
    ],
    "permute_and_flip": lambda: [selection.permute_and_flip(SCORES, 1.0).index for _ in range(9)],
    "AboveThresholdStream": lambda: [
        selection.AboveThresholdStream(0.0, 1.0, 1.0).is_above(0.0) for _ in range(60)
    ],
    "select_best": lambda: [
        selection.select_best(
            lambda s: s, range(200), lambda s: s, mechanism=Gaussian(1.0), delta=1e-5
        ).setting
        for _ in range(9)
    ],
    "private_block_mean": lambda: blocks_room.private_block_mean(
        VALUES, (-1.0, 1.0), noise_multiplier=1.0
    ).value,
    "private_block_median": lambda: blocks_room.private_block_median(
        VALUES, (-1.0, 1.0), 0.01
    ).value,
    "block_estimates": lambda: blocks_room.block_estimates(VALUES, np.mean, 5, (-1.0, 1.0)),
    "randomize_laplace": lambda: local.randomize_laplace(VALUES, (-1.0, 1.0), 1.0).values,
    "randomize_gaussian": lambda: local.randomize_gaussian(VALUES, (-1.0, 1.0), 1.0).values,
    "KaryResponse": lambda: local.KaryResponse(1.0, 10).randomize(LABELS),
    "Rappor": lambda: (
        r := local.Rappor(4, 0.5, 0.25, 0.75)
    ).report(r.permanent(LABELS)),
    "assign_shards": lambda: pate.assign_shards(400, 20),
    "VoteStream": lambda: [
        pate.VoteStream(pate.GNMax(40.0), 1).ask(np.array([10, 10])) for _ in range(60)
    ],
    "release_data_dependent_epsilon": lambda: pate.release_data_dependent_epsilon(
        np.array([[90, 10]] * 5), pate.GNMax(20.0), delta=1e-5
    ).epsilon,
    "synthesize_marginals": lambda: generation.synthesize_marginals(
        TABLE, DOMAIN, delta=1e-5, noise_multiplier=1.0
    ).model.total,
    "train_dp_gan": lambda: generation.train_dp_gan(
        TABLE, DOMAIN, batches=Batches(20.0, steps=2), noise=Noise(1.0),
        delta=1e-5,
    ).training.parameters,
    "train_pate_gan": lambda: generation.train_pate_gan(
        TABLE, DOMAIN, delta=1e-5, sigma=5.0,
        settings=generation.PateGanSettings(teachers=3, iterations=1, labels=2),
    ).generator.parameters,
}  # fmt: skip
# Not releases: initial parameters and public features (their seed is public), the generators
# themselves, what passes ``rng`` on to a release above, and samples of released models.
OTHERS = {
    "Network", "MultilayerPerceptron", "ConvolutionalNetwork", "RandomFourierFeatures",
    "NoiseSource", "Fit", "generator_of", "TeacherEnsemble", "train_student",
    "Synthesis", "MarginalSynthesis", "GeneratorSynthesis", "GanSynthesis", "PateGanSynthesis",
}  # fmt: skip


def functions_with_a_seed():
    found = set()
    for module in pkgutil.walk_packages(accountant.learn.__path__, "accountant.learn."):
        package = importlib.import_module(module.name)
        for name, thing in list(vars(package).items()):
            if name.startswith("_") or getattr(thing, "__module__", None) != module.name:
                continue
            calls = [thing] if inspect.isfunction(thing) else []
            if inspect.isclass(thing):
                calls = [f for _, f in inspect.getmembers(thing, inspect.isfunction)]
            if any({"rng", "seed"} & set(inspect.signature(call).parameters) for call in calls):
                found.add(name)
    return found


def test_every_release_is_in_the_table():
    named = {"train_projected_gradient_descent", "train_one_example_sgd"}  # rng is in **options
    assert functions_with_a_seed() == (set(RELEASES) - named) | OTHERS


@pytest.mark.parametrize("name", RELEASES)
def test_every_run_draws_a_generator_of_its_own(name, monkeypatch):
    made = []
    start = SecureGenerator.__init__

    def noting(self, seed=None):
        start(self, seed)
        made.append((self.seeded, self._key.tobytes()))

    monkeypatch.setattr(SecureGenerator, "__init__", noting)
    RELEASES[name]()
    once = len(made)
    RELEASES[name]()
    assert 1 <= once < len(made)
    assert not any(seeded for seeded, _ in made)
    assert len({key for _, key in made}) == len(made)


@pytest.mark.parametrize("name", RELEASES)
def test_two_runs_differ(name):
    # Among several, for a release of few values may agree by chance once.
    seen = {np.asarray(RELEASES[name]()).tobytes() for _ in range(3)}
    assert len(seen) > 1


@pytest.mark.long
def test_long_runs_need_constant_memory():
    def peak(steps):
        tracemalloc.start()
        fit(batches=Batches(20.0, steps=steps))
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return top

    peak(50)  # imports and caches
    short, long = peak(200), peak(2000)
    # A hundred points of history at either length; a step that left 100 bytes would show.
    assert long < short + 150_000


def test_a_generator_needs_constant_memory():
    generator = SecureGenerator(1)
    tracemalloc.start()
    for _ in range(50):
        generator.words(1000)
        generator.subset(300_000, 0.001)
        generator.rounded_normal(10_000, 1.0)
        generator.discrete_gaussian(1000, 5)
    kept, top = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 200_000
    assert top < 10_000_000

"""DP-SGD and what is made of it: one charge a step, that of the plan."""

from fractions import Fraction

import numpy as np

from accountant import matrix
from accountant.learn import (
    Adam,
    AdaptiveQuantile,
    Automatic,
    ConvolutionalNetwork,
    LinearRegression,
    LogisticRegression,
    MultilayerPerceptron,
    PerExampleModel,
    PerLayer,
    RidgeRegression,
    SoftmaxRegression,
    train_dp_sgd,
    train_one_example_sgd,
    train_projected_gradient_descent,
)
from support.dp_sgd_runs import arranged
from support.twins import pairs
from support.twins.comparison import Charge
from support.twins.registry import case

D = 3
SETTINGS = {
    "clipping_norm": 1.0,
    "noise_multiplier": 1.0,
    "delta": 1e-5,
    "expected_batch_size": 140.0,
    "sampling_probability": 0.5,
    "steps": 2,
    "rng": 1,
}


def of_the_plan(releases_a_step=1):
    """Return the charges of a run: every step costs what the plan says."""

    def charges(result, pair):
        training = getattr(result, "training", result)
        step = Fraction(1) / Fraction(training.plan.noise_multiplier) ** 2
        return [Charge(releases_a_step, squared=step)] * training.steps

    return charges


def trained(make, train=train_dp_sgd, **given):
    """Return a run that trains a fresh model on a pair's data."""
    settings = {k: v for k, v in (SETTINGS | given).items() if v is not None}

    def run(data):
        return train(make(), *data, **arranged(settings))

    return run


def projected(*given, batches, **options):
    return train_projected_gradient_descent(*given, steps=batches.steps, **options)


def one_example(*given, batches, **options):
    return train_one_example_sgd(
        *given, steps=batches.steps, sampling_probability=batches.sampling_probability, **options
    )


def hinge_gradients(parameters, X, y):
    """Return gradients of the hinge of records by themselves."""
    sign = 2.0 * y - 1.0
    return -(sign * (sign * (X @ parameters) < 1.0))[:, None] * X


def models():
    """Return makers of every model, for records of D columns."""
    return {
        "LogisticRegression": lambda: LogisticRegression(D),
        "SoftmaxRegression": lambda: SoftmaxRegression(D, 2),
        "MultilayerPerceptron": lambda: MultilayerPerceptron((D, 4, 2), activation="relu"),
        "LogisticRegression, float32": lambda: LogisticRegression(D, dtype=np.float32),
        "MultilayerPerceptron, float32": lambda: MultilayerPerceptron((D, 4, 2), dtype=np.float32),
        "PerExampleModel": lambda: PerExampleModel(np.zeros(D), hinge_gradients),
    }


def _classes():
    return pairs.add_or_remove(D, pairs.labels)


def _few():
    return pairs.add_or_remove(D, pairs.labels, only=("ordinary", "half of the rows times 1e+150"))


def _blocks():
    """Sizes at which blocks of 128 rows are full, a record short, or one too long."""
    for n in (127, 128, 129, 256, 257):
        X = pairs.features(n, D)
        yield pairs.without(f"{n} records, the first", (X, pairs.labels(X)), 0)


for name, make in models().items():
    case(
        name=f"train_dp_sgd, {name}",
        covers=(
            "accountant.learn.train_dp_sgd",
            "accountant.learn.models.Network",
            f"accountant.learn.models.{name.split(',')[0]}",
        ),
        run=trained(make),
        pairs=_classes if name == "LogisticRegression" else _few,
        charges=of_the_plan(),
        more=lambda: [*_classes(), *_blocks()],
    )

for clipping in (
    PerLayer(1.0),
    Automatic(1.0),
    Automatic(1.0, stability=1e-6),
    AdaptiveQuantile(1.0, count_noise=5.0),
):
    case(
        name=f"train_dp_sgd, {clipping!r}",
        covers=("accountant.learn.train_dp_sgd", f"accountant.learn.{type(clipping).__name__}"),
        run=trained(lambda: MultilayerPerceptron((D, 4, 2)), clipping_norm=clipping),
        pairs=_few,
        charges=of_the_plan(2 if isinstance(clipping, AdaptiveQuantile) else 1),
        more=_classes,
    )

for size in (1e30, 1e-30):
    case(
        name=f"train_dp_sgd, least squares, targets of size {size:g}",
        covers=("accountant.learn.LinearRegression", "accountant.learn.RidgeRegression"),
        run=trained(lambda: RidgeRegression(D, penalty=0.1), optimizer=Adam(0.1), averaging="ema"),
        pairs=lambda size=size: pairs.add_or_remove(
            D, pairs.numbers(size), only=("ordinary", "one-hot", "half of the rows times 1e-30")
        ),
        charges=of_the_plan(),
        more=lambda size=size: pairs.add_or_remove(D, pairs.numbers(size)),
    )
case(
    name="train_dp_sgd, discrete Gaussian",
    run=trained(lambda: LinearRegression(D), law="discrete_gaussian", averaging="mean"),
    pairs=lambda: pairs.add_or_remove(D, pairs.numbers(1.0), only=("ordinary", "one-hot")),
    charges=of_the_plan(),
)


def of_the_blocks(result, pair):
    """Return the charges of a run with correlated noise: all its blocks, or the run, as one."""
    plan = result.plan
    squared = plan.charges(result.steps) / Fraction(plan.noise_multiplier) ** 2
    return [Charge(result.steps, squared=squared)]


for sampler, strategy in (
    ("poisson", matrix.banded_square_root(6, bands=2)),
    ("cyclic", matrix.banded_square_root(6, bands=4)),
    ("cyclic", matrix.banded_inverse_square_root(6, bands=3)),
    ("cyclic", matrix.BufferedToeplitz(weights=(0.2, 0.3), decays=(0.9, 0.5), steps=6)),
    ("full", matrix.BinaryTree(6)),
):
    case(
        name=f"train_dp_sgd, {type(strategy).__name__}, {strategy.bands} bands, {sampler}",
        covers=(
            "accountant.learn.train_dp_sgd",
            "accountant.learn.release.ClassBatches",
            "accountant.learn.release.CorrelatedPrivatiser",
            "accountant.learn.release.draw_classes",
        ),
        run=trained(
            lambda: LogisticRegression(D), law=strategy, sampler=sampler, steps=6,
            sampling_probability=1.0 if sampler == "full" else 0.5,
        ),
        pairs=_few,
        charges=of_the_blocks,
        more=_classes,
    )  # fmt: skip


def _images():
    return pairs.add_or_remove(64, pairs.labels, n=5, only=("ordinary", "constant columns"))


for dtype in (np.float64, np.float32):
    case(
        name=f"train_dp_sgd, ConvolutionalNetwork, {dtype.__name__}",
        covers=("accountant.learn.ConvolutionalNetwork",),
        run=trained(
            lambda dtype=dtype: ConvolutionalNetwork((8, 8), 2, kernels=(2,), hidden=4, dtype=dtype)
        ),
        pairs=_images,
        charges=of_the_plan(),
    )

case(
    name="train_one_example_sgd",
    run=trained(
        lambda: LogisticRegression(D), one_example, projection_radius=1.0,
        expected_batch_size=None, sampling_probability=0.05,
    ),
    pairs=_few,
    charges=of_the_plan(),
)  # fmt: skip
case(
    name="train_projected_gradient_descent",
    run=trained(
        lambda: LogisticRegression(D), projected, projection_radius=1.0,
        expected_batch_size=None, sampling_probability=None, expected_records=140.0,
    ),
    pairs=_few,
    charges=of_the_plan(),
)  # fmt: skip


def _sizes(*sizes):
    """Return pairs at sizes n and n + 1, of which a secret size must not tell."""

    def found():
        for n in sizes:
            X = pairs.features(n + 1, D)
            yield pairs.without(f"{n} and {n + 1} records", (X, pairs.labels(X)), n)

    return found


case(
    name="train_dp_sgd, a number of records that is secret",
    run=trained(lambda: LogisticRegression(D), steps=1, expected_batch_size=20.0),
    pairs=_sizes(0, 1, 42, 400),
    charges=of_the_plan(),
)
case(
    name="train_projected_gradient_descent, a number of records that is secret",
    run=trained(
        lambda: LogisticRegression(D), projected, projection_radius=1.0,
        expected_batch_size=None, sampling_probability=None, expected_records=1000.0, steps=1,
    ),
    pairs=_sizes(0, 1, 1011, 1012),
    charges=of_the_plan(),
)  # fmt: skip

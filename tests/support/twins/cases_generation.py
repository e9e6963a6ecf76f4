"""Synthetic records: marginals, and generators trained against discriminators."""

from fractions import Fraction

import numpy as np

from accountant.learn import Batches, Noise
from accountant.learn.generation import (
    Category,
    Domain,
    Numeric,
    PateGanSettings,
    synthesize_marginals,
    train_dp_gan,
    train_pate_gan,
)
from support.twins import pairs
from support.twins.cases_descent import of_the_plan
from support.twins.comparison import Charge
from support.twins.registry import case

DOMAIN = Domain(
    {
        "size": Numeric((-2.0, -1.0, 0.0, 1.0, 2.0)),
        "kind": Category((0.0, 1.0, "other")),
        "wide": Numeric((-1e300, 0.0, 1e300)),
    }
)


def _records(X):
    return np.column_stack([X[:, 0], np.arange(len(X)) % 3, X[:, 2]])


def _tables(only=None):
    def found():
        for name, X in pairs.tables(3):
            if only is None or name in only:
                yield pairs.without(f"{name}, the last record", (_records(X),), len(X) - 1).turned()

    return found


def _odd():
    """One record holds what is no number, no value of the domain, or nothing one can compare."""
    for entry in (float("nan"), float("inf"), "a word", None, [1], 10**400, np.array([1.0, 2.0])):
        table = np.empty((9, 3), object)
        table[:] = _records(pairs.features(9, 3)).tolist()
        table[4] = (entry,) * 3 if not isinstance(entry, np.ndarray) else (0.0, "x", 0.0)
        yield pairs.without(f"a record of {entry!r}", (table,), 4)


def _marginal_price(result, pair):
    plan = {type(part).__name__: part for part in _parts(result.mechanism)}
    single = Charge(1, squared=1 / Fraction(plan["Gaussian"].noise_multiplier) ** 2)
    choice = Charge(1, pure=Fraction(plan["ExponentialMechanism"].epsilon0))
    return [single] * 3 + [choice] * 2 + [single] * 2


def _parts(mechanism):
    found = []
    for part, _ in mechanism.parts:
        found += _parts(part) if hasattr(part, "parts") else [part]
    return found


case(
    name="synthesize_marginals",
    covers=(
        "accountant.learn.generation.synthesize_marginals",
        "accountant.learn.generation.Domain",
        "accountant.learn.generation.Category",
        "accountant.learn.generation.Numeric",
    ),
    run=lambda data: synthesize_marginals(data[0], DOMAIN, delta=1e-5, noise_multiplier=3.0, rng=1),
    pairs=lambda: [*_tables()(), *_odd()],
    charges=_marginal_price,
)

case(
    name="train_dp_gan",
    run=lambda data: train_dp_gan(
        data[0], DOMAIN, batches=Batches(20.0, sampling_probability=0.5, steps=2),
        noise=Noise(1.0), delta=1e-5, hidden=(4,), generator_hidden=(4,),
        rng=1,
    ),
    pairs=lambda: [*_tables(("ordinary", "one row"))(), *list(_odd())[:3]],
    charges=of_the_plan(),
)  # fmt: skip


def _settings(**given):
    small = {"teachers": 5, "iterations": 3, "labels": 4, "batch": 8, "teacher_hidden": 4}
    return PateGanSettings(**small, hidden=(4,), generator_hidden=(4,), noise_size=3, **given)


def _label_price(result, pair):
    distance = next(iter(_parts(result.mechanism))).distance
    return [Charge(1, squared=(Fraction(distance) / Fraction(result.sigma)) ** 2)] * result.labels


for name, settings in {
    "ordinary": _settings(),
    "teachers that diverge": _settings(teacher_rate=1e200, teacher_steps=2),
    "teachers that diverge late": _settings(teacher_rate=1e100),
}.items():
    case(
        name=f"train_pate_gan, {name}",
        covers=(
            "accountant.learn.generation.train_pate_gan",
            "accountant.learn.generation.PateGanSettings",
        ),
        run=lambda data, settings=settings: train_pate_gan(
            data[0], DOMAIN, delta=1e-5, sigma=4.0, settings=settings, rng=1
        ),
        pairs=_tables(("ordinary", "one row", "two rows", "duplicates")),
        charges=_label_price,
    )

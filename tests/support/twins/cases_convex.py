"""Convex fits: released minima against their sensitivity, and the certificates behind them."""

from fractions import Fraction

import numpy as np

from accountant.learn.convex import (
    BoundedPoisson,
    Huber,
    HuberHinge,
    Logistic,
    Softmax,
    ada_ssp,
    bolt_on_sgd,
    exponential_mechanism,
    gibbs_posterior,
    noisy_gradient_descent,
    perturb_objective,
    perturb_output,
    private_covariance,
    private_mean,
    private_quantile,
    private_ridge,
)
from accountant.mechanisms import GDP, Gaussian, PureDP
from support.twins import pairs
from support.twins.comparison import Charge
from support.twins.registry import case

D = 3
BUDGET = {"epsilon": 1.0, "delta": 1e-5, "rng": 1}
# A record moves the exact minimum by L / λ; certified ones by a tiny share more.
ROOM = 1 + Fraction(1, 100)


def of_mechanisms(result, pair):
    """One release for each mechanism of the result, in the order they are made."""
    return [_charge(mechanism) for mechanism in result.mechanisms]


def _charge(mechanism):
    if isinstance(mechanism, Gaussian):
        ratio = Fraction(mechanism.distance) / Fraction(mechanism.noise_multiplier)
        return Charge(1, squared=ratio**2)
    if isinstance(mechanism, GDP):
        return Charge(1, squared=Fraction(mechanism.mu()) ** 2)
    assert isinstance(mechanism, PureDP)
    return Charge(1, pure=Fraction(mechanism.epsilon0))


def of_a_minimum(loss, norm, relation=1):
    """The move of a minimum at fixed noise, in units of the noise that is added to it."""

    def charges(result, pair):
        lam = Fraction(result.details["regularization"])
        allowed = Fraction(loss.slope_bound) * Fraction(norm) * relation / lam * ROOM
        return [Charge(1, length=allowed)]

    return charges


def of_noise_beforehand(result, pair):
    """Pure noise of the size of the sensitivity is in the value already, a tiny release follows."""
    distance, noise = (Fraction(result.details[k]) for k in ("sensitivity", "noise"))
    assert noise * Fraction(result.epsilon) >= distance
    return [Charge(1, length=distance * ROOM)]


def fitted(method, **given):
    """Return a run of a fit."""

    def run(data):
        return method(*data, **BUDGET | given)

    return run


def _targets(loss):
    if isinstance(loss, Huber):
        return (pairs.numbers(1.0), pairs.numbers(1e12), pairs.numbers(1e30), pairs.numbers(1e-30))
    if isinstance(loss, BoundedPoisson):
        return (lambda X: np.arange(len(X)) % 4 + 0.0, pairs.numbers(1e30))
    if isinstance(loss, Softmax):
        return (lambda X: np.arange(len(X)) % 3,)
    return (pairs.signs,)


LOSSES = (Logistic(), HuberHinge(), Huber(1.0), BoundedPoisson(), Softmax(3))
FEW = ("ordinary", "one row", "half of the rows times 1e+150", "first column ones, others zero")


def _fits(loss, only=FEW, n=21):
    def found():
        for number, target in enumerate(_targets(loss)):
            kept = only if number == 0 or only is None else only[:1]
            yield from pairs.add_or_remove(D, target, n, kept)

    return found


def _constant(n, y, d=1):
    """Equal records, first column ones: the largest sums there are."""
    X = np.zeros((n, d))
    X[:, 0] = 1.0
    return pairs.without(f"{n} equal records, targets {y:g}, {d} columns", (X, np.full(n, y)), -1)


for loss in LOSSES:
    for delta in (1e-5, 0.0):
        case(
            name=f"perturb_output, {loss!r}, delta {delta:g}",
            run=fitted(perturb_output, loss=loss, delta=delta, data_norm=1.0, regularization=0.5),
            pairs=_fits(loss, FEW if delta else FEW[:2]),
            charges=of_mechanisms if delta else of_noise_beforehand,
            more=_fits(loss, None),
        )
        case(
            name=f"perturb_objective, {loss!r}, delta {delta:g}",
            run=fitted(perturb_objective, loss=loss, delta=delta, data_norm=1.0),
            pairs=_fits(loss, FEW if delta else FEW[:2]),
            charges=of_a_minimum(loss, 1.0),
            more=_fits(loss, None),
        )

case(
    name="perturb_output, Huber, little regularization",
    run=fitted(perturb_output, loss=Huber(1.0), data_norm=1.0, regularization=1e-5),
    pairs=lambda: [_constant(n, 1e30) for n in (173, 174, 175)],
    charges=of_mechanisms,
)
case(
    name="perturb_output, Huber, five columns",
    run=fitted(perturb_output, loss=Huber(1.0), data_norm=1.0, regularization=1e-2),
    pairs=lambda: [_constant(n, 1e12, 5) for n in (3586, 3587, 3588)],
    charges=of_mechanisms,
)
for loss, sizes in ((Huber(1.0), (44_006, 44_013)), (BoundedPoisson(), (66_933, 80_000))):
    case(
        name=f"perturb_objective, {loss!r}, many records",
        run=fitted(perturb_objective, loss=loss, data_norm=1.0),
        pairs=tuple,
        charges=of_a_minimum(loss, 1.0),
        more=lambda sizes=sizes: [_constant(n, 1e12, 5) for n in sizes],
    )
for name, method, given in (
    ("exponential_mechanism", exponential_mechanism, {"radius": 2.0, "points": 33}),
):
    for loss in LOSSES[:4]:
        case(
            name=f"{name}, {loss!r}",
            run=lambda data, m=method, g=given, loss=loss: m(
                *data, epsilon=0.8, data_norm=1.0, loss=loss, rng=1, **g
            ),
            pairs=lambda loss=loss: [
                p for t in _targets(loss) for p in pairs.add_or_remove(2, t, only=FEW)
            ],
            charges=of_mechanisms,
            more=lambda loss=loss: [
                p for t in _targets(loss) for p in pairs.add_or_remove(2, t, n=2100)
            ],
        )

for loss in LOSSES:
    for gamma in (0.0, 0.05):
        case(
            name=f"bolt_on_sgd, {loss!r}, regularization {gamma:g}",
            run=fitted(
                bolt_on_sgd, loss=loss, data_norm=1.0, passes=2, batch_size=4, regularization=gamma
            ),
            pairs=lambda loss=loss: pairs.replacements(D, _targets(loss)[0], only=FEW),
            charges=of_mechanisms,
            more=lambda loss=loss: [p for t in _targets(loss) for p in pairs.replacements(D, t)],
        )
    case(
        name=f"noisy_gradient_descent, {loss!r}",
        run=fitted(noisy_gradient_descent, loss=loss, data_norm=1.0, steps=3, step_size=0.1),
        pairs=_fits(loss),
        charges=lambda result, pair: [Charge(3, squared=Fraction(result.mechanisms[0].mu()) ** 2)],
        more=lambda loss=loss: [*_fits(loss, None)(), *_fits(loss, FEW[:2], 257)()],
    )


def _last_price(result, pair):
    """One step of a descent whose last iterate is paid for: its own μ, at one step in all."""
    return [Charge(1, squared=Fraction(result.mechanisms[0].mu()) ** 2)]


for loss in LOSSES[:4]:
    case(
        name=f"noisy_gradient_descent, last iterate, {loss!r}",
        run=fitted(
            noisy_gradient_descent, loss=loss, data_norm=1.0, steps=1, step_size=0.01,
            account="last", radius=3.0, regularization=0.1,
        ),
        pairs=lambda loss=loss: [
            pairs.zeroed(f"{name}, blank", (X, _targets(loss)[0](X)), 4)
            for name, X in pairs.tables(D)
            if len(X) > 4 and X.dtype.kind == "f"
        ],
        charges=_last_price,
    )  # fmt: skip


for method in (private_mean, private_covariance):
    for delta in (1e-5, 0.0):
        case(
            name=f"{method.__name__}, delta {delta:g}",
            run=lambda data, m=method, delta=delta: m(
                data[0], epsilon=1.0, delta=delta, rng=1, bound=1.5, center=0.25
            ),
            pairs=lambda: pairs.add_or_remove(D, None),
            charges=of_mechanisms,
            more=lambda: [p for n in (255, 256, 257, 513) for p in pairs.add_or_remove(D, None, n)],
        )


def _columns():
    for pair in pairs.add_or_remove(1, None):
        if pair.left[0].dtype.kind == "f":
            yield pairs.replace(pair, left=(pair.left[0][:, 0],), right=(pair.right[0][:, 0],))


for lower, upper in ((-1.0, 1.0), (0.0, 1e-300), (-8e307, 8e307)):
    case(
        name=f"private_quantile in [{lower:g}, {upper:g}]",
        run=lambda data, lower=lower, upper=upper: private_quantile(
            data[0], 0.3, epsilon=1.0, lower=lower, upper=upper, rng=1
        ),
        pairs=_columns,
        charges=of_mechanisms,
        replays=False,
    )

for method in (private_ridge, ada_ssp):
    for size in (1.0, 1e30, 1e-30):
        case(
            name=f"{method.__name__}, targets of size {size:g}",
            run=fitted(method, data_norm=1.0, target_bound=size),
            pairs=lambda size=size: pairs.add_or_remove(D, pairs.numbers(3.0 * size)),
            # AdaSSP names the eigenvalue's mechanism first and releases it last.
            charges=lambda result, pair: of_mechanisms(result, pair)[::-1],
        )

GIBBS = (Logistic(), Huber(1.0))
for loss in GIBBS:
    case(
        name=f"gibbs_posterior, {loss!r}",
        run=fitted(gibbs_posterior, loss=loss, data_norm=1.0, regularization=1.0),
        pairs=lambda loss=loss: [
            p for t in _targets(loss)[:2] for p in pairs.add_or_remove(2, t, only=FEW)
        ],
        replays=False,
        more=lambda loss=loss: [
            _constant(n, 1e9 if isinstance(loss, Huber) else 1.0) for n in (20_000, 60_000)
        ],
    )

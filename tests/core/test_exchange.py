"""Replace-one on Poisson samples, natively: stored profiles, the transform's bounds, extremes.

The stored profiles were computed in ball arithmetic on other lines (exchange.py); they are judged
in decimal arithmetic with zero tolerance.
"""

import math
from decimal import Decimal

import pytest
from flint import arb, ctx

from accountant._core import answers as core
from accountant.errors import DomainError
from support.oracle.exchange import profile, transform
from support.oracle_checks import stored

STORED = stored("exchange.jsonl")


def test_stored_profiles_are_enclosed():
    wrong, wide = [], []
    for row in STORED:
        low, high = core.exchange_delta_bounds(
            row["distance"], row["q"], float(row["steps"]), row["epsilon"]
        )
        if not (Decimal(low) <= Decimal(row["upper"]) and Decimal(high) >= Decimal(row["lower"])):
            wrong.append(row["id"])
        if not high - low <= 1e-6 * high:
            wide.append((row["id"], row["steps"]))
    assert not wrong
    # Few steps decay slowly.
    assert len(wide) <= 0.2 * len(STORED), wide
    assert all(steps < 40 for _, steps in wide)


def test_stored_profiles_are_inverted():
    """At δ below the stored profile ε is above the stored one, and the other way round."""
    for row in STORED:
        arguments = row["distance"], row["q"], float(row["steps"])
        truth = float(Decimal(row["lower"]))
        above, _ = core.exchange_epsilon_bounds(*arguments, truth * (1.0 + 1e-9))
        _, below = core.exchange_epsilon_bounds(*arguments, truth * (1.0 - 1e-9))
        assert above <= row["epsilon"] <= below, row["id"]


def test_the_oracle_agrees_with_what_was_stored():
    row = next(row for row in STORED if row["steps"] > 1000)
    truth = profile(row["distance"], row["q"], row["steps"], row["epsilon"])
    assert truth.overlaps(arb(str((Decimal(row["lower"]) + Decimal(row["upper"])) / 2)))


@pytest.mark.long(keep=14)
@pytest.mark.parametrize("distance", [0.01, 0.7, 3.0])
@pytest.mark.parametrize("q", [1e-4, 0.3, 0.99])
@pytest.mark.parametrize("order", [1.0 + 2.0**-20, 1.001, 2.0, 7.5])
def test_divergences_are_enclosed(distance, q, order):
    ctx.prec = 160
    truth = transform(distance, q, arb(order), 16.0).real.log() / (arb(order) - 1)
    low, high = core.exchange_renyi_bounds(distance, q, order)
    assert arb(low) <= truth
    assert truth <= arb(high)
    assert high - low <= 1e-11 * high


@pytest.mark.long(keep=3)
@pytest.mark.parametrize("distance", [1e-9, 1e-3, 0.5, 5.0, 32.0])
@pytest.mark.parametrize("q", [1e-300, 1e-9, 0.5, 1.0 - 2.0**-53])
def test_extreme_arguments_have_an_answer(distance, q):
    for steps in (2.0, 100.0, 2.0**53):
        for delta in (1e-300, 1e-6, 0.9):
            low, high = core.exchange_epsilon_bounds(distance, q, steps, delta)
            assert 0.0 <= low <= high
        for epsilon in (0.0, 1.0, 700.0):
            low, high = core.exchange_delta_bounds(distance, q, steps, epsilon)
            assert 0.0 <= low <= high <= 1.0


def test_it_lies_between_its_neighbours():
    """No more than the noise without sampling, no less than fewer steps or a lower rate."""
    low = [core.exchange_delta_bounds(0.5, 0.1, n, 1.0)[0] for n in (100.0, 200.0, 400.0)]
    high = [core.exchange_delta_bounds(0.5, 0.1, n, 1.0)[1] for n in (100.0, 200.0, 400.0)]
    assert high[0] < low[1] < high[1] < low[2]
    plain = core.delta_bounds(1.0, 1.0, 100.0, 1.0, core.EITHER)  # distance 2μ, always sampled
    assert high[0] < plain[1]
    assert core.exchange_delta_bounds(0.5, 0.05, 100.0, 1.0)[1] < low[0]


@pytest.mark.parametrize(
    "arguments",
    [
        (0.0, 0.5, 2.0, 1.0),
        (50.0, 0.5, 2.0, 1.0),
        (1.0, 0.0, 2.0, 1.0),
        (1.0, 1.0, 2.0, 1.0),
        (1.0, 0.5, 1.0, 1.0),
        (1.0, 0.5, 2.5, 1.0),
        (1.0, 0.5, 2.0, math.nan),
        (1.0, 0.5, 2.0, -1.0),
        (math.nan, 0.5, 2.0, 1.0),
    ],
)
def test_the_core_checks_its_domain(arguments):
    with pytest.raises(DomainError):
        core.exchange_delta_bounds(*arguments)
    with pytest.raises(DomainError):
        core.exchange_epsilon_bounds(*arguments)

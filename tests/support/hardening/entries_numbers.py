"""The fuzzer at what takes numbers and gives numbers: one call, calibration, conversion."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import accountant as ac
from accountant import attack, conversions
from accountant.analyses import classical, gdp
from support.hardening.draws import CORNERS, Draw, judged


def quick(draw: Draw) -> None:
    q, sigma, steps, workers = draw.probability(), draw.noise(), draw.count(10**9), None
    if draw.below(8) == 0:
        q = np.array([draw.log_uniform(1e-6, 1.0) for _ in range(1 + draw.below(3))])
        workers = draw.choice([None, 1, 2, 0, -1, 1.5, True])
    run = q, sigma, steps
    calls = [
        lambda: judged(ac.get_epsilon, *run, draw.delta(), workers=workers),
        lambda: judged(ac.get_delta, *run, draw.loss(), workers=workers, most=1.0),
        lambda: judged(ac.epsilon_bounds, *run, draw.delta()),
        lambda: judged(ac.delta_bounds, *run, draw.loss(), most=1.0),
        lambda: judged(ac.get_rdp, *run, draw.sane(1.01, 1e4), workers=workers),
        lambda: judged(attack.attack_tpr, *run, draw.probability(), most=1.0),
        lambda: judged(attack.membership_advantage, *run, most=1.0),
        lambda: judged(attack.bayes_accuracy, *run, draw.probability(), most=1.0),
        lambda: judged(
            attack.positive_predictive_value, *run, draw.probability(), draw.probability(), most=1.0
        ),
    ]
    draw.choice(calls)()


def calibration(draw: Draw) -> None:
    epsilon, delta = draw.sane(1e-3, 100.0), draw.delta()
    kind = draw.below(4)
    if kind == 0:
        judged(ac.calibrate_sigma, epsilon, delta, q=draw.probability(), steps=draw.count(10**5))
    elif kind == 1:
        judged(ac.calibrate_steps, epsilon, delta, q=draw.probability(), sigma=draw.noise())
    elif kind == 2:
        judged(
            ac.calibrate_q, epsilon, delta, sigma=draw.noise(), steps=draw.count(10**5), most=1.0
        )
    else:
        judged(ac.calibrate, lambda x: ac.Gaussian(x), epsilon=epsilon, delta=delta)


CONVERSIONS: tuple[tuple[Callable[..., Any], str, float], ...] = (
    (conversions.approximate_dp_tradeoff, "edp", 1.0),
    (conversions.gdp_to_epsilon, "md", math.inf),
    (conversions.gdp_to_delta, "me", 1.0),
    (conversions.gdp_to_rdp, "mo", math.inf),
    (conversions.gdp_to_zcdp, "m", math.inf),
    (conversions.largest_gdp, "ed", math.inf),
    (conversions.pure_to_rdp, "eo", math.inf),
    (conversions.pure_to_zcdp, "e", math.inf),
    (conversions.pure_to_gdp, "e", math.inf),
    (conversions.zcdp_to_rdp, "eo", math.inf),
    (conversions.zcdp_to_epsilon, "ed", math.inf),
    (conversions.zcdp_to_delta, "ee", 1.0),
    (conversions.tcdp_to_epsilon, "eod", math.inf),
    (conversions.tcdp_to_delta, "eoe", 1.0),
    (gdp.gdp_delta_bounds, "me", 1.0),
    (gdp.gdp_epsilon_bounds, "md", math.inf),
)


def conversion(draw: Draw) -> None:
    kinds = {
        "e": draw.loss,
        "d": draw.delta,
        "p": draw.probability,
        "m": lambda: draw.sane(1e-6, 1e3),
        "o": lambda: draw.sane(1.0001, 1e6),
    }
    kind = draw.below(len(CONVERSIONS) + 4)
    if kind < len(CONVERSIONS):
        call, signature, most = CONVERSIONS[kind]
        judged(call, *(kinds[letter]() for letter in signature), most=most)
        return
    pairs = [(draw.loss(), draw.delta(), draw.count()) for _ in range(draw.below(4))]
    if kind == len(CONVERSIONS):
        judged(classical.basic_epsilon, pairs, draw.delta())
    elif kind == len(CONVERSIONS) + 1:
        form = draw.choice(["kairouz", "hyperbolic", "original", "x", None])
        judged(classical.advanced_epsilon, pairs, draw.delta(), form=form)
    elif kind == len(CONVERSIONS) + 2:
        judged(gdp.compose_gdp, [(draw.sane(1e-6, 1e3), draw.count()) for _ in pairs])
    else:
        slope = draw.choice([draw.log_uniform(1e-6, 1e3), *CORNERS])
        judged(conversions.rdp_to_epsilon, lambda order: order * slope, draw.delta())
        judged(conversions.rdp_to_delta, lambda order: order * slope, draw.loss(), most=1.0)

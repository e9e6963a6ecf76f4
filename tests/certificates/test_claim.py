"""Certificates of random runs pass the checker, at the accountant's own ε; false claims do not.

``CERTIFICATE_RUNS=1000 pytest -m slow tests/certificates`` is the long run.
"""

import json
import math
import os
import random

import pytest

pytest.importorskip("flint")
import accountant as ac
from accountant.sampling import WithReplacementSampled
from dp_verifier import Refused, check
from support.certificate_sweep import judged, random_run
from support.refusals import refused

SWEEP = int(os.environ.get("CERTIFICATE_RUNS", "100"))


REPLACE_ONE = ac.NeighbouringRelation.REPLACE_ONE


def sampled(q, sigma, steps):
    return steps * ac.PoissonSampled(ac.Gaussian(sigma), q)


RUNS = {
    "run": (sampled(0.01, 1.0, 1000), 1e-5),
    "two kinds and plain noise": (
        sampled(0.01, 1.0, 1000) + sampled(0.001, 0.8, 3000) + 3 * ac.Gaussian(5.0),
        1e-6,
    ),
    "users with four records": (2000 * ac.PoissonSampled(ac.Gaussian(1.0), 0.01).group(4), 1e-6),
    "plain noise": (5 * ac.Gaussian(1.0), 1e-6),
    "one step": (sampled(0.01, 1.0, 1), 1e-5),
    "one step that loses nothing": (sampled(0.5, 1.0, 1), 0.3),
    "one step of much noise": (sampled(0.3, 1e5, 1), 1e-9),
    "two steps": (sampled(0.3, 1.0, 2), 1e-5),
    "little noise": (sampled(0.5, 0.3, 3), 1e-5),
    "hardly ever": (sampled(1e-6, 1.0, 100), 1e-3),
    "large delta": (sampled(0.9, 50.0, 10**5), 0.5),
    "many steps": (sampled(1e-6, 5.0, 10**12), 1e-20),
    "rare jumps beside little noise and much": (
        sampled(1.2e-6, 12.0, 8_731_034) + sampled(2.95e-7, 0.4226, 1_346_097),
        1e-21,
    ),
    "an enormous ε": (sampled(0.0152, 0.386, 10**11) + sampled(0.076, 0.986, 941), 0.167),
    "steps of little noise": (sampled(0.0059, 0.242, 270_844), 1e-10),
    "nothing lost but by rare jumps": (sampled(1.645e-7, 0.405, 143_027), 0.0077),
    "randomised response": (1000 * ac.RandomizedResponse(0.1), 1e-6),
    "randomised response among seven": (60 * ac.RandomizedResponse(1.0, k=7), 1e-6),
    "randomised response of two strengths, and a guarantee": (
        30 * ac.RandomizedResponse(0.2) + 20 * ac.ApproximateDP(0.1, delta=1e-8),
        1e-6,
    ),
    "randomised response beside noise": (
        5 * ac.RandomizedResponse(1.0) + 10 * ac.Gaussian(5.0),
        1e-6,
    ),
    "Laplace noise": (20 * ac.Laplace(3.0), 1e-6),
    "Laplace noise on a sample": (20 * ac.PoissonSampled(ac.Laplace(1.0), 0.05), 1e-6),
    "next to the largest loss": (3 * ac.PoissonSampled(ac.Laplace(1.0), 0.1), 1e-6),
    "discrete Gaussian": (100 * ac.DiscreteGaussian(2.0), 1e-6),
    "discrete Gaussian on a sample": (
        4 * ac.PoissonSampled(ac.DiscreteGaussian(2.0, sensitivity=2), 0.1),
        1e-4,
    ),
    "discrete Laplace": (100 * ac.DiscreteLaplace(3.0, sensitivity=2), 1e-6),
    "two lists of masses": (20 * ac.DominatingPMFs((0.5, 0.3, 0.2), (0.4, 0.35, 0.25)), 1e-5),
    "replace one": (
        3 * ac.Laplace(2.0, relation=REPLACE_ONE) + ac.Gaussian(4.0, relation=REPLACE_ONE),
        1e-6,
    ),
    "few steps of which one may jump far": (
        sampled(1.7855355780629585e-06, 1.4766390397626588, 33),
        8.532589766011288e-19,
    ),
    "two rare steps": (sampled(4.29e-7, 0.7077, 2), 2.68e-8),
    "draws with replacement": (
        2000 * WithReplacementSampled(1.1, batch_size=16, dataset_size=1600),
        1e-6,
    ),
}


LONG = {
    "nothing lost but by rare jumps",
    "rare jumps beside little noise and much",
    "randomised response beside noise",
    "replace one",
    "draws with replacement",
}
NAMES = [pytest.param(each, marks=pytest.mark.slow) if each in LONG else each for each in RUNS]


@pytest.mark.long(keep=8)
@pytest.mark.parametrize("name", NAMES)
def test_a_certificate_passes(name):
    run, delta = RUNS[name]
    made = ac.certificate(run, delta)
    check(made.text)
    assert made.epsilon >= run.epsilon_bounds(delta).lower
    # upper ends on grids are out of order by their width at two δ so close
    own = max(run.epsilon(delta * (1 - 3e-9)), run.epsilon(delta * (1 - 1e-8)))
    assert made.epsilon <= own * (1 + made.larger) * (1 + 1e-12)
    assert made.larger <= 2e-6
    assert len(made.text) < 20_000


@pytest.mark.long(keep=8)
@pytest.mark.parametrize("name", NAMES)
def test_a_smaller_epsilon_is_refused(name):
    run, delta = RUNS[name]
    document = json.loads(ac.certificate(run, delta).text)
    if not document["claim"]["epsilon"]:
        pytest.skip("no smaller ε")
    lower = float(run.epsilon_bounds(delta).lower)
    for epsilon in (math.nextafter(lower * (1 - 1e-8), 0.0), 0.9 * lower, 0.0):
        document["claim"]["epsilon"] = epsilon
        refused(Refused, "", check, json.dumps(document))


def test_a_larger_claim_says_so():
    run, delta = 20 * ac.Laplace(3.0), 1e-6
    made = ac.certificate(run, delta)
    assert 1e-12 < made.larger < 2e-6
    assert made.epsilon == pytest.approx(run.epsilon(delta) * (1 + made.larger), rel=1e-8)
    assert "larger" in json.loads(made.text)["note"]
    assert ac.certificate(sampled(0.01, 1.0, 1000), 1e-5).larger == 0.0


@pytest.mark.long(keep=21)
@pytest.mark.parametrize("name", NAMES)
def test_a_smaller_delta_is_refused(name):
    run, delta = RUNS[name]
    document = json.loads(ac.certificate(run, delta).text)
    less = delta * (1 - 1e-6)
    if float(run.delta_bounds(document["claim"]["epsilon"]).lower) > less:
        document["claim"]["delta"] = less
        refused(Refused, "", check, json.dumps(document))


def test_a_ledger_has_one_certificate():
    ledger = ac.Accountant()
    ledger.step(noise_multiplier=1.0, sampling_probability=0.01, count=500)
    ledger.step(noise_multiplier=1.2, sampling_probability=0.02, count=700)
    ledger.compose(ac.Gaussian(10.0))
    made = ac.certificate(ledger, 1e-6)
    claim, _ = check(made.text)
    assert sorted(part.count for part in claim.parts) == [1, 500, 700]
    assert made.epsilon == pytest.approx(ledger.epsilon(1e-6), rel=1e-8)


def test_what_cannot_be_certified_says_so():
    refused(ac.UnsupportedError, "Gaussian", ac.certificate, ac.ExponentialMechanism(1.0), 1e-6)
    refused(ac.DomainError, "empty", ac.certificate, ac.Accountant(), 1e-6)
    for delta in (0.0, 1.0):
        refused(ac.DomainError, "delta", ac.certificate, ac.Gaussian(1.0), delta)


@pytest.mark.long(keep=8)
@pytest.mark.parametrize("seed", range(12))
def test_random_runs(seed):
    run, delta = random_run(random.Random(seed))
    try:
        made = ac.certificate(run, delta)
    except ac.UnsupportedError as error:
        pytest.skip(str(error))
    check(made.text)


@pytest.mark.slow
def test_random_runs_in_a_long_sweep():
    records = [judged(seed) for seed in range(1000, 1000 + SWEEP)]
    for record in records:
        assert record["verdict"] != "the claim is false", record
        assert not record.get("lower epsilon"), record
        assert not record.get("lower delta"), record
        assert record.get("damaged") != "false", record
    assert sum(record["verdict"] == "passed" for record in records) >= 0.99 * SWEEP
    assert sum(record.get("larger", 0.0) > 0.0 for record in records) <= 0.02 * SWEEP

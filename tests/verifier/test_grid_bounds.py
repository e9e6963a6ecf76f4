"""Whatever knots a document names, the grid's bound is not below the profile by enumeration."""

import json
import random
from fractions import Fraction
from types import SimpleNamespace

import mpmath
import pytest
from flint import arb, ctx, fmpz

import accountant as ac
from dp_verifier import Refused, check
from dp_verifier.document import checked, read
from dp_verifier.evidence import BOUNDS
from dp_verifier.grid import Knots
from dp_verifier.laws import law_of
from support.oracle import compositions as outcomes


def exact(value):
    """The decimal that a document has."""
    return arb(str(value))


def random_part(rng):
    """A part of a document, and its outcomes."""
    kind = rng.choice(("response", "listed", "laplace", "gaussian"))
    rate = rng.choice((1, 1, 0.3, 1e-6, 0.999))
    if kind == "response":
        epsilon, k, rest = (
            rng.choice((0, 0.1, 1.0, 9.0)),
            rng.choice((2, 3, 7)),
            rng.choice((0, 0.1)),
        )
        part = {"randomised_response": epsilon, "categories": k, "infinite": rest}
        pairs = outcomes.response(exact(epsilon), k, exact(rest))
    elif kind == "listed":
        p, q = rng.choice((([0.5, 0.5, 0], [0.25, 0.5, 0.25]), ([0, 1], [0.75, 0.25])))
        part, pairs = {"p": p, "q": q}, [(exact(u), exact(v)) for u, v in zip(p, q, strict=True)]
    elif kind == "laplace":
        scale, move = rng.choice((0.3, 1.0)), rng.choice((1, 3))
        part = {"discrete_laplace": scale, "sensitivity": move}
        pairs = outcomes.discrete_laplace(exact(scale), move)
    else:
        part = {"discrete_gaussian": 0.7, "sensitivity": 2}
        pairs = outcomes.discrete_gaussian(exact(0.7), 2, 16)
    if rate != 1:
        part["sampled"], pairs = rate, outcomes.sampled(pairs, exact(rate), False)
    return part | {"count": 1}, pairs


@pytest.mark.long(keep=7)
@pytest.mark.parametrize("seed", range(40))
def test_no_knots_give_less_than_the_truth(seed):
    rng = random.Random(seed)
    with ctx.workprec(256):
        chosen = [random_part(rng) for _ in range(rng.choice((1, 2, 2, 3)))]
    while len(chosen) > 2 and sum(len(pairs) for _, pairs in chosen) > 60:
        chosen.pop()
    with ctx.workprec(256):
        laws = [law_of(checked(read(json.dumps(part)), "part", "part")) for part, _ in chosen]
        for _ in range(6):
            spacing = checked(read(str(rng.choice((0.01, 0.1, 0.37, 3.0, 50.0)))), "0..100", "D")
            low, high = -rng.choice((0, 1, 5, 60)), rng.choice((0, 1, 5, 60))
            given = SimpleNamespace(
                spacing=spacing, low=low, high=high, bits=rng.choice((0, 20, 128))
            )
            epsilon, remove = rng.choice((0.0, 0.05, 1.0, 5.0, 40.0)), rng.random() < 0.5
            bound = BOUNDS["grid"](laws, given, remove, arb(str(epsilon)))
            sides = [pairs if remove else outcomes.reverse(pairs) for _, pairs in chosen]
            truth = outcomes.profile(outcomes.product(sides), exact(epsilon))
            assert bound.upper() >= truth * (1 - exact(1e-45)), (chosen[0][0], given, remove)


def test_a_share_next_to_a_whole_number_of_units_is_not_counted_as_the_next_one():
    # e^-D is just below 1000 units of 2^-10, too close for the ball around it to tell.
    with ctx.workprec(192), mpmath.workdps(120):
        spacing = Fraction(int(mpmath.log(mpmath.mpf(1024) / 1000) * 10**79) + 1, 10**79)
        kept = 1024 * mpmath.exp(-mpmath.mpf(spacing.numerator) / spacing.denominator)
        assert 0 < 1000 - kept < 1e-70
        knots = Knots(SimpleNamespace(low=0, high=1, bits=10, spacing=spacing), True)
        one = ([fmpz(0), fmpz(1024)], fmpz(0))
        assert int(knots.product(one, one)[1]) >= 1024 - kept


def document(p, q, delta):
    evidence = {"kind": "grid", "spacing": 0.01, "low": -200, "high": 200, "bits": 64}
    part = {"p": p, "q": q, "count": 1}
    claim = {"relation": "add-or-remove", "direction": "both", "epsilon": 0, "delta": delta}
    whole = {"format": "dp-certificate", "version": 1, "claim": claim | {"parts": [part]}}
    return json.dumps(whole | {"evidence": {"remove": evidence, "add": evidence}})


@pytest.mark.parametrize(
    ("p", "q"),
    [
        ([0.1, 0.1], [0.1, 0.1]),
        ([0], [0]),
        ([1], [0.5]),
        ([0.5, 0.5], [0.5, 1]),
        ([0.5, 0.499999], [0.5, 0.499999]),
    ],
)
def test_masses_of_some_outcomes_show_nothing(p, q):
    with pytest.raises(Refused, match="their sum is not 1"):
        check(document(p, q, 0.999))


def test_a_sum_that_misses_one_by_rounding_is_shared():
    third = 0.3333333333333333
    claim, _ = check(document([third] * 3, [third] * 3, 1e-15))
    assert sum(claim.parts[0].p) != 1
    uneven = ac.DominatingPMFs((0.1, 0.2, 0.7), (third, third, third))
    assert check(ac.certificate(3 * uneven, 1e-3).text)


def test_a_sample_shows_nothing_about_replacing_a_record():
    given = json.loads(document([0.6, 0.4], [0.4, 0.6], 0.999))
    given["claim"]["parts"][0]["sampled"] = 0.1
    assert check(json.dumps(given))
    given["claim"]["relation"] = "replace-one"
    with pytest.raises(Refused, match="not that of replacing"):
        check(json.dumps(given))


def test_a_gaussian_sample_shows_nothing_about_replacing_a_record():
    given = json.loads(ac.certificate(5 * ac.PoissonSampled(ac.Gaussian(2.0), 0.1), 1e-3).text)
    assert check(json.dumps(given))
    given["claim"]["relation"] = "replace-one"
    with pytest.raises(Refused, match="not that of replacing"):
        check(json.dumps(given))
    plain = json.loads(ac.certificate(5 * ac.Gaussian(2.0), 1e-3).text)
    plain["claim"]["relation"] = "replace-one"
    assert check(json.dumps(plain))

"""Listed masses are those of all outcomes: what a list leaves out may differ altogether."""

import json

import pytest

pytest.importorskip("flint")
import accountant as ac
from dp_verifier import Refused, check


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

"""The core in WebAssembly, under Node: the answers of Linux, or brackets that overlap them."""

import gzip
import json
import math
import random
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
from scipy.stats import norm

import accountant as ac
import dp_verifier
from accountant import attack
from support.scripts import script
from support.web import PAGE, ROOT, ask, is_missing, node

TRUTHS = ROOT / "accountant" / "selftest" / "elementary.json"
CASES = ROOT / "libaccountant" / "tests" / "cases.txt"
DOMAIN, UNBOUNDED = -1, -4

pytestmark = pytest.mark.skipif(is_missing() is not None, reason=is_missing() or "")


def fresh_cases(path, count):
    """Write answers of this machine's Python package to a file."""
    cases = script(ROOT / "libaccountant" / "tests" / "make_cases.py").cases
    path.write_text("\n".join(cases(count)) + "\n")
    return path


def test_stored_answers_are_the_same_doubles_or_overlap(tmp_path):
    lines = [line for line in CASES.read_text().splitlines() if not line.startswith("#")]
    (tmp_path / "cases.txt").write_text("\n".join(lines[:90]))
    found = node(tmp_path / "cases.txt")
    assert found["asked"] == 90
    assert found["apart"] == []
    # The C libraries differ in few last digits.
    assert found["same"] > 60


@pytest.mark.slow
def test_ten_thousand_answers_are_the_same_doubles_or_overlap(tmp_path):
    found = node(fresh_cases(tmp_path / "cases.txt", 10_000), seconds=900.0)
    print(found["asked"], "asked,", found["same"], "of them the same doubles")
    assert found["asked"] == 10_000
    assert found["apart"] == []


def test_another_answer_is_noticed(tmp_path):
    lines = [line for line in CASES.read_text().splitlines() if line.startswith("epsilon_b")]
    question, numbers = next(line for line in lines if " = 0 0x" in line and " 1 " in line).split(
        " = "
    )
    status, lower, upper = numbers.split()
    assert float.fromhex(upper) < 1.0001 * float.fromhex(lower)
    for factor in (1.001, 0.999):
        moved = ((float.fromhex(end) * factor).hex() for end in (lower, upper))
        (tmp_path / "one.txt").write_text(f"{question} = {status} {' '.join(moved)}\n")
        assert len(node(tmp_path / "one.txt")["apart"]) == 1
    (tmp_path / "one.txt").write_text(f"{question} = -1\n")
    assert len(node(tmp_path / "one.txt")["apart"]) == 1


def test_elementary_functions_err_no_more_than_they_are_trusted_to():
    truths = json.loads(TRUTHS.read_text())
    (found,) = ask(["elementaryErrors", truths])
    assert {row["name"] for row in found} == set(truths) - {"ndtr"}
    assert all(row["good"] and row["rows"] > 20 for row in found), found
    assert next(row["trusted"] for row in found if row["name"] == "erfc") == 16.0
    # An error is noticed: one truth of the sine, off by sixteen units.
    first = truths["sin"][0]
    first[1] = (float.fromhex(first[1]) * (1.0 + 2.0**-49)).hex()
    (found,) = ask(["elementaryErrors", truths])
    assert [row["name"] for row in found if not row["good"]] == ["sin"]


def test_bad_arguments_are_refused_and_nothing_is_lost():
    nan, inf = math.nan, math.inf
    bad = [
        ["epsilonBounds", nan, 1.0, 10, 1e-5],
        ["epsilonBounds", 0.5, -1.0, 10, 1e-5],
        ["epsilonBounds", 0.5, 1.0, 1.5, 1e-5],
        ["epsilonBounds", 0.5, 1.0, 10, 1.0],
        ["deltaBounds", 0.5, 1.0, 10, inf],
        ["attackRate", 0.5, 1.0, 10, nan],
        ["attackRate", 0.5, 0.0, 10, 0.5],
        ["shuffledEpsilonLower", 1.0, 0.0, 1, 1e-5],
        ["shuffledEpsilonLower", nan, 10.0, 1, 1e-5],
        ["compositionEpsilonBounds", [{"q": 2.0, "sigma": 1.0, "steps": 1}], 1e-5],
    ]
    assert ask(*bad) == [{"status": DOMAIN}] * len(bad)
    assert ask(["calibrateSigma", 1.0, 0.5, 1e-9, 1.0]) == [{"status": UNBOUNDED}]
    one, many = ask(
        ["memoryAfter", 1, "epsilonBounds", 0.01, 1.0, 1000, 1e-5],
        ["memoryAfter", 300, "epsilonBounds", 0.01, 1.0, 1000, 1e-5],
    )
    assert one == many


@pytest.mark.parametrize(
    "arguments",
    [
        [1e-300, 1.0, 1e9, 1e-5],
        [1.0, 1e-300, 1, 0.5],
        [1.0, 1e300, 1, 1e-300],
        [0.0, 1.0, 2.0**53, 0.9],
        [1e-3, 0.3, 1e9, 1e-300],
        [0.5, math.inf, 10, 1e-5],
    ],
)
def test_extreme_questions_have_the_answers_of_python(arguments):
    (found,) = ask(["epsilonBounds", *arguments])
    q, sigma, steps, delta = arguments
    expected = ac.epsilon_bounds(q, sigma, int(steps), delta)
    assert found["lower"] <= expected.upper
    assert expected.lower <= found["upper"]


@pytest.mark.parametrize(("above", "below"), [(1, 3), (256, 60_000), (7, 49), (1, 2), (999, 1000)])
def test_the_sampling_probability_is_rounded_up(above, below):
    (found,) = ask(["ratioUp", above, below])
    truth = Fraction(above, below)
    assert math.nextafter(found, 0.0) < truth <= Fraction(found)


def test_the_attack_rate_of_one_release_is_that_of_neyman_and_pearson():
    questions = list(product((0.5, 1.0, 3.0, 20.0), (1e-6, 0.01, 0.3, 0.9)))
    answers = ask(*(["attackRate", 1.0, sigma, 1, alarms] for sigma, alarms in questions))
    for (sigma, alarms), found in zip(questions, answers, strict=True):
        with mpmath.workdps(40):
            # Φ(Φ⁻¹(FPR) + 1/σ)
            quantile = mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf(alarms) - 1)
            truth = mpmath.ncdf(quantile + 1 / mpmath.mpf(sigma))
        assert truth <= found <= truth * (1 + 1e-5)


def test_attack_rates_are_those_of_python():
    questions = [
        (q, sigma, steps, alarms)
        for q, sigma, steps in ((0.01, 1.0, 1000), (0.2, 3.0, 50))
        for alarms in (0.0, 1e-3, 1.0)
    ]
    found = ask(*(["attackRate", *question] for question in questions))
    expected = [attack.attack_tpr(*question) for question in questions]
    assert found == pytest.approx(expected, rel=1e-4)


def test_one_shuffled_epoch_spends_at_least_what_is_said():
    """The profile of the largest release at the stated ε, by an integral, is at least δ."""
    delta = 1e-5
    questions = list(product((0.4, 1.0, 2.5), (2, 30, 1000)))
    answers = ask(*(["shuffledEpsilonLower", *question, 1, delta] for question in questions))
    for (sigma, steps), found in zip(questions, answers, strict=True):
        x = np.linspace(-9.0, 12.0 + 2.0 / sigma, 100_001)
        power, ways = math.exp(found), densities_of_the_largest(x, sigma, steps)
        masses = [np.trapezoid(np.maximum(p - power * q, 0.0), x) for p, q in (ways, ways[::-1])]
        assert delta <= max(masses) < 1.1 * delta


def densities_of_the_largest(x, sigma, steps):
    """Densities of the largest release where one batch stands out by 2 and where by 1."""
    below, other = norm.cdf(x), norm.pdf(x)
    found = []
    for shift in (2.0 / sigma, 1.0 / sigma):
        rest = (steps - 1) * other * norm.cdf(x - shift) * below ** (steps - 2)
        found.append(norm.pdf(x - shift) * below ** (steps - 1) + rest)
    return found


@pytest.mark.parametrize(("sigma", "epochs"), [(1.0, 1), (1.0, 10), (4.0, 100), (0.3, 3)])
def test_shuffling_a_single_batch_hides_nothing(sigma, epochs):
    """Then the largest release is the release: Gaussian, its ε known exactly."""
    (found,) = ask(["shuffledEpsilonLower", sigma, 1, epochs, 1e-5])
    truth = ac.epsilon_bounds(1.0, sigma, epochs, 1e-5)
    assert 0.97 * truth.upper <= found <= truth.upper


def test_the_lower_bound_of_shuffling_is_near_that_of_python():
    sampler = ac.sampling.ShuffledBatches(dataset_size=10_000, batch_size=100, epochs=10)
    expected = sampler.epsilon_bounds(1.0, 1e-5)
    (found,) = ask(["shuffledEpsilonLower", 1.0, 100, 10, 1e-5])
    assert 0.99 * expected.lower <= found <= expected.upper


def remove_moment(sigma, steps, order):
    """E S^order exactly: the coefficient of a power of a polynomial, to 40 digits."""
    base = [
        mpmath.exp(mpmath.mpf(j * (j - 1)) / (2 * mpmath.mpf(sigma) ** 2)) / mpmath.factorial(j)
        for j in range(order + 1)
    ]
    power = [mpmath.mpf(j == 0) for j in range(order + 1)]
    for _ in range(steps):
        power = [
            mpmath.fsum(power[j] * base[n - j] for j in range(n + 1)) for n in range(order + 1)
        ]
    return power[order] * mpmath.factorial(order) / mpmath.mpf(steps) ** order


def add_moment_of_two(sigma, order):
    """E S^(1 - order) of two steps by a trapezoid sum in the plane, to 25 digits."""
    mu, step = 1 / mpmath.mpf(sigma), mpmath.mpf(sigma) / 6 if sigma < 1.5 else mpmath.mpf("0.25")
    reach = int((11 + (order - 1) * mu) / step)
    scores = [step * k for k in range(-reach, reach + 1)]
    weights = [mpmath.npdf(t) * step for t in scores]
    ratios = [mpmath.exp(mu * t - mu**2 / 2) for t in scores]
    kept = [(w, y) for w, y in zip(weights, ratios, strict=True) if w > 1e-45]
    return mpmath.fsum(
        v * w * ((x + y) / 2) ** (1 - order) for v, x in kept for w, y in kept if v * w > 1e-40
    )


@pytest.mark.parametrize(("sigma", "order"), [(1.0, 2), (0.7, 4), (2.0, 12), (5.0, 3)])
def test_renyi_divergences_of_random_allocation_are_never_below_the_truth(sigma, order):
    counts = (1, 2, 7)
    found = ask(*(["allocationRenyiUpper", sigma, steps, order, 0] for steps in counts))
    adding = ask(*(["allocationRenyiUpper", sigma, steps, order, 1] for steps in (1, 2)))
    with mpmath.workdps(40):
        for steps, upper in zip(counts, found, strict=True):
            truth = mpmath.log(remove_moment(sigma, steps, order)) / (order - 1)
            assert truth <= upper <= truth * (1 + mpmath.mpf("1e-9")) + mpmath.mpf("1e-11")
    with mpmath.workdps(25):
        plain = order / (2 * mpmath.mpf(sigma) ** 2)
        truths = plain, mpmath.log(add_moment_of_two(sigma, order)) / (order - 1)
        for truth, upper in zip(truths, adding, strict=True):
            assert truth <= upper <= truth * (1 + mpmath.mpf("1e-9")) + mpmath.mpf("1e-9")


def above_the_exact_one(sigma, steps, epochs):
    (found,) = ask(["allocationEpsilonUpper", sigma, steps, epochs, 1e-5])
    sampler = ac.sampling.RandomAllocation(dataset_size=1, steps_per_epoch=steps, epochs=epochs)
    exact = sampler.epsilon_bounds(sigma, 1e-5)
    sampled = ac.get_epsilon(1 / steps, sigma, steps * epochs, 1e-5, method="rdp")
    assert exact.upper < found < 1.1 * sampled + 0.03
    assert found <= ac.get_epsilon(1.0, sigma, epochs, 1e-5)


def test_epsilon_of_random_allocation_is_above_the_exact_one():
    above_the_exact_one(4.0, 30, 1)


@pytest.mark.slow
@pytest.mark.parametrize("run", [(1.0, 100, 1), (0.5, 10, 1), (4.0, 1000, 1), (1.0, 100, 10)])
def test_epsilon_of_more_allocations_is_above_the_exact_one(run):
    above_the_exact_one(*run)


def test_extreme_allocations_have_an_answer_between_nothing_and_full_batches():
    for sigma in (0.02, 0.15, 0.3, 1e3, 1e6):
        questions = [
            ["allocationEpsilonUpper", sigma, steps, 3, 1e-5] for steps in (1, 3, 10**6, 10**12)
        ]
        *found, full = ask(*questions, ["epsilonBounds", 1.0, sigma, 3, 1e-5])
        assert all(0.0 <= epsilon <= full["upper"] for epsilon in found)


def test_the_first_load_is_small():
    assert len(gzip.compress(PAGE.read_bytes(), 9)) <= 500_000


CERTIFIED = [
    (0.01, 1.0, 1000, 1e-5),
    (256 / 60_000, 1.1, 14_100, 1e-5),
    (1.0, 5.0, 60, 1e-5),
    (1e-3, 2.0, 1, 1e-4),
    (1e-6, 1.0, 3, 1e-5),
    (0.001, 0.6, 100_000, 1e-8),
    (0.5, 4.0, 500, 1e-9),
    (0.02, 0.5, 10, 1e-6),
]


def test_certificates_pass_the_checker_and_smaller_claims_do_not():
    found = ask(*(["certificateOf", *run] for run in CERTIFIED))
    kinds = "".join(one["text"] for one in found)
    assert all(f'"{kind}"' in kinds for kind in ("plain", "line", "chernoff", "never_moved"))
    for (q, sigma, steps, delta), one in zip(CERTIFIED, found, strict=True):
        dp_verifier.check(one["text"])
        exact = ac.epsilon_bounds(q, sigma, steps, delta)
        assert exact.lower <= one["epsilon"] <= exact.upper * (1.0 + one["larger"]) + 1e-8
        document = json.loads(one["text"])
        assert document["claim"]["parts"][0]["count"] == steps
        if one["larger"] or one["epsilon"] == 0.0:
            continue
        document["claim"]["epsilon"] *= 1.0 - 1e-6
        with pytest.raises(dp_verifier.Refused):
            dp_verifier.check(json.dumps(document))


@pytest.mark.slow
def test_random_certificates_pass_the_checker():
    draw = random.Random(20)
    runs = [
        (
            10 ** draw.uniform(-5, 0),
            10 ** draw.uniform(-0.3, 1.3),
            round(10 ** draw.uniform(0, 6)),
            10 ** draw.uniform(-12, -2),
        )
        for _ in range(150)
    ]
    found = ask(*(["certificateOf", *run] for run in runs), seconds=900.0)
    made = [(run, one) for run, one in zip(runs, found, strict=True) if "text" in one]
    refused = []
    for run, one in made:
        try:
            dp_verifier.check(one["text"])
        except dp_verifier.Refused as reason:
            refused.append((run, reason))
    print(len(made), "made,", len(refused), "of them refused")
    assert len(made) >= 120
    assert refused == []

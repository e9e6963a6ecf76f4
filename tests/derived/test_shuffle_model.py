"""The shuffle model against exact laws of the multiset of reports, and against simulation."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import accountant as ac
from accountant.derived import shuffle_model
from accountant.errors import ArgumentTypeError, DomainError, UnsupportedError
from accountant.mechanisms import ShuffledResponses
from support.exact_laws import hockey_stick, multiset_law

REPLACE = ac.NeighbouringRelation.REPLACE_ONE


def bounds_at(model, growth):
    """Both ends of δ, the lower where e^ε is above ``growth`` and the upper where it is below."""
    around = math.log(growth)
    above = model.delta_bounds(math.nextafter(around, math.inf) + 1e-15).lower
    return float(above), float(model.delta(max(math.nextafter(around, 0.0) - 1e-15, 0.0)))


@pytest.mark.parametrize(("k", "n"), [(2, 2), (2, 7), (3, 4), (4, 4)])
def test_randomised_response_for_all_values_of_the_others(k, n):
    a = Fraction(3)
    size = a + k - 1
    kernel = [tuple((a if y == x else Fraction(1)) / size for y in range(k)) for x in range(k)]
    model = ac.ShuffleModel(ac.RandomizedResponse(math.log(3), k=k), dataset_size=n)
    for growth in (Fraction(1), Fraction(9, 8), Fraction(3, 2), Fraction(5, 2)):
        worst = Fraction(0)
        for others in itertools.combinations_with_replacement(range(k), n - 1):
            one, two = (multiset_law([kernel[x], *(kernel[z] for z in others)]) for x in (0, 1))
            worst = max(worst, hockey_stick(one, two, growth), hockey_stick(two, one, growth))
        low, high = bounds_at(model, growth)
        assert Fraction(low) <= worst <= Fraction(high)
        assert low > 0.0


def noise_kernel(kind, scale, marks, values):
    """Masses of cells of the reports of ``values``, as fractions from sixty digits."""
    mpmath.mp.dps = 60

    def distribution(t):
        if kind == "gaussian":
            return mpmath.ncdf(t / mpmath.mpf(scale))
        tail = mpmath.exp(-abs(t) / mpmath.mpf(scale)) / 2
        return tail if t < 0 else 1 - tail

    rows = []
    for value in values:
        ends = [mpmath.mpf(0), *(distribution(mpmath.mpf(m) - value) for m in marks), mpmath.mpf(1)]
        cells = [Fraction(int(x * 2**150)) / 2**150 for x in ends]
        rows.append([b - a for a, b in itertools.pairwise(cells)])
    return rows


@pytest.mark.long
@pytest.mark.parametrize(
    ("local", "kind", "scale"),
    [
        (ac.Laplace(1.0), "laplace", 1.0),
        (ac.Laplace(0.4), "laplace", 0.4),
        (ac.Gaussian(1.0), "gaussian", 1.0),
        (ac.Gaussian(0.5), "gaussian", 0.5),
    ],
)
def test_noise_is_above_cells_of_reports_for_values_within_the_interval(local, kind, scale):
    """Rounded reports are post-processing: no data set may exceed the upper end."""
    values = (0.0, 0.3, 1.0)
    kernel = noise_kernel(kind, scale, (-0.5, 0.1, 0.5, 0.9, 1.5), values)
    for n in (1, 2, 3):
        model = ac.ShuffleModel(local, dataset_size=n)
        for others in itertools.combinations_with_replacement(range(len(values)), n - 1):
            laws = [multiset_law([row, *(kernel[z] for z in others)]) for row in kernel]
            for one, two in itertools.permutations(laws, 2):
                for growth in (Fraction(1), Fraction(5, 4), Fraction(2)):
                    exact = hockey_stick(one, two, growth)
                    assert exact <= Fraction(bounds_at(model, growth)[1]) + Fraction(1, 2**140)


def simulated(local, kind, n, growth, runs=40_000):
    """δ of 0 against 1 when all others have 1, with the half-width of a 99.9 % interval."""
    rng = np.random.default_rng(n)
    draw = rng.laplace if kind == "laplace" else rng.normal
    reports = 1.0 + local * draw(size=(runs, n))
    if kind == "laplace":
        ratio = np.exp((np.abs(reports - 1.0) - np.abs(reports)) / local)
    else:
        ratio = np.exp((1.0 - 2.0 * reports) / (2.0 * local**2))
    mean = ratio.mean(axis=1)
    gains = np.maximum(mean - growth, 0.0), np.maximum(1.0 - growth * mean, 0.0)
    return max(
        ((g.mean(), 3.3 * g.std() / math.sqrt(runs)) for g in gains), key=lambda found: found[0]
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("local", "kind", "scale"),
    [(ac.Laplace(1.0), "laplace", 1.0), (ac.Gaussian(1.5), "gaussian", 1.5)],
)
def test_brackets_agree_with_simulation(local, kind, scale):
    for n, growth in ((20, 1.1), (100, 1.05)):
        found, half = simulated(scale, kind, n, growth)
        bounds = ac.ShuffleModel(local, dataset_size=n).delta_bounds(math.log(growth))
        assert found - half <= bounds.upper
        # The lower end is that of the simulated data sets.
        assert found - half <= bounds.lower * 1.001
        assert bounds.lower <= found + half


def test_blanket_is_what_the_paper_computes():
    """k = 3, e^ε₀ = 3, n = 6: the multiset of what is drawn from the blanket, summed exactly."""
    a, k, n, growth = Fraction(3), 3, 6, Fraction(5, 4)
    size = a + k - 1
    share = k / size
    total = Fraction(0)
    for clones in range(n):
        weight = math.comb(n - 1, clones) * share**clones * (1 - share) ** (n - 1 - clones)
        even = [(Fraction(1, k),) * k] * clones
        one, two = (
            multiset_law([tuple((a if y == x else Fraction(1)) / size for y in range(k)), *even])
            for x in (0, 1)
        )
        total += weight * hockey_stick(one, two, growth)
    model = ac.ShuffleModel(ac.RandomizedResponse(math.log(3), k=3), dataset_size=n)
    found = Fraction(bounds_at(model, growth)[1])
    assert total <= found <= total * (1 + Fraction(1, 1000))


@pytest.mark.long
@pytest.mark.parametrize("n", [1000, 10**6, 2**30])
def test_three_answers_have_narrow_brackets_below_the_clones(n):
    local = ac.RandomizedResponse(2.0, k=10)
    found = ac.ShuffleModel(local, dataset_size=n).epsilon_bounds(1e-6)
    assert 0.0 < found.lower <= found.upper <= found.lower * 1.002
    if n == 1000:
        assert found.upper < ShuffledResponses(2.0, dataset_size=n, k=10).epsilon(1e-6)


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("local", [ac.Laplace(1.0), ac.Gaussian(2.0), ac.RandomizedResponse(0.5)])
def test_bracket_of_two_ends_is_at_most_a_quarter_wide(local):
    found = ac.ShuffleModel(local, dataset_size=10_000).epsilon_bounds(1e-6)
    assert 0.75 * found.upper <= found.lower <= found.upper
    assert found.upper < 0.2 * local.epsilon(1e-6)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("local", [ac.RandomizedResponse(1.0, k=4), ac.Laplace(1.0)])
def test_compositions(local):
    model = ac.ShuffleModel(local, dataset_size=1000)
    one, four = model.epsilon_bounds(1e-5), (4 * model).epsilon_bounds(1e-5)
    assert one.upper < four.upper < 4 * one.upper
    assert one.lower < four.lower <= four.upper
    assert four.lower > 0.7 * four.upper
    assert (model + ac.PureDP(0.1, relation=REPLACE)).epsilon(1e-5) <= one.upper + 0.1


@pytest.mark.long
@pytest.mark.parametrize("order", [50.0, 5000.0])
def test_divergences_count_rare_losses(order):
    """What the table calls infinite is a finite loss, and rules a high order."""
    n, a = 3000, mpmath.exp(3)
    pair = ac.ShuffleModel(ac.RandomizedResponse(3.0, k=2), dataset_size=n).pairs()[0]
    with mpmath.workdps(40):
        # How many report the first of two answers, where all others have the second.
        others = [mpmath.binomial(n - 1, c) * a ** (n - 1 - c) for c in range(n)] + [0]
        one, two = (
            [(x * others[c - 1] * (c > 0) + y * others[c]) / (1 + a) ** n for c in range(n + 1)]
            for x, y in ((a, 1), (1, a))
        )
        alpha = mpmath.mpf(order)
        total = mpmath.fsum(p**alpha * q ** (1 - alpha) for p, q in zip(one, two, strict=True))
        truth = mpmath.log(total) / (alpha - 1)
    assert pair.infinite_mass == 0.0
    assert pair.rdp(order) >= truth
    assert pair.finite_rdp(order) >= truth


def test_one_user_is_not_hidden():
    for local in (ac.RandomizedResponse(1.0, k=3), ac.Laplace(2.0), ac.Gaussian(1.0)):
        for epsilon in (0.0, 0.3):
            alone = local.delta_bounds(epsilon)
            found = ac.ShuffleModel(local, dataset_size=1).delta_bounds(epsilon)
            assert found.lower <= alone.upper
            assert alone.lower <= found.upper <= alone.upper * (1.0 + 1e-9)


@pytest.mark.long
def test_sensitivity_and_relation_of_the_noise_are_the_length_of_the_interval():
    plain = ac.ShuffleModel(ac.Laplace(1.0), dataset_size=100).epsilon(1e-4)
    scaled = ac.ShuffleModel(ac.Laplace(3.0, sensitivity=3.0), dataset_size=100).epsilon(1e-4)
    twice = ac.ShuffleModel(ac.Laplace(2.0, relation=REPLACE), dataset_size=100).epsilon(1e-4)
    assert scaled == pytest.approx(plain, rel=1e-6)
    assert twice == pytest.approx(plain, rel=1e-6)


@pytest.mark.long(keep=3)
@pytest.mark.parametrize(
    "local",
    [
        ac.RandomizedResponse(0.0),
        ac.RandomizedResponse(1e-9),
        pytest.param(ac.RandomizedResponse(20.0, k=2), marks=pytest.mark.slow),
        ac.RandomizedResponse(1e-5, k=2**30),
        pytest.param(ac.Laplace(0.05), marks=pytest.mark.slow),
        ac.Laplace(1e5),
        ac.Laplace(math.inf),
        ac.Gaussian(math.inf),
        ac.Gaussian(1e4),
        pytest.param(ac.Gaussian(0.2), marks=pytest.mark.slow),
    ],
)
def test_extremes_stay_within_one_report_and_in_order(local):
    for n in (3, 2**30):
        model = ac.ShuffleModel(local, dataset_size=n)
        for delta in (1e-300, 1e-12, 0.9):
            found = model.epsilon_bounds(delta)
            assert 0.0 <= found.lower <= found.upper <= local.epsilon(delta) * (1.0 + 1e-6)


def test_refusals():
    with pytest.raises(ArgumentTypeError, match="randomizer"):
        ac.ShuffleModel(ac.PureDP(1.0), dataset_size=10)
    with pytest.raises(DomainError, match="dataset_size"):
        ac.ShuffleModel(ac.Laplace(1.0), dataset_size=0)
    with pytest.raises(DomainError, match="randomizer"):
        ac.ShuffleModel(ac.RandomizedResponse(21.0), dataset_size=10)
    with pytest.raises(UnsupportedError):
        ac.ShuffleModel(ac.Laplace(1.0), dataset_size=10).under(
            ac.NeighbouringRelation.ADD_OR_REMOVE
        )


def test_where_no_law_below_is_resolved_nothing_is_told(monkeypatch):
    """Masses that may be off by any factor are no lower end, nor a curve."""
    found = shuffle_model.tangent_law
    monkeypatch.setattr(
        shuffle_model, "tangent_law", lambda table: found(table)._replace(mass_error=math.inf)
    )
    table = shuffle_model.DataPair(ac.RandomizedResponse(0.3), 643).atoms()
    assert table.relative_error == 0.0
    assert not table.loss.any()
    assert table.p.sum() == table.q.sum() == 1.0


def test_far_tails_do_not_replace_a_nearer_bound():
    """Of several laws with more or less of the tail, each of them a bound, the least counts."""
    model = ac.ShuffleModel(ac.Gaussian(0.4), dataset_size=10**6)
    assert 1.06 <= model.epsilon(1e-6) <= 5.79
    bounds = model.pairs()[0].bounds
    found = [bounds.bound(epsilon, shuffle_model.FINE) for epsilon in (8.0, 10.0, 12.0, 14.0)]
    assert found == sorted(found, reverse=True)

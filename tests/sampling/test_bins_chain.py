"""Balls in bins as chains: the plans' parts, and brackets of δ against plain simulation."""

import math

import mpmath
import numpy as np
import pytest

from accountant.sampling import bins_chain
from accountant.sampling.bins_chain import farthest, lower_side, nearest, upper_sides
from support.oracle.bins_monte_carlo import means, simulated_delta

ROOT = (1.0, 0.5, 0.375, 0.3125, 0.2734375, 0.24609375)


def lags_of(column, noise, epochs):
    scale = epochs / noise**2 / sum(c * c for c in column)
    return tuple(
        scale * sum(a * b for a, b in zip(column, column[d:], strict=False))
        for d in range(len(column))
    )


@pytest.mark.parametrize("bands", [1, 2, 3, 4, 6])
def test_factors_reach_their_covariances(bands):
    lags = lags_of(ROOT[:bands], 2.0, 3)
    for gap in (1, 2, 3):
        found = bins_chain._factor(lags[::gap])
        for d, lag in enumerate(lags[::gap]):
            reached = math.fsum(found[i] * found[i + d] for i in range(found.size - d))
            assert lag <= reached < lag * (1.0 + 1e-6) + 1e-12


def test_grouped_slopes_are_projections():
    column = np.array(ROOT[:4])
    even, odd = bins_chain._grouped(column, 2)
    assert even * math.sqrt(2.0) == pytest.approx([1.5, 0.6875, 0.0])
    assert odd * math.sqrt(2.0) == pytest.approx([1.0, 0.875, 0.3125])
    # Never longer than what they are projections of.
    for slopes in (even, odd):
        assert slopes @ slopes <= column @ column


COLUMNS = ((1.0, 0.5), (1.0, 2.0), (1.0, 0.0, 0.7), (1.0, 0.1, 0.1, 0.9))


@pytest.fixture
def plans(monkeypatch):
    """Return plans in place of sides, of short runs."""
    monkeypatch.setattr(bins_chain, "_side", lambda plan, *_: plan)
    monkeypatch.setattr(bins_chain, "_LONGEST", {"below": 4, "calls": 5})


def covariances(slopes):
    """Return those of terms with these slopes, by the ages of the scores that go on by one."""
    rows, ages = slopes.shape
    loads = np.zeros((rows, rows + ages - 1))
    for row in range(rows):
        # The own score last.
        loads[row, row : row + ages] = slopes[row, ::-1]
    return loads @ loads.T


@pytest.mark.parametrize("column", COLUMNS[:3])
@pytest.mark.parametrize(
    ("bins", "steps"), [(8, 8), (13, 13), (13, 14), (13, 16), (12, 24), (12, 25), (12, 30)]
)
@pytest.mark.usefixtures("plans")
def test_chains_from_below_share_no_more_than_the_bins(column, bins, steps):
    """Every pair of terms, against the mean vectors of the bins, the last bin first."""
    epochs, rest = divmod(steps, bins)
    slopes = np.array(column) / np.linalg.norm(column) * math.sqrt(epochs) * (1 - 1e-12)
    complete = rest >= len(column) - 1
    plan = lower_side(slopes, bins, epochs, complete=complete, joint=100, delta=1e-4)
    (plain,) = plan.slopes
    rows = np.tile(plain, (plan.runs, plan.rows, 1))
    # The last bins are in the first run.
    rows[0, : plan.short_rows] *= plan.short
    chain = np.zeros((plan.runs * plan.rows,) * 2)
    for run in range(plan.runs):
        here = slice(run * plan.rows, (run + 1) * plan.rows)
        chain[here, here] = covariances(rows[run])
    kept = len(chain)
    assert bins - 2 * (len(column) - 1) - plan.runs < kept <= plan.bins == bins
    # Any of the bins may be 1; which are left out is not the plan's: those that share the least.
    late = bins - len(column) + 1 if epochs == 1 and not complete else bins
    shifts = means(column, bins, steps)[:late][::-1][:kept]
    assert (chain <= shifts @ shifts.T + 1e-15).all()


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize(("bins", "steps"), [(8, 8), (13, 13), (13, 14), (13, 26), (29, 29)])
@pytest.mark.parametrize("gap", [1, 2, 3])
@pytest.mark.usefixtures("plans")
def test_chains_from_above_share_no_less_than_the_bins(column, bins, steps, gap):
    """Every pair of terms, against the mean vectors of the bins, at every rotation."""
    once = steps <= bins
    lags = lags_of(column, 1.0, -(-steps // bins))
    plan = upper_sides(lags, bins, gap, once=once, joint=100, delta=1e-4)("calls")
    (slopes,) = plan.slopes
    one = covariances(np.tile(slopes, (plan.rows, 1)))
    chain = np.kron(np.eye(plan.runs), one)
    assert len(chain) == plan.bins
    apart = slopes.size - 1
    starts = np.arange(plan.runs) * (plan.rows + apart)
    places = gap * (starts[:, None] + np.arange(plan.rows)).ravel()
    assert places[-1] + gap <= bins
    shifts = means(column, bins, steps)
    for rotation in range(bins):
        kept = (places + rotation) % bins
        if once and plan.runs == 1:
            kept = np.sort(kept)
        assert (shifts[kept] @ shifts[kept].T <= chain + 1e-15).all()


@pytest.mark.parametrize("delta", [1e-10, 1e-4, 0.5])
def test_what_is_cut_off_is_counted(delta):
    """The tails beyond the cuts, with mpmath; and how far means from below are too small."""
    column, bins = np.array([0.4, 0.3, 0.2]), 20
    lags = tuple(float(column[d:] @ column[: 3 - d]) for d in range(3))
    sides = upper_sides(lags, bins, 1, once=True, joint=100, delta=delta)
    (slopes,) = (bins_chain._factor(lags),)
    plan = bins_chain._Plan((slopes,), 1.0, 0, bins, 1, bins)
    right = mpmath.mpf(bins_chain._end(plan, "calls", delta))
    assert sides("calls").escaped >= 3 * mpmath.ncdf(-right)
    assert sides("calls").escaped < 0.005 * delta
    left = mpmath.mpf(bins_chain._end(plan, "puts", delta))
    assert sides("puts").escaped >= (bins + 2) * mpmath.ncdf(left)
    assert sides("puts").escaped < 0.005 * delta
    low = lower_side(column, bins, 1, complete=True, joint=100, delta=delta)
    # The mean of what is rounded downwards is 1, less what the values are moved by.
    assert 1e-9 < 1.0 - low.mean < low.shrunk < 1e-8
    assert 0.0 < low.added(0.1)[0] < low._replace(shrunk=0.0).added(0.1)[0]


@pytest.mark.long
@pytest.mark.parametrize(
    ("bins", "steps", "bands", "noise"), [(12, 12, 2, 1.4), (16, 32, 4, 3.0), (12, 26, 3, 2.0)]
)
def test_both_ends_by_simulation(bins, steps, bands, noise):
    """One epoch, two whole ones, and two with the beginning of a third."""
    column = ROOT[:bands]
    norm = math.sqrt(sum(c * c for c in column))
    epochs, rest = divmod(steps, bins)
    slopes = np.array(column) / norm / noise * math.sqrt(epochs)
    low = lower_side(slopes, bins, epochs, complete=rest >= bands - 1, joint=600, delta=1e-4)
    lags = lags_of(column, noise, -(-steps // bins))
    sides = [
        upper_sides(lags, bins, gap, once=steps <= bins, joint=600, delta=1e-4) for gap in (1, 2)
    ]
    for epsilon in (0.3, 0.8):
        truth, error = simulated_delta(column, bins, steps, noise, epsilon, 40_000, seed=3)
        below = low.removed(epsilon)[0]
        above = [side("calls").removed(epsilon)[1] for side in sides]
        assert below <= truth + 4.0 * error
        assert truth - 4.0 * error <= min(above)
        if bands == 2:
            assert 0.75 * truth < below
            assert min(above) < 1.25 * truth


def test_additions_by_simulation():
    """E(1 - γS)₊ over plain draws of the scores, for one epoch of ten bins of two bands."""
    rng = np.random.default_rng(11)
    noise, bins = 1.5, 10
    slopes = np.array(ROOT[:2]) / math.sqrt(1.25) / noise
    scores = rng.standard_normal((400_000, bins + 1))
    ratios = np.exp(
        slopes[0] * scores[:, :bins] + slopes[1] * scores[:, 1:] - 0.5 * float(slopes @ slopes)
    )
    # The last bin's column ends with the run.
    last = np.exp(slopes[0] * scores[:, bins - 1] - 0.5 * slopes[0] ** 2)
    ratios[:, -1] = last
    means = ratios.mean(axis=1)
    low = lower_side(slopes * (1 - 1e-12), bins, 1, complete=False, joint=900, delta=1e-4)
    side = upper_sides(lags_of(ROOT[:2], noise, 1), bins, 1, once=True, joint=900, delta=1e-4)
    high = side("puts")
    for epsilon in (0.1, 0.4):
        excess = np.maximum(1.0 - math.exp(epsilon) * means, 0.0)
        found, error = excess.mean(), excess.std() / math.sqrt(excess.size)
        below, above = low.added(epsilon)[0], high.added(epsilon)[1]
        assert 0.5 * found < below <= found + 4.0 * error
        assert found - 4.0 * error <= above < 1.5 * found


def test_many_bins_are_cut_into_runs():
    """Of 600 bins the plans keep nearly all, and the ends stay near each other."""
    lags = lags_of(ROOT[:2], 1.0, 1)
    slopes = np.array(ROOT[:2]) / math.sqrt(1.25)
    low = lower_side(slopes, 600, 1, complete=False, joint=300, delta=1e-5)
    calls = upper_sides(lags, 600, 1, once=True, joint=900, delta=1e-5)("calls")
    below, above = low.removed(0.2)[0], calls.removed(0.2)[1]
    assert 0.0 < below < above < 1.6 * below


def test_whole_epochs_are_cut_into_runs_too():
    """The mean of two epochs: runs, the first with the cut columns, against one run of all bins."""
    slopes = np.array(ROOT[:2]) / math.sqrt(1.25)
    sides = []
    for longest in (128, 10**9):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(bins_chain, "_LONGEST", {"below": longest})
            sides.append(lower_side(slopes, 520, 2, complete=False, joint=100, delta=1e-4))
    runs, one = sides
    assert runs.mean == pytest.approx(one.mean, rel=1e-12)
    # A little is lost between runs.
    for kind in ("removed", "added"):
        few, all_of_it = (getattr(side, kind)(0.1)[0] for side in (runs, one))
        assert 0.95 * all_of_it < few < all_of_it


def test_searches_return_what_was_checked():
    assert farthest(lambda e: e < 0.7, 0.1, 2.0) == pytest.approx(0.7, abs=1e-5)
    assert farthest(lambda e: e < 0.7, 0.1, 2.0) < 0.7
    assert farthest(lambda _: False, 0.1, 2.0) == 0.1
    assert farthest(lambda e: e < 0.11, 0.1, 2.0) == pytest.approx(0.11, abs=1e-5)
    assert farthest(lambda _: True, 0.1, 2.0) == 2.0
    assert nearest(lambda e: e >= 0.7, 0.1, 2.0) == pytest.approx(0.7, abs=1e-5)
    assert nearest(lambda e: e >= 0.7, 0.1, 2.0) >= 0.7
    assert nearest(lambda _: False, 0.1, 2.0) == 2.0
    assert nearest(lambda _: True, 0.1, 2.0) == 0.1
    # What is not monotone, as bounds far out are not.
    assert nearest(lambda e: 0.7 <= e <= 0.9, 0.1, 2.0) == pytest.approx(0.7, abs=1e-5)

"""Shards: every record draws its own, so that one record more leaves all others where they are."""

import numpy as np
from scipy import stats

from accountant.learn.pate import assign_shards


def test_every_record_draws_its_shard_by_itself():
    """Shards by position have fixed sizes, and a record in front moves every other one."""
    drawn = np.array([assign_shards(60, 4) for _ in range(500)])
    assert stats.chisquare(np.bincount(drawn.ravel(), minlength=4)).pvalue > 1e-6
    sizes = (drawn == 0).sum(axis=1)
    low, high = (stats.chi2.isf(p, 499) / 499 * 60 * 0.25 * 0.75 for p in (1 - 1e-6, 1e-6))
    assert low < np.var(sizes, ddof=1) < high
    # Two records share a shard as often as two coins of four sides agree.
    together = (drawn[:, 1:] == drawn[:, :-1]).mean()
    assert abs(together - 0.25) < 5.0 * np.sqrt(0.25 * 0.75 / (500 * 59))
    for one, more in ((0, 1), (7, 8), (60, 61), (999, 1000)):
        first = assign_shards(more, 5, rng=1)
        assert np.array_equal(assign_shards(one, 5, rng=1), first[:one])

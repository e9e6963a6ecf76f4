"""What a replay must see of samples, of noise that is added in place, and of failed blocks."""

import numpy as np
import pytest

import accountant as ac
from accountant.audit import audit_replay
from accountant.errors import DomainError

DATA = np.arange(1.0, 41.0) / 40.0
Q = 0.25


def blocks(data, releases, summed):
    """Four blocks on Poisson samples, each with one noisy sum."""
    found = []
    for _ in range(4):
        with releases.poisson(len(data), Q) as rows:
            found.append(releases.gaussian(summed(data, rows), sensitivity=1.0, scale=2.0))
    return found


def test_a_sampled_block_that_uses_all_records_is_found():
    """It costs what unsampled noise costs, although its sum moves by no more than stated."""
    honest = audit_replay(lambda d, r: blocks(d, r, lambda x, rows: x[rows].sum()), DATA)
    assert not honest.flagged, str(honest)
    report = audit_replay(lambda d, r: blocks(d, r, lambda x, rows: x.sum()), DATA)
    assert {finding.kind for finding in report.findings} == {"sample"}
    assert "not sampled" in str(report)
    changed = audit_replay(
        lambda d, r: blocks(d, r, lambda x, rows: x.sum()), DATA, replace={3: 0.9, 7: 0.3}
    )
    assert {finding.kind for finding in changed.findings} == {"sample"}


def test_a_block_within_a_block_keeps_what_the_outer_one_left_out():
    def run(data, releases):
        with releases.poisson(len(data), 0.01):
            with releases.poisson(len(data), 1.0):
                pass
            return releases.gaussian(data.sum(), sensitivity=1.0, scale=2.0)

    assert audit_replay(run, DATA, remove=[0]).flagged


def test_releases_before_a_failed_block_still_count():
    def run(data, releases):
        releases.gaussian(data.sum(), sensitivity=1.0, scale=0.5)
        try:
            with releases.poisson(len(data), 0.5) as rows:
                releases.gaussian(data[rows].sum(), sensitivity=1.0, scale=2.0)
                raise ValueError
        except ValueError:
            pass

    spent = ac.Gaussian(0.5) + ac.PoissonSampled(ac.Gaussian(2.0), 0.5)
    report = audit_replay(run, DATA, remove=[0], claimed=0.1, delta=1e-5)
    assert report.mechanism == spent
    assert {finding.kind for finding in report.findings} == {"claim"}


def test_noise_that_is_added_in_place_does_not_change_what_is_compared():
    class Noise:
        @staticmethod
        def add(value):
            value -= 0.9  # noise of one draw, which hides that the sum moves too far
            return value.copy()

    def run(data, releases):
        releases.patch(Noise, "add", value="value", sensitivity=1.0)
        return Noise.add(np.atleast_1d(2.0 * data.sum()))

    report = audit_replay(run, DATA, remove=[39])
    assert [finding.kind for finding in report.findings] == ["sensitivity"]
    assert report.largest_ratio == pytest.approx(2.0)


def test_a_claim_under_another_relation_is_refused():
    def run(data, releases):
        return releases.gaussian(data.sum(), sensitivity=1.0, scale=1.0)

    half = ac.Gaussian(1.0, sensitivity=0.5, relation=ac.NeighbouringRelation.REPLACE_ONE)
    with pytest.raises(DomainError, match="relation"):
        audit_replay(run, DATA, claimed=half, delta=1e-5)

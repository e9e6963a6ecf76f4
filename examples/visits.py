"""A million visits: who came from where, for what, and what they spent, by keys nobody listed.

Zips and categories are counted by keys that are not known in advance, and the mean of what a user
spends is released beside them. The whole plan is fixed before the first release, so it is charged
as one; what the same plan costs where later parts depend on earlier outputs, and with δ added up,
is printed for comparison.

    python examples/visits.py            # needs polars and narwhals
"""

import math
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

import accountant as ac
from accountant.noise import SecureGenerator
from accountant.noise.integer_law import discrete_gaussian
from accountant.statistics import FixedPlan, bounded_counts, release_histogram

EPSILON, DELTA = 1.0, 1e-9
ROWS, USERS, ZIPS, CATEGORIES = 1_000_000, 100_000, 40_000, 60
PER_USER = {"zip": 5, "category": 3}
LARGEST_SPEND = 100


def write(path):
    """Write made-up visits: few users come often, most zips are rare."""
    rng = np.random.default_rng(40)
    user = (USERS * rng.random(ROWS) ** 3).astype(np.int64)
    # A user comes from one of eight zips.
    place = (user * 8 + rng.integers(0, 8, ROWS)) * 2_654_435_761 % 2**31 / 2**31
    zips = np.minimum(-946.0 * np.log1p(-place), ZIPS - 1).astype(np.int64)
    category = (CATEGORIES * rng.random(ROWS) ** 2).astype(np.int64)
    spend = np.minimum(rng.exponential(40.0, ROWS), 1000.0).round().astype(np.int64)
    pl.DataFrame({"user": user, "zip": zips, "category": category, "spend": spend}).write_parquet(
        path
    )


def plan_of(sigma, threshold, noise=ac.Gaussian):
    """Return two thresholded counts and the two values of a mean, at one noise multiplier."""
    zips, categories = (
        ac.SparseHistogram(noise(sigma), threshold=threshold, max_partitions=keys)
        for keys in PER_USER.values()
    )
    half = LARGEST_SPEND // 2
    return zips, categories, noise(sigma), noise(sigma * half, sensitivity=half)


def calibrated():
    """Return the least noise, and the threshold beside it, of the plan fixed in advance."""
    keys = sum(PER_USER.values())

    # All δ may go to the threshold, and all of it to the noise.
    def tail(sigma):
        return ac.smallest_threshold(
            ac.Gaussian(sigma), epsilon=EPSILON, delta=DELTA, max_partitions=keys
        )

    shown = (tail(60.0) - 1.0) / 60.0
    sigma = ac.calibrate(
        lambda s: sum(plan_of(s, 1.0 + shown * s)), epsilon=EPSILON, delta=DELTA, start=20.0
    )
    return sigma, 1.0 + shown * sigma


def release(rows, sigma, threshold, ledger):
    """Charge the plan once and release it, all noise in integers."""
    zips, categories, count, total = plan_of(
        sigma, math.ceil(threshold), lambda s, **named: ac.DiscreteGaussian(s, **named)
    )
    paid = FixedPlan(zips + categories + count + total, ledger, label="visits")
    found = {}
    for name, mechanism in (("zip", zips), ("category", categories)):
        table = bounded_counts(rows, unit="user", key=name, max_partitions=PER_USER[name])
        found[name] = (
            len(table),
            release_histogram(table[name], table["count"], mechanism, ledger=paid),
        )
    # One value a user, in whole units around the middle.
    spent = rows.group_by("user").agg(pl.col("spend").mean()).collect()["spend"]
    half = LARGEST_SPEND // 2
    values = spent.clip(0, LARGEST_SPEND).round().cast(pl.Int64) - half
    paid.compose(count)
    paid.compose(total)
    generator = SecureGenerator()
    users = len(values) + int(discrete_gaussian(generator, 1, count.noise_multiplier)[0])
    centred = int(values.sum()) + int(discrete_gaussian(generator, 1, total.noise_multiplier)[0])
    return found, half + centred / max(users, 1)


def changed_by(rows, user, key):
    """Return how many counts change without a user, and the largest change."""
    with_user, without = (
        dict(bounded_counts(some, unit="user", key=key, max_partitions=PER_USER[key]).iter_rows())
        for some in (rows, rows.filter(pl.col("user") != user))
    )
    changes = [
        abs(with_user.get(k, 0) - without.get(k, 0)) for k in with_user.keys() | without.keys()
    ]
    return sum(change > 0 for change in changes), max(changes)


def main():
    """Make the data, plan, release, and check what one user changes."""
    sigma, threshold = calibrated()
    plan = sum(plan_of(sigma, threshold))
    print(f"plan: noise multiplier {sigma:.2f}, threshold {threshold:.2f}")
    print(f"  fixed in advance:       ε = {plan.epsilon(DELTA):.3f}")
    print(f"  depending on outputs:   ε = {plan.adaptively().epsilon(DELTA):.3f}")
    keys = sum(PER_USER.values())
    lost = 1.0 - (1.0 - plan_of(sigma, threshold)[0].pairs()[0].infinite_mass) ** (keys / 5)
    added = (keys + 2) * ac.Gaussian(sigma) + ac.ApproximateDP(0.0, delta=lost)
    print(f"  with δ of keys added:   δ(1) = {added.delta(EPSILON):.2e}, and not {DELTA:g}")

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "visits.parquet"
        write(path)
        rows = pl.scan_parquet(path)
        ledger = ac.Accountant(budget=ac.Budget(EPSILON, DELTA, filter="non-adaptive"))
        # Rounded up: integer noise of the same size costs a little more.
        found, mean = release(rows, sigma * 1.001, threshold * 1.001 + 1.0, ledger)
        for name, (present, kept) in found.items():
            print(f"{name}: {present:,} present, {len(kept.keys):,} released")
        print(f"mean spend of a user: {mean:.2f}")
        print(f"ledger: ε = {ledger.epsilon(DELTA):.4f} at δ = {DELTA:g}")
        busiest = (
            rows.group_by("user").len().sort("len", descending=True).first().collect()["user"][0]
        )
        for name in PER_USER:
            keys, most = changed_by(rows, busiest, name)
            print(f"without the busiest user {keys} of the {name} counts change, by {most} at most")


if __name__ == "__main__":
    main()

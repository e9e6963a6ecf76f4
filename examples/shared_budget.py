"""Two pipelines and a training job spend the budgets of one store at the same time.

Visits of six days are six blocks, each with ε = 1 at δ = 1e-6. Every process works on its own and
meets the others only in the database:

- the dashboard releases the number of visits of each day, as often as the day's budget allows;
- the weekly report releases a histogram over all days, charged to every one of them;
- the training job plans its steps on the last three days before anything else is charged to them,
  trains on these records, and commits as many steps as it made.

    python examples/shared_budget.py                              # a file of SQLite
    python examples/shared_budget.py postgresql://user@host/base  # the same in PostgreSQL

A key makes each charge safe to repeat: run it again on the same store, and nothing is charged
twice. Nothing is released twice either: what was charged before may have been released before, and
drawing its noise anew would be a second release that nobody paid for.
"""

import subprocess
import sys
import tempfile

import numpy as np

import accountant as ac
from accountant import store
from accountant.learn import Batches, LogisticRegression, Noise, Watch, train_dp_sgd
from accountant.ledger import Budget
from accountant.noise import SecureGenerator

DAYS = [f"clinic/visits/2026-01-0{day}" for day in range(1, 7)]
TRAINED = DAYS[3:]
BUDGET = Budget(1.0, 1e-6)
STEP = ac.PoissonSampled(ac.Gaussian(2.0), 0.02)
STEPS = 120
COUNT, HISTOGRAM = ac.DiscreteGaussian(20.0), ac.DiscreteGaussian(25.0)


def records(day):
    """Return the visits of one day: two features and an outcome; a made-up table."""
    rng = np.random.default_rng(DAYS.index(day))
    X = rng.normal(size=(400 + 10 * DAYS.index(day), 2))
    return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0), (X[:, 0] > 0).astype(int)


def dashboard(shared):
    """Release the noisy number of visits of each day; each count changes by one."""
    noise = SecureGenerator()
    for turn in range(20):
        for day in DAYS:
            try:
                key = f"dashboard-{turn}-{day}"
                receipt = shared.charge(day, COUNT, label="dashboard", key=key)
            except store.BlockExceeded as refused:
                print(f"dashboard: {day} has {refused.remaining.fraction:.1%} left", flush=True)
                return
            if receipt.repeated:
                continue
            # Only now, when the charge is on the disk.
            visits = len(records(day)[0]) + noise.discrete_gaussian(1, 20)[0]
            if turn == 0:
                print(f"dashboard: {day} had about {visits} visits", flush=True)


def report(shared):
    """Release a noisy histogram of the outcomes; a record changes one of its cells by one."""
    noise = SecureGenerator()
    for week in range(3):
        try:
            receipt = shared.charge(DAYS, HISTOGRAM, label="report", key=f"report-{week}")
        except store.BlockExceeded as refused:
            print(f"report: refused by {refused.block}", flush=True)
            return
        if receipt.repeated:
            print(f"report: week {week} was released before", flush=True)
            continue
        cells = sum(np.bincount(records(day)[1], minlength=2) for day in DAYS)
        noisy = cells + noise.discrete_gaussian(2, 25)
        print(f"report: week {week}, outcomes {noisy.tolist()}", flush=True)


def training(shared):
    """Reserve the planned steps, train, and give back what was not needed."""
    held = shared.reserve(TRAINED, STEP, STEPS, "model", lease=600.0, key="model-reserved")
    if held.repeated:
        print("training: the model was trained before", flush=True)
        return
    X, y = (np.concatenate(parts) for parts in zip(*map(records, TRAINED), strict=True))
    result = train_dp_sgd(
        LogisticRegression(2),
        X,
        y,
        batches=Batches(
            STEP.sampling_probability * len(X),
            sampling_probability=STEP.sampling_probability,
            steps=STEPS - 20,
        ),
        noise=Noise(2.0),
        clipping_norm=1.0,
        delta=BUDGET.delta,
        watch=Watch(progress=False),
    )
    ((mechanism, made),) = result.ledger.counts
    assert mechanism == STEP
    shared.commit(held.key, made)
    print(f"training: {made} of {STEPS} steps made, the rest given back", flush=True)


def main():
    """Set the store up, run the three at once, and show what is left."""
    if len(sys.argv) > 2:
        with store.open(sys.argv[1]) as shared:
            {"dashboard": dashboard, "report": report, "training": training}[sys.argv[2]](shared)
        return
    with tempfile.TemporaryDirectory() as directory:
        url = sys.argv[1] if len(sys.argv) > 1 else f"sqlite:///{directory}/budget.db"
        with store.open(url, create=True) as shared:
            shared.add_blocks(DAYS, BUDGET)
            # Once it is there, the plan comes first; the others get what it leaves.
            shared.plan(TRAINED, STEP, STEPS, "model", key="model-planned")
            jobs = [
                subprocess.Popen([sys.executable, __file__, url, name])
                for name in ("dashboard", "report", "training")
            ]
            failed = [job.wait() for job in jobs]
            assert not any(failed), failed
            for block in shared.blocks():
                spent = shared.ledger(block.address).epsilon(BUDGET.delta)
                left = shared.remaining(block.address).fraction
                print(
                    f"{block.address}: {block.releases} releases, ε = {spent:.3f}, {left:.1%} left"
                )
            found = shared.verify()
            print(f"verified, head {found.head}" if found.passed else found.faults)


if __name__ == "__main__":
    main()

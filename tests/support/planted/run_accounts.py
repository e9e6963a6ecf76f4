"""Broken accounts of a DP-SGD run, and what it charges to its ledger."""

import math

from accountant.learn.account import step_mechanism
from support.planted import checks
from support.planted.registry import collected

BUGS, bug = collected()


@bug("ledger.accountant:Accountant.compose", checks.one_epoch_audit)
def epochs_not_steps(original, self, mechanism, count=1, label=None):
    """epochs are accounted, not steps"""
    q = getattr(mechanism, "sampling_probability", 1.0)
    before, self.steps_seen = getattr(self, "steps_seen", 0), getattr(self, "steps_seen", 0) + 1
    if math.ceil(self.steps_seen * q) > math.ceil(before * q):
        original(self, mechanism, count, label)


@bug("learn.plan:Plan.mechanism", checks.poisson_audit)
def amplified_twice(original, self):
    """the sampling probability is squared in the account"""
    return step_mechanism(self.noise, self.noise_multiplier, self.sampling_probability**2)


@bug("ledger.accountant:Accountant.compose", checks.full_batch_audit)
def one_step_for_all(original, self, mechanism, count=1, label=None):
    """one step is accounted for all"""
    if not len(self):
        original(self, mechanism, 1, label)


@bug("ledger.evaluation:epsilon", checks.the_account_of_a_run)
def delta_of_every_step(original, counts, delta):
    """δ is spent in every step and stated once"""
    return original(counts, min(0.5, delta * 1000))


@bug("learn.run:count_charged", checks.resumed_ledgers)
def stale_ledger(original, ledger, mechanism, label):
    """a resumed run's ledger starts at the checkpoint"""
    return 10**6


@bug("ledger.accountant:Accountant._append", checks.budgets_are_kept)
def budget_ignored(original, self, new, record=True):
    """steps beyond the budget are made"""
    return self._restore(new) if record else None


@bug("learn.run:Run.take_step", checks.charged_before_the_release)
def charged_afterwards(original, self):
    """a step is charged after its release"""
    charge, owed = self._charge, []
    self._charge = owed.append
    try:
        done = original(self)
    finally:
        del self._charge
    for steps in owed:
        charge(steps)
    return done


@bug("learn.run:Run.take_step", checks.failures_leave_the_charge)
def refunded_on_failure(original, self):
    """a step that fails is taken off the ledger"""
    try:
        return original(self)
    except Exception:
        self.ledger._history.__init__()
        raise


@bug("learn.run:Run.result", checks.a_second_run_states_both)
def only_the_run(original, self):
    """a second run on a ledger states its own ε as that of everything"""
    found = original(self)
    object.__setattr__(found, "epsilon", found.run_epsilon)
    return found

"""Broken accounts of a DP-SGD run, and what it charges to its ledger."""

import math

from accountant.learn import account as run_account
from accountant.learn import run
from accountant.learn.plan import Plan
from accountant.ledger import Accountant, evaluation
from support.planted import checks
from support.planted.registry import Bug, wrap


def charged_once_an_epoch(original):
    def compose(self, mechanism, count=1, label=None):
        q = getattr(mechanism, "sampling_probability", 1.0)
        before, self.steps_seen = getattr(self, "steps_seen", 0), getattr(self, "steps_seen", 0) + 1
        if math.ceil(self.steps_seen * q) > math.ceil(before * q):
            original(self, mechanism, count, label)

    return compose


def amplified_twice(patch):
    def mechanism(self):
        q = self.sampling_probability
        return run_account.step_mechanism(self.noise, self.noise_multiplier, q * q)

    patch.setattr(Plan, "mechanism", property(mechanism))


def one_step_for_all(original):
    def compose(self, mechanism, count=1, label=None):
        if not len(self):
            original(self, mechanism, 1, label)

    return compose


def delta_of_every_step(original):
    # "Each step has δ": the total, δ·steps, is never stated.
    return lambda counts, delta: original(counts, min(0.5, delta * 1000))


def forgotten(original):
    return lambda ledger, mechanism, label: 10**6


def charged_afterwards(original):
    def take_step(self):
        charge, owed = self._charge, []
        self._charge = owed.append
        try:
            done = original(self)
        finally:
            del self._charge
        for steps in owed:
            charge(steps)
        return done

    return take_step


def refunded_on_failure(original):
    def take_step(self):
        try:
            return original(self)
        except Exception:
            self.ledger._history.__init__()
            raise

    return take_step


def only_the_run(original):
    def result(self):
        found = original(self)
        object.__setattr__(found, "epsilon", found.run_epsilon)
        return found

    return result


def budget_ignored(original):
    return lambda self, new, record=True: self._restore(new) if record else None


BUGS = (
    Bug(
        "epochs-not-steps",
        "epochs are accounted, not steps",
        wrap(Accountant, "compose", charged_once_an_epoch),
        checks.one_epoch_audit,
        True,
    ),
    Bug(
        "amplified-twice",
        "the sampling probability is squared in the account",
        amplified_twice,
        checks.poisson_audit,
        True,
    ),
    Bug(
        "one-step-for-all",
        "one step is accounted for all",
        wrap(Accountant, "compose", one_step_for_all),
        checks.full_batch_audit,
        True,
    ),
    Bug(
        "delta-of-every-step",
        "δ is spent in every step and stated once",
        wrap(evaluation, "epsilon", delta_of_every_step),
        checks.the_account_of_a_run,
    ),
    Bug(
        "stale-ledger",
        "a resumed run's ledger starts at the checkpoint",
        wrap(run, "count_charged", forgotten),
        checks.resumed_ledgers,
    ),
    Bug(
        "budget-ignored",
        "steps beyond the budget are made",
        wrap(Accountant, "_append", budget_ignored),
        checks.budgets_are_kept,
    ),
    Bug(
        "charged-afterwards",
        "a step is charged after its release",
        wrap(run.Run, "take_step", charged_afterwards),
        checks.charged_before_the_release,
    ),
    Bug(
        "refunded-on-failure",
        "a step that fails is taken off the ledger",
        wrap(run.Run, "take_step", refunded_on_failure),
        checks.failures_leave_the_charge,
    ),
    Bug(
        "only-the-run",
        "a second run on a ledger states its own ε as that of everything",
        wrap(run.Run, "result", only_the_run),
        checks.a_second_run_states_both,
    ),
)

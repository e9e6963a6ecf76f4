"""Broken accounting: compositions, directions, relations, round-off, ledgers."""

import math

import mpmath

from accountant.analyses.pld import Composed
from accountant.ledger import Accountant
from accountant.mechanisms.gaussian import Gaussian
from accountant.mechanisms.stated_guarantees import ApproximateDP, PureDP
from accountant.pairs.atoms import ResponsePair
from accountant.relations import NeighbouringRelation
from accountant.sampling.poisson import PoissonSampled
from support.planted import checks
from support.planted.checks import DELTA, gaussian_delta, train
from support.planted.registry import collected

REPLACE_ONE = NeighbouringRelation.REPLACE_ONE


def composed_failures():
    """composed (ε, δ) parts keep the probability that any fails"""
    spent = (10 * ApproximateDP(0.1, delta=1e-3)).delta(1.2)
    least = 1 - (1 - 1e-3) ** 10
    return None if spent >= least * (1 - 1e-9) else f"δ = {spent}, at least {least} is lost"


def both_directions():
    """subsampled profiles against the exact ones of both directions"""
    for q in (0.1, 0.5):
        for epsilon in (0.0, 0.3, 1.0, 2.0):
            ours = PoissonSampled(Gaussian(1.0), q).delta(epsilon)
            exact = checks.subsampled_delta(q, 1.0, epsilon)
            if not ours >= exact:
                return f"δ({epsilon}) = {ours} at q = {q}, exactly {float(exact)}"
    return None


def binomial_profiles():
    """composed responses against exact sums, down to δ of 1e-60"""
    for epsilon0, n, targets in ((0.1, 300, (0.3, 0.5, 0.8)), (0.02, 5000, (0.2, 0.3))):
        response = n * PureDP(epsilon0)
        # Read far in the tail of a sum of transforms, where round-off is all of the width.
        grid = Composed([(ResponsePair(epsilon0), n)])
        law = grid._upper(grid._about_delta(0.1 * epsilon0 * n))[1]
        with mpmath.workdps(80):
            e = mpmath.mpf(epsilon0)
            p = mpmath.exp(e) / (1 + mpmath.exp(e))
            for target in targets:
                epsilon = target * epsilon0 * n
                exact = mpmath.fsum(
                    mpmath.binomial(n, j)
                    * p**j
                    * (1 - p) ** (n - j)
                    * max(0, 1 - mpmath.exp(epsilon - (2 * j - n) * e))
                    for j in range(n + 1)
                )
                ours = response.delta_bounds(epsilon)
                read = law.delta_lower(epsilon), law.delta_upper(epsilon)
                for low, high in ((ours.lower, ours.upper), read):
                    if not low <= exact <= high:
                        return f"δ({epsilon}) is {mpmath.nstr(exact, 20)}, not in [{low}, {high}]"
    return None


def relations_double():
    """a bound carried to replace-one is that of two steps"""
    pure = PureDP(1.0).under(REPLACE_ONE).epsilon(0.0)
    if not pure >= 2.0:
        return f"pure ε {pure}"
    ours = Gaussian(1.0).under(REPLACE_ONE).delta(1.0)
    return None if ours >= gaussian_delta(2.0, 1.0) else f"Gaussian δ {ours}"


def groups_grow():
    """δ of a group grows with ε"""
    three = ApproximateDP(1.0, delta=1e-6).group(3)
    least = 1e-6 * (1 + math.e + math.e**2)
    spent = three.delta(3.0)
    return None if spent >= least * (1 - 1e-9) else f"δ = {spent}, at least {least}"


def discrete_runs():
    """a run with discrete Gaussian noise costs at least the continuous one's exact ε"""
    result = train(noise="discrete_gaussian", steps=4)
    least = checks.gaussian_epsilon_below(2.0, DELTA) * 0.99  # on a grid this fine
    return None if result.epsilon >= least else f"{result.epsilon}, not {least}"


def targets_are_met():
    """a run calibrated to ε spends no more, by an oracle"""
    for steps in (1, 4):
        result = train(noise_multiplier=None, target_epsilon=1.0, steps=steps)
        mu = math.sqrt(steps) / result.plan.noise_multiplier
        if not gaussian_delta(mu, 1.0) <= DELTA:
            return f"noise multiplier {result.plan.noise_multiplier} for {steps} steps"
    return None


def merged_ledgers():
    """a merged ledger holds the releases of both"""
    one, two = Accountant(), Accountant()
    for ledger in (one, two):
        ledger.compose(Gaussian(4.0), 8)
    one.merge(two)
    spent = one.epsilon(DELTA)
    least = checks.gaussian_epsilon_below(1.0, DELTA)
    return None if spent >= least else f"ε = {spent}, at least {least}"


def restored_ledgers():
    """a restored ledger holds what was saved"""
    ledger = Accountant()
    ledger.compose(Gaussian(4.0), 16)
    spent = Accountant.from_json(ledger.to_json()).epsilon(DELTA)
    least = checks.gaussian_epsilon_below(1.0, DELTA)
    return None if spent >= least else f"ε = {spent}, at least {least}"


BUGS, bug = collected()


@bug("mechanisms.stated_guarantees:ApproximateDP.pairs", composed_failures)
def delta_dropped(original, self):
    """δ is dropped in composition"""
    return (ResponsePair(self.epsilon0),)


@bug("sampling.poisson:PoissonSampled.pairs", both_directions)
def addition_only(original, self):
    """only the direction of addition is accounted"""
    return original(self)[1:]


@bug("analyses.pld.composed_law:total_sums", binomial_profiles)
def fft_without_its_error(original, *given):
    """the FFT's round-off is not bounded"""
    value, _, *rest = original(*given)
    return value, 0.0, *rest


@bug("mechanisms.fields:group_factor", relations_double)
def replaced_once(original, mechanism, relation):
    """replacing a record is one step, not two"""
    return 1


@bug("mechanisms.stated_guarantees:ApproximateDP._steps", groups_grow)
def group_delta(original, self, size, relation):
    """a group's δ is that of one record"""
    return ApproximateDP(size * self.epsilon0, delta=self.delta0, relation=relation)


@bug("analyses.renyi_conversion:epsilon_upper", discrete_runs)
def renyi_without_delta(original, parts, delta, *curve):
    """the conversion from Rényi divergence forgets δ"""
    return original(parts, 0.5, *curve)


@bug("learn.account:calibrate_sigma", targets_are_met)
def calibrated_below(original, *given):
    """calibration returns a noise a millionth too small"""
    return original(*given) * (1.0 - 1e-6)


@bug("ledger.accountant:Accountant.merge", merged_ledgers)
def merge_without_counts(original, self, other):
    """merging ledgers keeps one entry of each kind"""
    fresh = Accountant()
    known = {entry.mechanism for entry in self.history}
    for entry in other.history:
        if entry.mechanism not in known:
            fresh.compose(entry.mechanism, entry.count)
    return original(self, fresh)


@bug("ledger.accountant:Accountant.to_json", restored_ledgers)
def saved_without_counts(original, self):
    """saving a ledger forgets how often"""
    thin = Accountant()
    for entry in self.history:
        thin.compose(entry.mechanism)
    return original(thin)

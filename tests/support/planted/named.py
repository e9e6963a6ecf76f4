"""Bugs that the test file named after the faulty thing must notice: which test, and the patch.

``plugin`` plants one of them in a pytest process of its own, so that any test can be asked.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from accountant._core import training
from accountant.adapters import sklearn as sklearn_estimators
from accountant.analyses.pld import loss_grid
from accountant.audit import confidence, one_run
from accountant.composition import Composition
from accountant.learn import blocks as aggregate
from accountant.learn import local as bounded
from accountant.learn import local as responses
from accountant.learn import plan, release, validation
from accountant.learn.clipping import Rule
from accountant.learn.convex.losses import HuberHinge
from accountant.learn.pate import aggregation, ensemble
from accountant.learn.result import Averaging
from accountant.ledger import evaluation, exact_sums, odometer
from accountant.ledger.budget import Budget
from accountant.mechanisms import selection
from accountant.mechanisms.selection import ReportNoisyMax, ShuffledBounds
from accountant.mechanisms.stated_guarantees import DominatedBy
from accountant.noise import exact_samplers
from accountant.noise import exact_samplers as noise_exact
from accountant.noise.generator import SecureGenerator
from accountant.pairs import product
from accountant.sampling import (
    correlated_noise,
    epochs,
    exchange_pair,
    fixed_size,
    random_allocation,
    sampler,
    spaced_poisson,
    truncated_poisson,
)
from support.planted.registry import wrap


@dataclass(frozen=True)
class Named:
    """One mistake, and the test that has to turn red with it, where a package is installed."""

    name: str
    story: str
    plant: Callable[[pytest.MonkeyPatch], None]
    test: str
    needs: str = "accountant"

    @property
    def row(self) -> str:
        """Its row in what docs/make_planted_bugs.py --all prints."""
        return f"| {self.name} | {self.story} | `{self.test}` |"


def scaled(place, factor):
    """Multiply one argument of a function, given by its position."""

    def change(original):
        def call(*given, **named):
            return original(*given[:place], given[place] * factor, *given[place + 1 :], **named)

        return call

    return change


def cut_at_four(original):
    def discrete_gaussian(words, scale, out):
        made, used = original(words, scale, out)
        np.clip(out[:made], -4 * scale, 4 * scale, out=out[:made])
        return made, used

    return discrete_gaussian


def half_count_noise(original):
    class Quieter:
        def __init__(self, generator):
            self.generator = generator

        def rounded_normal(self, n, scale):
            return self.generator.rounded_normal(n, 0.5 * scale)

    return lambda *given: original(*given[:4], Quieter(given[4]))


def a_thousandth_more(original):
    def clip_factors(norms2, filled, norm, stability, factors):
        original(norms2, filled, norm, stability, factors)
        np.minimum(factors * 1.001, 1.0, out=factors)

    return clip_factors


def a_step_for_all(original):
    return lambda rule, excess, grid, size, cap: original(rule, excess, grid, 1, cap)


def half_of_the_range(original):
    def pairs(self):
        twice = ReportNoisyMax(
            2.0 * self.scale, self.noise, sensitivity=self.sensitivity, monotonic=self.monotonic
        )
        return original(twice)

    return pairs


def lowest_dropped(original):
    return lambda spacing, error, below, *rest: original(spacing, error, 0.0, *rest)


def q_the_wrong_way(original):
    def grid_laws(spacing, error, below, above, t, atoms, p_low, q_low, p_high, q_high, *rest):
        wrong = ((1.0 + error) / (1.0 - error)) ** 2
        return original(
            spacing,
            error,
            below,
            above,
            t,
            atoms,
            p_low,
            q_low * wrong,
            p_high,
            q_high * wrong,
            *rest,
        )

    return grid_laws


def noisiest(original):
    def worst(pairs, releases):
        found = list(pairs)
        if all(pair.gaussian_part is not None for pair in found):
            return max(found, key=lambda pair: pair.gaussian_part.noise_multiplier)
        return original(found, releases)

    return worst


def least_mass(original):
    return property(lambda self: min(pair.infinite_mass for pair in self.choices))


def twice_as_many_clones(original):
    return lambda self, at, weight, chance, rest: original(
        self, at, weight, min(2.0 * chance, 1.0), max(1.0 - 2.0 * chance, 0.0)
    )


def one_term_less(original):
    return lambda v, r, p: (
        original(v, r, p) - confidence.binomial_modes(np.array([r - 1.0]), p, v - 1, r - v)[0]
    )


def only_guessed_canaries(original):
    return lambda guesses, epsilon, delta: original(
        guesses._replace(canaries=guesses.made), epsilon, delta
    )


def one_success_less(original):
    return lambda successes, trials, error: original(max(successes - 1, 0), trials, error)


def same_words_for_every_chunk(original):
    def subset(self, n, probability):
        if probability >= 1.0 or n <= 1000:
            return original(self, n, probability)
        first = original(self, 1000, probability)
        starts = range(0, n, 1000)
        return np.concatenate([first[first < n - start] + start for start in starts])

    return subset


def spare_words_twice(original):
    def words(self, n):
        drawn = original(self, n)
        if n and n < 8 and self._spare.size:
            self._spare = np.concatenate([drawn[-1:], self._spare])
        return drawn

    return words


def without_rejection(original):
    return lambda generator, bound, n: (generator.words(n) % np.uint64(bound)).astype(np.int64)


def zero_counted_twice(original):
    def discrete_laplace(scale, below):
        while (value := original(scale, below)) and below(2):
            pass
        return value

    return discrete_laplace


def unclipped(original):
    def on_grid(values, low, high):
        share = (np.asarray(values, float) - low) / (high - low)
        return np.rint(share * bounded.STEPS)

    return on_grid


def twice_the_epsilon(original):
    return lambda score, epsilon, **named: original(score, 2.0 * epsilon, **named)


def whole_delta_each(patch):
    plain = odometer.Odometer._convert

    def convert(self, order, spent):
        return plain(odometer.Odometer(self.delta, (order,)), order, spent)

    patch.setattr(odometer.Odometer, "_convert", convert)


def budget_delta_for_every_order(original):
    def capacities(self):
        orders, found = original(self)
        if len(orders) == 1:
            return orders, found
        alone = [Budget(self.epsilon, self.delta, orders=(a,)).renyi_capacities() for a in orders]
        return orders, tuple(c for _, (c,) in alone)

    return capacities


def rounded_down(original):
    return exact_sums.floor


def to_the_nearest(original):
    return lambda units: float(units / (1 << 1074))


def rate_rounded_down(original):
    def fraction_up(rate):
        found = original(rate)
        return found if Fraction(found) == rate else math.nextafter(found, 0.0)

    return fraction_up


def one_more_than_the_cap(original):
    return property(
        lambda self: truncated_poisson.overflow_probability(
            self.dataset_size - 1, self.sampling_probability, self.cap + 1
        )
    )


def cap_of_the_expected_batch(original):
    return property(lambda self: plan.batch_cap(self.expected_batch_size))


def picks_that_repeat(original):
    def picks(self, rng):
        return rng.integers(self.steps_per_epoch, size=(self.dataset_size, self.participations))

    return picks


def one_step_further_apart(original):
    def row(values, i, separation, most):
        left, right = values[: max(i - separation, 0)][::-1], values[i + separation :]
        sides = [side for side in (left, right) if side.size]
        best = correlated_noise._best_path
        return values[i] + sum(best(side, separation, most - 1) for side in sides)

    return row


def against_no_contribution(original):
    def atoms(self):
        loss = exchange_pair.loss_of_sample(self.q, self.one.centred().loss)
        return original(self)._replace(loss=loss, q=self.one.centred().q)

    return atoms


def one_ratio(original):
    return property(lambda self: 0.5 * original.fget(self))


def by_position(original):
    return lambda records, shards, **given: np.arange(records) % shards


def all_of_the_guarantee(original):
    def perturb(*given, epsilon, loss, **named):
        share = 3.0 if isinstance(loss, HuberHinge) else 1.0
        return original(*given, epsilon=share * epsilon, loss=loss, **named)

    return perturb


BUGS = (
    Named(
        "discrete-gaussian-cut",
        "discrete Gaussian noise is cut at four scales",
        wrap(training, "discrete_gaussian", cut_at_four),
        "noise/test_generator.py::test_the_discrete_gaussian_has_its_tails",
    ),
    Named(
        "largest-of-the-layers",
        "one norm a layer is said to move the sum by the largest of them",
        wrap(Rule, "sensitivity", lambda original: property(lambda self: max(self.norms))),
        "learn/test_clipping.py::test_the_sensitivity_of_several_norms_is_the_root_of_their_squares",
    ),
    Named(
        "average-of-two-runs",
        "an average goes on with the iterates of the run before",
        wrap(Averaging, "reset", lambda original: lambda self: None),
        "learn/test_averaging.py::test_a_run_knows_nothing_of_the_iterates_of_another",
    ),
    Named(
        "list-as-a-whole",
        "a list becomes an array as a whole, of a type that one record decides",
        wrap(validation, "records_at", lambda original: lambda found, at: np.asarray(found)[at]),
        "learn/test_validation.py::test_one_word_moves_one_block",
    ),
    Named(
        "shards-by-position",
        "a record's shard is its position modulo their number",
        wrap(ensemble, "assign_shards", by_position),
        "learn/pate/test_ensemble.py::test_every_record_draws_its_shard_by_itself",
    ),
    Named(
        "whole-guarantee-for-every-class",
        "each of three machines, one against the rest, spends all that was asked for",
        wrap(sklearn_estimators, "perturb_objective", all_of_the_guarantee),
        "adapters/test_sklearn.py::test_one_against_the_rest_shares_out_what_was_asked_for",
    ),
    Named(
        "count-noise-halved",
        "the count of adaptive clipping gets half of its noise",
        wrap(release, "release_fraction", half_count_noise),
        "learn/test_release.py::test_the_count_has_the_noise_that_was_charged",
    ),
    Named(
        "clip-leaks",
        "a clip factor lets a thousandth through",
        wrap(training, "clip_factors", a_thousandth_more),
        "core/test_rownorms.py::test_no_clip_factor_lets_a_norm_through",
    ),
    Named(
        "rounding-without-root",
        "rounding to the grid is said to move one coordinate",
        wrap(release, "rounded_sensitivity", a_step_for_all),
        "learn/test_release.py::test_the_noise_covers_the_rounding_of_every_coordinate",
    ),
    Named(
        "noisy-max-halved",
        "a noisy maximum costs half of its ε",
        wrap(ReportNoisyMax, "pairs", half_of_the_range),
        "mechanisms/test_selection.py::test_noisy_maxima_cost_what_their_laws_differ_by",
    ),
    Named(
        "audit-tail-off-by-one",
        "the tail of right guesses begins one later",
        wrap(one_run, "binomial_tail", lambda original: lambda v, r, p: original(v + 1, r, p)),
        "audit/test_one_run.py::test_no_private_mechanism_exceeds_the_p_value",
    ),
    Named(
        "clones-tail-off-by-one",
        "the tails of the clones begin one later",
        wrap(selection, "_tail", lambda original: lambda first, n: original(first + 1.0, n)),
        "mechanisms/test_shuffling.py::test_the_profile_of_the_clones_by_enumeration",
    ),
    Named(
        "lowest-mass-dropped",
        "the mass below the grid is dropped",
        wrap(loss_grid.core, "grid_laws", lowest_dropped),
        "analyses/pld/test_loss_grid.py::test_no_mass_is_lost_at_either_end",
    ),
    Named(
        "q-rounded-the-wrong-way",
        "masses under Q are moved inwards by their error",
        wrap(loss_grid.core, "grid_laws", q_the_wrong_way),
        "analyses/pld/test_loss_grid.py::test_masses_off_by_their_stated_error_are_covered",
    ),
    Named(
        "noisiest-branch",
        "of Gaussian branches the noisiest is paid",
        wrap(product, "worst", noisiest),
        "composition/test_disjoint.py::test_branches_that_one_dominates_cost_what_that_one_does",
    ),
    Named(
        "least-infinite-mass",
        "of the branches' δ the least is kept",
        wrap(product.WorstPair, "infinite_mass", least_mass),
        "composition/test_disjoint.py::test_a_branch_that_may_fail_keeps_its_delta",
    ),
    Named(
        "sets-fixed-in-a-ledger",
        "a ledger takes disjoint sets for fixed in advance",
        wrap(evaluation, "composed", lambda original: Composition),
        "composition/test_disjoint.py::test_a_ledger_takes_the_sets_for_chosen_by_its_other_records",
    ),
    Named(
        "twice-as-many-clones",
        "every other user is a clone twice as often",
        wrap(ShuffledBounds, "_clones", twice_as_many_clones),
        "mechanisms/test_shuffling.py::test_the_profile_of_the_clones_by_enumeration",
    ),
    Named(
        "one-term-less",
        "the addition for δ leaves out the first guess",
        wrap(one_run, "_short_of", one_term_less),
        "audit/test_one_run.py::test_no_private_mechanism_exceeds_the_p_value",
    ),
    Named(
        "canaries-not-guessed",
        "canaries that are not guessed are left out of the addition for δ",
        wrap(one_run, "one_run_p_value", only_guessed_canaries),
        "audit/test_one_run_mutants.py::test_p_values_are_the_theorems",
    ),
    Named(
        "one-success-less",
        "a confidence bound counts one success less",
        wrap(confidence, "clopper_pearson_upper", one_success_less),
        "audit/test_confidence.py::test_a_bound_on_a_proportion_covers_it",
    ),
    Named(
        "same-coins-for-every-chunk",
        "records a thousand apart share their coins",
        wrap(SecureGenerator, "subset", same_words_for_every_chunk),
        "noise/test_generator.py::test_coins_of_far_records_are_independent",
    ),
    Named(
        "spare-words-twice",
        "the last word of a short draw is handed out again",
        wrap(SecureGenerator, "words", spare_words_twice),
        "noise/test_generator.py::test_no_word_is_handed_out_twice",
    ),
    Named(
        "modulo-bias",
        "uniform indices are words modulo the bound",
        wrap(noise_exact, "uniform_index", without_rejection),
        "noise/test_exact_samplers.py::test_indices_below_a_large_bound_are_uniform",
    ),
    Named(
        "zero-counted-twice",
        "discrete Laplace noise counts zero for both signs",
        wrap(exact_samplers, "discrete_laplace", zero_counted_twice),
        "noise/test_laws.py::test_zero_is_counted_once",
    ),
    Named(
        "epsilon-times-q",
        "sampling multiplies ε by q",
        wrap(sampler, "_amplified", lambda original: lambda q, epsilon: q * epsilon),
        "sampling/test_amplification.py::test_amplify",
    ),
    Named(
        "bounds-not-kept",
        "local reports of values outside the bounds are not moved",
        wrap(bounded, "_on_grid", unclipped),
        "learn/local/test_local.py::test_values_outside_the_bounds_are_reported_as_the_ends",
    ),
    Named(
        "rappor-one-bit",
        "a report with two changed bits costs one",
        wrap(responses.Rappor, "report_epsilon", one_ratio),
        "learn/local/test_local.py::test_the_loss_of_rappor_by_brute_force",
    ),
    Named(
        "mean-of-blocks-half-noise",
        "a mean of blocks gets half of its Laplace noise",
        wrap(aggregate, "rounded_laplace", scaled(2, 0.5)),
        "learn/blocks/test_aggregate.py::test_the_mean_has_the_noise_that_is_charged",
    ),
    Named(
        "median-twice-as-sharp",
        "a median of blocks is chosen with twice the ε that is charged",
        wrap(aggregate, "select_exponential", twice_the_epsilon),
        "learn/blocks/test_aggregate.py::test_the_median_has_the_law_that_is_charged",
    ),
    Named(
        "lnmax-half-noise",
        "LNMax draws half of its noise",
        wrap(aggregation, "rounded_laplace", scaled(2, 0.5)),
        "learn/pate/test_aggregation.py::test_teachers_answers_have_the_noise_that_is_charged",
    ),
    Named(
        "threshold-half-noise",
        "GNMax draws half of its noise",
        wrap(aggregation, "_gaussian", scaled(1, 0.5)),
        "learn/pate/test_aggregation.py::test_teachers_answers_have_the_noise_that_is_charged",
    ),
    Named(
        "odometer-delta-for-every-order",
        "every order of an odometer has all of δ",
        whole_delta_each,
        "ledger/test_odometer.py::test_odometer_readings_against_mpmath",
    ),
    Named(
        "budget-delta-for-every-order",
        "every order of a budget has all of δ",
        wrap(Budget, "renyi_capacities", budget_delta_for_every_order),
        "ledger/test_budget.py::test_orders_share_delta",
    ),
    Named(
        "charges-rounded-down",
        "charges of a budget are rounded down",
        wrap(exact_sums, "ceiling", rounded_down),
        "ledger/test_exact_sums.py::test_charges_are_rounded_up_and_capacities_down",
    ),
    Named(
        "spent-to-the-nearest",
        "what is spent is shown rounded to the nearest double",
        wrap(exact_sums, "to_float_up", to_the_nearest),
        "ledger/test_exact_sums.py::test_charges_are_rounded_up_and_capacities_down",
    ),
    Named(
        "class-rate-rounded-down",
        "the rate within a class of cyclic Poisson sampling is rounded down",
        wrap(spaced_poisson, "fraction_up", rate_rounded_down),
        "sampling/test_cyclic_poisson.py::test_the_rate_of_a_class_is_rounded_up",
    ),
    Named(
        "cap-one-later",
        "a truncated batch overflows when the others are one more than fill it",
        wrap(truncated_poisson.TruncatedPoissonSampled, "overflow", one_more_than_the_cap),
        "sampling/test_truncated_poisson.py::test_a_batch_overflows_where_the_others_fill_it",
    ),
    Named(
        "cap-of-a-public-size",
        "a run with a secret number of records pays for the rounding of its expected batch",
        wrap(plan.Plan, "batch_cap", cap_of_the_expected_batch),
        "learn/test_plan.py::test_a_secret_size_has_the_cap_of_the_most_records",
    ),
    Named(
        "batch-share-rounded-down",
        "the share of a batch of a fixed size is rounded down",
        wrap(fixed_size, "ratio_up", lambda original: fixed_size.ratio_down),
        "sampling/test_fixed_size.py::test_the_rate_is_at_least_the_share_of_a_batch",
    ),
    Named(
        "picks-repeat",
        "a record may pick a step of random allocation twice",
        wrap(random_allocation.RandomAllocation, "_picks", picks_that_repeat),
        "sampling/test_random_allocation.py::test_a_record_takes_part_in_as_many_steps_as_it_picks",
    ),
    Named(
        "one-step-further-apart",
        "earlier participations keep one step more than the separation",
        wrap(correlated_noise, "_row", one_step_further_apart),
        "sampling/test_correlated_noise.py::test_a_row_at_its_best_has_the_best_pattern_around_it",
    ),
    Named(
        "variation-of-one-epoch",
        "shuffled batches differ as in one epoch, however many there are",
        wrap(
            epochs.ShuffledBatches,
            "variation_bound",
            lambda original: lambda self, noise: original(self, noise) / self.epochs,
        ),
        "sampling/test_shuffled.py::test_data_sets_differ_by_no_more_than_the_bound_on_variation",
    ),
    Named(
        "bound-taken-for-attained",
        "what dominates a sampler is taken for what data reach",
        wrap(DominatedBy, "from_below", lambda original: lambda self: None),
        "mechanisms/test_dominated_by.py::test_blocks_of_an_allocation_are_no_lower_end",
    ),
    Named(
        "second-law-not-moved",
        "a replaced record is compared with one that contributes nothing",
        wrap(exchange_pair.ExchangedAtoms, "atoms", against_no_contribution),
        "sampling/test_exchange_pair.py::test_a_step_is_the_worst_of_all_contributions",
    ),
)

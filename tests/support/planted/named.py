"""Bugs that the test file named after the faulty thing must notice: which test, and the patch.

``plugin`` plants one of them in a pytest process of its own, so that any test can be asked.
"""

import math
from fractions import Fraction

import numpy as np

from accountant.audit import two_sample as confidence
from accountant.composition import Composition
from accountant.learn import local, plan
from accountant.learn.convex.losses import HuberHinge
from accountant.ledger import exact_sums, odometer
from accountant.ledger.budget import Budget
from accountant.mechanisms.selection import ReportNoisyMax
from accountant.sampling import correlated_noise, exchange_pair, fixed_size, truncated_poisson
from support.planted.registry import collected

BUGS, bug = collected()


@bug(
    "_core.training:discrete_gaussian",
    "noise/test_generator.py::test_the_discrete_gaussian_has_its_tails",
)
def discrete_gaussian_cut(original, words, scale, out):
    """discrete Gaussian noise is cut at four scales"""
    made, used = original(words, scale, out)
    np.clip(out[:made], -4 * scale, 4 * scale, out=out[:made])
    return made, used


@bug(
    "learn.clipping:Rule.sensitivity",
    "test_the_sensitivity_of_several_norms_is_the_root_of_their_squares",
)
def largest_of_the_layers(original, self):
    """one norm a layer is said to move the sum by the largest of them"""
    return max(self.norms)


@bug(
    "learn.result:Averaging.reset",
    "learn/test_averaging.py::test_a_run_knows_nothing_of_the_iterates_of_another",
)
def average_of_two_runs(original, self):
    """an average goes on with the iterates of the run before"""
    return


@bug("learn.validation:records_at", "test_one_word_moves_one_block")
def list_as_a_whole(original, found, at):
    """a list becomes an array as a whole, of a type that one record decides"""
    return np.asarray(found)[at]


@bug("learn.pate.ensemble:assign_shards", "test_every_record_draws_its_shard_by_itself")
def shards_by_position(original, records, shards, **given):
    """a record's shard is its position modulo their number"""
    return np.arange(records) % shards


@bug(
    "adapters.sklearn:perturb_objective", "test_one_against_the_rest_shares_out_what_was_asked_for"
)
def whole_guarantee_for_every_class(original, *given, epsilon, loss, **named):
    """each of three machines, one against the rest, spends all that was asked for"""
    share = 3.0 if isinstance(loss, HuberHinge) else 1.0
    return original(*given, epsilon=share * epsilon, loss=loss, **named)


@bug("learn.release:release_fraction", "test_the_count_has_the_noise_that_was_charged")
def count_noise_halved(original, *given):
    """the count of adaptive clipping gets half of its noise"""

    class Quieter:
        def __init__(self, generator):
            self.generator = generator

        def rounded_normal(self, n, scale):
            return self.generator.rounded_normal(n, 0.5 * scale)

    return original(*given[:4], Quieter(given[4]))


@bug(
    "_core.training:clip_factors", "core/test_rownorms.py::test_no_clip_factor_lets_a_norm_through"
)
def clip_leaks(original, norms2, filled, norm, stability, factors):
    """a clip factor lets a thousandth through"""
    original(norms2, filled, norm, stability, factors)
    np.minimum(factors * 1.001, 1.0, out=factors)


@bug("learn.release:rounded_sensitivity", "test_the_noise_covers_the_rounding_of_every_coordinate")
def rounding_without_root(original, rule, excess, grid, size, cap):
    """rounding to the grid is said to move one coordinate"""
    return original(rule, excess, grid, 1, cap)


@bug(
    "mechanisms.selection:ReportNoisyMax.pairs", "test_noisy_maxima_cost_what_their_laws_differ_by"
)
def noisy_max_halved(original, self):
    """a noisy maximum costs half of its ε"""
    twice = ReportNoisyMax(
        2.0 * self.scale, self.noise, sensitivity=self.sensitivity, monotonic=self.monotonic
    )
    return original(twice)


@bug("audit.one_run:binomial_tail", "test_no_private_mechanism_exceeds_the_p_value")
def audit_tail_off_by_one(original, v, r, p):
    """the tail of right guesses begins one later"""
    return original(v + 1, r, p)


@bug(
    "mechanisms.selection:_tail",
    "mechanisms/test_shuffling.py::test_the_profile_of_the_clones_by_enumeration",
)
def clones_tail_off_by_one(original, first, n):
    """the tails of the clones begin one later"""
    return original(first + 1.0, n)


@bug("_core.tools:grid_laws", "analyses/pld/test_loss_grid.py::test_no_mass_is_lost_at_either_end")
def lowest_mass_dropped(original, spacing, error, below, *rest):
    """the mass below the grid is dropped"""
    return original(spacing, error, 0.0, *rest)


@bug(
    "_core.tools:grid_laws",
    "analyses/pld/test_loss_grid.py::test_masses_off_by_their_stated_error_are_covered",
)
def q_rounded_the_wrong_way(original, spacing, error, *given):
    """masses under Q are moved inwards by their error"""
    wrong = ((1.0 + error) / (1.0 - error)) ** 2
    below, above, t, atoms, p_low, q_low, p_high, q_high, *rest = given
    moved = (p_low, q_low * wrong, p_high, q_high * wrong)
    return original(spacing, error, below, above, t, atoms, *moved, *rest)


@bug(
    "pairs.product:worst",
    "composition/test_disjoint.py::test_branches_that_one_dominates_cost_what_that_one_does",
)
def noisiest_branch(original, pairs, releases):
    """of Gaussian branches the noisiest is paid"""
    found = list(pairs)
    if all(pair.gaussian_part is not None for pair in found):
        return max(found, key=lambda pair: pair.gaussian_part.noise_multiplier)
    return original(found, releases)


@bug(
    "pairs.product:WorstPair.infinite_mass",
    "composition/test_disjoint.py::test_a_branch_that_may_fail_keeps_its_delta",
)
def least_infinite_mass(original, self):
    """of the branches' δ the least is kept"""
    return min(pair.infinite_mass for pair in self.choices)


@bug(
    "ledger.evaluation:composed",
    "composition/test_disjoint.py::test_a_ledger_takes_the_sets_for_chosen_by_its_other_records",
)
def sets_fixed_in_a_ledger(original, *given):
    """a ledger takes disjoint sets for fixed in advance"""
    return Composition(*given)


@bug(
    "mechanisms.selection:ShuffledBounds._clones",
    "mechanisms/test_shuffling.py::test_the_profile_of_the_clones_by_enumeration",
)
def twice_as_many_clones(original, self, at, weight, chance, rest):
    """every other user is a clone twice as often"""
    return original(self, at, weight, min(2.0 * chance, 1.0), max(1.0 - 2.0 * chance, 0.0))


@bug("audit.one_run:_short_of", "test_no_private_mechanism_exceeds_the_p_value")
def one_term_less(original, v, r, p):
    """the addition for δ leaves out the first guess"""
    return original(v, r, p) - confidence.binomial_modes(np.array([r - 1.0]), p, v - 1, r - v)[0]


@bug(
    "audit.one_run:one_run_p_value", "audit/test_one_run_mutants.py::test_p_values_are_the_theorems"
)
def canaries_not_guessed(original, guesses, epsilon, delta):
    """canaries that are not guessed are left out of the addition for δ"""
    return original(guesses._replace(canaries=guesses.made), epsilon, delta)


@bug(
    "audit.two_sample:clopper_pearson_upper",
    "audit/test_confidence.py::test_a_bound_on_a_proportion_covers_it",
)
def one_success_less(original, successes, trials, error):
    """a confidence bound counts one success less"""
    return original(max(successes - 1, 0), trials, error)


@bug("noise.generator:SecureGenerator.subset", "test_coins_of_far_records_are_independent")
def same_coins_for_every_chunk(original, self, n, probability):
    """records a thousand apart share their coins"""
    if probability >= 1.0 or n <= 1000:
        return original(self, n, probability)
    first = original(self, 1000, probability)
    starts = range(0, n, 1000)
    return np.concatenate([first[first < n - start] + start for start in starts])


@bug("noise.generator:SecureGenerator.words", "test_no_word_is_handed_out_twice")
def spare_words_twice(original, self, n):
    """the last word of a short draw is handed out again"""
    drawn = original(self, n)
    if n and n < 8 and self._spare.size:
        self._spare = np.concatenate([drawn[-1:], self._spare])
    return drawn


@bug("noise.exact_samplers:uniform_index", "test_indices_below_a_large_bound_are_uniform")
def modulo_bias(original, generator, bound, n):
    """uniform indices are words modulo the bound"""
    return (generator.words(n) % np.uint64(bound)).astype(np.int64)


@bug("noise.exact_samplers:discrete_laplace", "noise/test_laws.py::test_zero_is_counted_once")
def zero_counted_twice(original, scale, below):
    """discrete Laplace noise counts zero for both signs"""
    while (value := original(scale, below)) and below(2):
        pass
    return value


@bug("sampling.sampler:_amplified", "sampling/test_amplification.py::test_amplify")
def epsilon_times_q(original, q, epsilon):
    """sampling multiplies ε by q"""
    return q * epsilon


@bug(
    "learn.local:_on_grid",
    "learn/local/test_local.py::test_values_outside_the_bounds_are_reported_as_the_ends",
)
def bounds_not_kept(original, values, low, high):
    """local reports of values outside the bounds are not moved"""
    share = (np.asarray(values, float) - low) / (high - low)
    return np.rint(share * local.STEPS)


@bug(
    "learn.local:Rappor.report_epsilon",
    "learn/local/test_local.py::test_the_loss_of_rappor_by_brute_force",
)
def rappor_one_bit(original, self):
    """a report with two changed bits costs one"""
    return 0.5 * original(self)


@bug(
    "learn.blocks:rounded_laplace",
    "learn/blocks/test_aggregate.py::test_the_mean_has_the_noise_that_is_charged",
)
def mean_of_blocks_half_noise(original, generator, n, scale):
    """a mean of blocks gets half of its Laplace noise"""
    return original(generator, n, 0.5 * scale)


@bug(
    "learn.blocks:select_exponential",
    "learn/blocks/test_aggregate.py::test_the_median_has_the_law_that_is_charged",
)
def median_twice_as_sharp(original, score, epsilon, **named):
    """a median of blocks is chosen with twice the ε that is charged"""
    return original(score, 2.0 * epsilon, **named)


@bug(
    "learn.pate.votes:rounded_laplace",
    "learn/pate/test_aggregation.py::test_teachers_answers_have_the_noise_that_is_charged",
)
def lnmax_half_noise(original, generator, n, scale):
    """LNMax draws half of its noise"""
    return original(generator, n, 0.5 * scale)


@bug(
    "learn.pate.votes:_gaussian",
    "learn/pate/test_aggregation.py::test_teachers_answers_have_the_noise_that_is_charged",
)
def threshold_half_noise(original, n, scale, *rest):
    """GNMax draws half of its noise"""
    return original(n, 0.5 * scale, *rest)


@bug("ledger.odometer:Odometer._convert", "test_odometer_readings_against_mpmath")
def odometer_delta_for_every_order(original, self, order, spent):
    """every order of an odometer has all of δ"""
    return original(odometer.Odometer(self.delta, (order,)), order, spent)


@bug("ledger.budget:Budget.renyi_capacities", "test_orders_share_delta")
def budget_delta_for_every_order(original, self):
    """every order of a budget has all of δ"""
    orders, found = original(self)
    if len(orders) == 1:
        return orders, found
    alone = [Budget(self.epsilon, self.delta, orders=(a,)).renyi_capacities() for a in orders]
    return orders, tuple(c for _, (c,) in alone)


@bug("ledger.exact_sums:ceiling", "test_charges_are_rounded_up_and_capacities_down")
def charges_rounded_down(original, *given):
    """charges of a budget are rounded down"""
    return exact_sums.floor(*given)


@bug("ledger.exact_sums:to_float_up", "test_charges_are_rounded_up_and_capacities_down")
def spent_to_the_nearest(original, units):
    """what is spent is shown rounded to the nearest double"""
    return float(units / (1 << 1074))


@bug(
    "sampling.spaced_poisson:fraction_up",
    "sampling/test_cyclic_poisson.py::test_the_rate_of_a_class_is_rounded_up",
)
def class_rate_rounded_down(original, rate):
    """the rate within a class of cyclic Poisson sampling is rounded down"""
    found = original(rate)
    return found if Fraction(found) == rate else math.nextafter(found, 0.0)


@bug(
    "sampling.truncated_poisson:TruncatedPoissonSampled.overflow",
    "test_a_batch_overflows_where_the_others_fill_it",
)
def cap_one_later(original, self):
    """a truncated batch overflows when the others are one more than fill it"""
    return truncated_poisson.overflow_probability(
        self.dataset_size - 1, self.sampling_probability, self.cap + 1
    )


@bug("learn.plan:Plan.batch_cap", "test_a_secret_size_has_the_cap_of_the_most_records")
def cap_of_a_public_size(original, self):
    """a run with a secret number of records pays for the rounding of its expected batch"""
    return plan.batch_cap(self.expected_batch_size)


@bug("sampling.fixed_size:ratio_up", "test_the_rate_is_at_least_the_share_of_a_batch")
def batch_share_rounded_down(original, *given):
    """the share of a batch of a fixed size is rounded down"""
    return fixed_size.ratio_down(*given)


@bug(
    "sampling.random_allocation:RandomAllocation._picks",
    "test_a_record_takes_part_in_as_many_steps_as_it_picks",
)
def picks_repeat(original, self, rng):
    """a record may pick a step of random allocation twice"""
    return rng.integers(self.steps_per_epoch, size=(self.dataset_size, self.participations))


@bug("sampling.correlated_noise:_row", "test_a_row_at_its_best_has_the_best_pattern_around_it")
def one_step_further_apart(original, values, i, separation, most):
    """earlier participations keep one step more than the separation"""
    left, right = values[: max(i - separation, 0)][::-1], values[i + separation :]
    sides = [side for side in (left, right) if side.size]
    best = correlated_noise._best_path
    return values[i] + sum(best(side, separation, most - 1) for side in sides)


@bug(
    "sampling.epochs:ShuffledBatches.variation_bound",
    "sampling/test_shuffled.py::test_data_sets_differ_by_no_more_than_the_bound_on_variation",
)
def variation_of_one_epoch(original, self, noise):
    """shuffled batches differ as in one epoch, however many there are"""
    return original(self, noise) / self.epochs


@bug(
    "mechanisms.stated_guarantees:DominatedBy.from_below",
    "mechanisms/test_dominated_by.py::test_blocks_of_an_allocation_are_no_lower_end",
)
def bound_taken_for_attained(original, self):
    """what dominates a sampler is taken for what data reach"""
    return


@bug("sampling.exchange_pair:ExchangedAtoms.atoms", "test_a_step_is_the_worst_of_all_contributions")
def second_law_not_moved(original, self):
    """a replaced record is compared with one that contributes nothing"""
    loss = exchange_pair.loss_of_sample(self.q, self.one.centred().loss)
    return original(self)._replace(loss=loss, q=self.one.centred().q)

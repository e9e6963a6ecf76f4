"""Broken DP-SGD: sampling, clipping, sums and noise."""

import math
import secrets

import numpy as np

from accountant._core import training
from accountant.learn import run
from accountant.learn.clipping import AdaptiveQuantile, PerLayer, Rule
from accountant.learn.release import Privatiser
from accountant.noise import Grid, SecureGenerator
from support.planted import checks
from support.planted.registry import Bug, wrap


def settings_times(factor):
    def change(original):
        def settings(self, rule):
            grid, deviation = original(self, rule)
            return grid, deviation * factor

        return settings

    return wrap(Privatiser, "settings", change)


def noise_for_the_mean(original):
    def settings(self, rule):
        grid, deviation = original(self, rule)
        return grid, max(deviation / self.cap, 4 * grid.step)

    return settings


def micro_batches(original):
    def release(self, value, rule, generator):
        kept, self.noise_multiplier = self.noise_multiplier, self.noise_multiplier / 4
        try:
            parts = [original(self, value / 4, rule, generator) for _ in range(4)]
        finally:
            self.noise_multiplier = kept
        return sum(part for part, _ in parts), 4 * parts[0][1]

    return release


def divide_by_the_batch(original):
    def take_step(self):
        inner = self.privatiser.release

        def release(value, rule, generator):
            batch = max(1, len(self.X))
            return inner(value * (self.plan.expected_batch_size / batch), rule, generator)

        self.privatiser.release = release
        try:
            return original(self)
        finally:
            del self.privatiser.release

    return take_step


def skip_empty(original):
    def release(self, value, rule, generator):
        return original(self, value, rule, generator) if value.any() else (value, 0.0)

    return release


def last_without_noise(original):
    def release(self, value, rule, generator):
        noisy, deviation = original(self, value, rule, generator)
        noisy[-1] = value[-1]
        return noisy, deviation

    return release


def shuffled(patch):
    state = {}

    def draw_batch(sampler, records, probability, generator):
        order = state.get("order", np.empty(0, np.intp))
        size = math.ceil(records * probability)
        if order.size == 0:
            order = np.argsort(generator.words(records))
        state["order"] = order[size:]
        return np.sort(order[:size])

    patch.setattr(run, "draw_batch", draw_batch)


def fixed_size(patch):
    def draw_batch(sampler, records, probability, generator):
        if sampler == "full":
            return None
        return np.sort(np.argsort(generator.words(records))[: round(records * probability)])

    patch.setattr(run, "draw_batch", draw_batch)


class Understated(Rule):
    """A rule that says the norm of one layer is the norm of all."""

    sensitivity = property(lambda self: self.norms[0])


def each_layer_in_full(original):
    return lambda self, groups: Understated((self.clipping_norm,) * groups)


def bias_forgotten(original):
    return lambda a, g, bias, limit, norms2: original(a, g, 0.0, limit, norms2)


def never_clipped(original):
    def clip_factors(norms2, filled, norm, stability, factors):
        factors[:] = 1.0

    return clip_factors


def coordinates_clipped(original):
    def clip_factors(norms2, filled, norm, stability, factors):
        # As if every coordinate, not the whole row, were cut to the norm.
        original(norms2 / 16.0, filled, norm, stability, factors)

    return clip_factors


def kept_if_not_finite(original):
    def clip_factors(norms2, filled, norm, stability, factors):
        original(norms2, filled, norm, stability, factors)
        factors[:filled][~np.isfinite(norms2[:filled])] = 1e-3

    return clip_factors


def same_noise_every_step(original):
    def erase(self):
        self._block, self._spare = 0, np.empty(0, np.uint64)

    return erase


def eight_bits(patch):
    real = secrets.token_bytes
    patch.setattr(secrets, "token_bytes", lambda n: real(1) * n)


def a_fixed_default_seed(patch):
    patch.setattr(secrets, "token_bytes", bytes)


def clip_count_unpaid(original):
    return lambda self, noise_multiplier: noise_multiplier


def exact_fraction(patch):
    def release_fraction(clipping, unclipped, records, expected, generator):
        return unclipped / expected

    patch.setattr(run, "release_fraction", release_fraction)


def floats_below_the_grid(original):
    def release_gaussian(self, value, deviation, generator):
        coarse = original(self, value, deviation, generator)
        return coarse + (value - np.rint(value / self.step) * self.step)

    return release_gaussian


def truncated_noise(original):
    def rounded_normal(self, n, scale):
        return np.trunc(original(self, n, 1024.0 * scale) / 1024.0)

    return rounded_normal


def clipped_noise(original):
    return lambda self, n, scale: np.clip(original(self, n, scale), -2.5 * scale, 2.5 * scale)


BUGS = (
    Bug("noise-0.9", "noise scaled by 0.9", settings_times(0.9), checks.full_batch_audit, True),
    Bug("noise-0.95", "noise scaled by 0.95", settings_times(0.95), checks.release_audit, True),
    Bug(
        "noise-for-the-mean",
        "noise calibrated for the mean, added to the sum",
        wrap(Privatiser, "settings", noise_for_the_mean),
        checks.full_batch_audit,
        True,
    ),
    Bug(
        "noise-per-micro-batch",
        "the noise is drawn once per micro-batch, a quarter of the deviation each",
        wrap(Privatiser, "release", micro_batches),
        checks.full_batch_audit,
        True,
    ),
    Bug(
        "realised-batch-mean",
        "the sum is divided by the size of the batch that came up",
        wrap(run.Run, "take_step", divide_by_the_batch),
        checks.twin_runs,
    ),
    Bug(
        "empty-batches-skipped",
        "an empty batch makes no release",
        wrap(Privatiser, "release", skip_empty),
        checks.every_coordinate_is_noisy,
    ),
    Bug(
        "bias-without-noise",
        "the last coordinate gets no noise",
        wrap(Privatiser, "release", last_without_noise),
        checks.every_coordinate_is_noisy,
    ),
    Bug(
        "shuffled", "shuffled batches accounted as Poisson", shuffled, checks.one_epoch_audit, True
    ),
    Bug(
        "fixed-size",
        "batches of a fixed size accounted as Poisson under add-or-remove",
        fixed_size,
        checks.poisson_batches_have_their_law,
    ),
    Bug(
        "per-layer-without-root",
        "one norm a layer, the sensitivity without the root of their number",
        wrap(PerLayer, "rule", each_layer_in_full),
        checks.per_layer_audit,
        True,
    ),
    Bug(
        "bias-not-in-the-norm",
        "the ghost norm forgets the bias",
        wrap(training, "add_ghost_norms", bias_forgotten),
        checks.one_record,
    ),
    Bug(
        "not-clipped",
        "the clip factor is always 1",
        wrap(training, "clip_factors", never_clipped),
        checks.full_batch_audit,
        True,
    ),
    Bug(
        "clipped-by-coordinate",
        "every coordinate is clipped by itself, as if that bounded the norm",
        wrap(training, "clip_factors", coordinates_clipped),
        checks.full_batch_audit,
        True,
    ),
    Bug(
        "not-finite-kept",
        "a record whose gradient overflows is scaled, not dropped",
        wrap(training, "clip_factors", kept_if_not_finite),
        checks.broken_records,
    ),
    Bug(
        "same-noise-every-step",
        "the stream starts again in every step",
        wrap(SecureGenerator, "erase", same_noise_every_step),
        checks.noise_is_fresh,
    ),
    Bug("8-bit-seeds", "keys made of one random byte", eight_bits, checks.noise_is_fresh),
    Bug("fixed-seed", "the default key is a constant", a_fixed_default_seed, checks.noise_is_fresh),
    Bug(
        "clip-count-unpaid",
        "adaptive clipping's count is not paid for",
        wrap(AdaptiveQuantile, "gradient_noise", clip_count_unpaid),
        checks.adaptive_count_is_paid,
    ),
    Bug(
        "clip-count-exact",
        "adaptive clipping follows the exact fraction",
        exact_fraction,
        checks.adaptive_norms_are_noisy,
    ),
    Bug(
        "batch-normalisation",
        "models that look across records are trained",
        wrap(run, "require_row_independence", lambda original: lambda model, x, y: None),
        checks.looks_across_records,
    ),
    Bug(
        "low-digits-released",
        "the sum's digits below the grid are released",
        wrap(Grid, "release_gaussian", floats_below_the_grid),
        checks.released_on_the_grid,
    ),
    Bug(
        "noise-truncated",
        "noise is cut towards zero, not rounded",
        wrap(SecureGenerator, "rounded_normal", truncated_noise),
        checks.rounded_noise_has_its_law,
    ),
    Bug(
        "noise-clipped",
        "noise beyond 2.5 deviations is cut off",
        wrap(SecureGenerator, "rounded_normal", clipped_noise),
        checks.release_audit,
        True,
    ),
)

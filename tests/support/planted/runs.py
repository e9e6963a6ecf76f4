"""Broken DP-SGD: sampling, clipping, sums and noise."""

import math

import numpy as np

from accountant.learn.clipping import Rule
from support.planted import checks
from support.planted.registry import collected


class Understated(Rule):
    """A rule that says the norm of one layer is the norm of all."""

    sensitivity = property(lambda self: self.norms[0])


BUGS, bug = collected()


def noise_scaled(factor):
    def change(original, self, rule):
        grid, deviation = original(self, rule)
        return grid, deviation * factor

    change.__doc__ = f"noise scaled by {factor}"
    return change


for factor, check in ((0.9, checks.full_batch_audit), (0.95, checks.release_audit)):
    bug("learn.release:Privatiser.settings", check, name=f"noise-{factor}")(noise_scaled(factor))


@bug("learn.release:Privatiser.settings", checks.full_batch_audit)
def noise_for_the_mean(original, self, rule):
    """noise calibrated for the mean, added to the sum"""
    grid, deviation = original(self, rule)
    return grid, max(deviation / self.cap, 4 * grid.step)


@bug("learn.release:Privatiser.release", checks.full_batch_audit)
def noise_per_micro_batch(original, self, value, rule, generator):
    """the noise is drawn once per micro-batch, a quarter of the deviation each"""
    kept, self.noise_multiplier = self.noise_multiplier, self.noise_multiplier / 4
    try:
        parts = [original(self, value / 4, rule, generator) for _ in range(4)]
    finally:
        self.noise_multiplier = kept
    return sum(part for part, _ in parts), 4 * parts[0][1]


@bug("learn.run:Run.take_step", checks.twin_runs)
def realised_batch_mean(original, self):
    """the sum is divided by the size of the batch that came up"""
    inner = self.privatiser.release

    def release(value, rule, generator):
        batch = max(1, len(self.X))
        return inner(value * (self.plan.expected_batch_size / batch), rule, generator)

    self.privatiser.release = release
    try:
        return original(self)
    finally:
        del self.privatiser.release


@bug("learn.release:Privatiser.release", checks.every_coordinate_is_noisy)
def empty_batches_skipped(original, self, value, rule, generator):
    """an empty batch makes no release"""
    return original(self, value, rule, generator) if value.any() else (value, 0.0)


@bug("learn.release:Privatiser.release", checks.every_coordinate_is_noisy)
def bias_without_noise(original, self, value, rule, generator):
    """the last coordinate gets no noise"""
    noisy, deviation = original(self, value, rule, generator)
    noisy[-1] = value[-1]
    return noisy, deviation


@bug("learn.run:draw_batch", checks.one_epoch_audit)
def shuffled(original, sampler, records, probability, generator, state={}):  # noqa: B006
    """shuffled batches accounted as Poisson"""
    order = state.get("order", np.empty(0, np.intp))
    size = math.ceil(records * probability)
    if order.size == 0:
        order = np.argsort(generator.words(records))
    state["order"] = order[size:]
    return np.sort(order[:size])


@bug("learn.run:draw_batch", checks.poisson_batches_have_their_law)
def fixed_size(original, sampler, records, probability, generator):
    """batches of a fixed size accounted as Poisson under add-or-remove"""
    if sampler == "full":
        return None
    return np.sort(np.argsort(generator.words(records))[: round(records * probability)])


@bug("learn.clipping:PerLayer.rule", checks.per_layer_audit)
def per_layer_without_root(original, self, groups):
    """one norm a layer, the sensitivity without the root of their number"""
    return Understated((self.clipping_norm,) * groups)


@bug("_core.training:add_ghost_norms", checks.one_record)
def bias_not_in_the_norm(original, a, g, bias, limit, norms2):
    """the ghost norm forgets the bias"""
    return original(a, g, 0.0, limit, norms2)


@bug("_core.training:clip_factors", checks.full_batch_audit)
def not_clipped(original, norms2, filled, norm, stability, factors):
    """the clip factor is always 1"""
    factors[:] = 1.0


@bug("_core.training:clip_factors", checks.full_batch_audit)
def clipped_by_coordinate(original, norms2, filled, norm, stability, factors):
    """every coordinate is clipped by itself, as if that bounded the norm"""
    # As if every coordinate, not the whole row, were cut to the norm.
    original(norms2 / 16.0, filled, norm, stability, factors)


@bug("_core.training:clip_factors", checks.broken_records)
def not_finite_kept(original, norms2, filled, norm, stability, factors):
    """a record whose gradient overflows is scaled, not dropped"""
    original(norms2, filled, norm, stability, factors)
    factors[:filled][~np.isfinite(norms2[:filled])] = 1e-3


@bug("noise.generator:SecureGenerator.erase", checks.noise_is_fresh)
def same_noise_every_step(original, self):
    """the stream starts again in every step"""
    self._block, self._spare = 0, np.empty(0, np.uint64)


@bug("noise.generator:secrets.token_bytes", checks.noise_is_fresh, name="8-bit-seeds")
def one_byte(original, n):
    """keys made of one random byte"""
    return original(1) * n


@bug("noise.generator:secrets.token_bytes", checks.noise_is_fresh)
def fixed_seed(original, n):
    """the default key is a constant"""
    return bytes(n)


@bug("learn.clipping:AdaptiveQuantile.gradient_noise", checks.adaptive_count_is_paid)
def clip_count_unpaid(original, self, noise_multiplier):
    """adaptive clipping's count is not paid for"""
    return noise_multiplier


@bug("learn.run:release_fraction", checks.adaptive_norms_are_noisy)
def clip_count_exact(original, clipping, unclipped, records, expected, generator):
    """adaptive clipping follows the exact fraction"""
    return unclipped / expected


@bug("learn.run:require_row_independence", checks.looks_across_records)
def batch_normalisation(original, model, x, y):
    """models that look across records are trained"""
    return


@bug("noise.integer_law:Grid.release_gaussian", checks.released_on_the_grid)
def low_digits_released(original, self, value, deviation, generator):
    """the sum's digits below the grid are released"""
    coarse = original(self, value, deviation, generator)
    return coarse + (value - np.rint(value / self.step) * self.step)


@bug("noise.generator:SecureGenerator.rounded_normal", checks.rounded_noise_has_its_law)
def noise_truncated(original, self, n, scale):
    """noise is cut towards zero, not rounded"""
    return np.trunc(original(self, n, 1024.0 * scale) / 1024.0)


@bug("noise.generator:SecureGenerator.rounded_normal", checks.release_audit)
def noise_clipped(original, self, n, scale):
    """noise beyond 2.5 deviations is cut off"""
    return np.clip(original(self, n, scale), -2.5 * scale, 2.5 * scale)

"""Broken adapters of PyTorch and Opacus; what they patch is imported when a bug is planted."""

from importlib import import_module

from support.planted.registry import collected

BUGS, bug = collected("adapters.")


@bug("torch_steps:PrivateSteps._add", "test_all_parameters_of_a_unit_share_one_norm")
def torch_clipped_by_parameter(original, self, sums):
    """every parameter's gradient is clipped by itself, to the norm of all"""
    held = self._parameters
    try:
        for total, p in zip(sums, held, strict=True):
            self._parameters = [p]
            original(self, [total])
    finally:
        self._parameters = held


@bug("torch_steps:torch.trunc", "test_what_a_unit_adds_is_never_longer_than_the_norm")
def torch_rounded_to_nearest(original, *given):
    """a clipped gradient is rounded to the nearest point of the grid"""
    return import_module("torch").round(*given)


@bug(
    "torch_steps:PrivateSteps._noise",
    "test_the_noise_is_that_of_the_multiplier_and_the_batch_is_divided_by_its_average",
)
def torch_half_noise(original, self, like):
    """PyTorch steps add half of their noise"""
    return original(self, like) // 2


@bug("torch_steps:PrivateSteps.units", "test_a_step_is_divided_by_a_public_number")
def torch_realised_mean(original, self, batch):
    """PyTorch steps are divided by the size of the batch that came up"""
    size = float(max(len(batch), 1))
    import_module("accountant.adapters.torch_batches").average = lambda sampler: size
    return original(self, batch)


@bug(
    "torch_steps:PrivateSteps._clear",
    "test_a_unit_more_moves_the_sum_by_what_it_adds_and_by_nothing_else",
)
def torch_gradients_pile_up(original, *given):
    """a unit's gradient is added to that of the unit before it"""
    return


@bug("torch_steps:PrivateSteps.__init__", "test_the_norm_is_widened_by_what_its_sum_may_lose")
def torch_norm_as_computed(original, self, *given, **named):
    """a norm is taken for exact as it was computed"""
    original(self, *given, **named)
    self._excess = 1.0


@bug("torch_batches:Run.to_charge", "test_a_run_is_charged_whole_and_its_noise_may_not_fall")
def torch_noise_may_fall(original, self, noise):
    """the noise of a run that is charged as a whole may fall"""
    return original(self, noise) if self._noise is None else None


@bug("torch_batches:BatchSampler.__iter__", "test_a_run_is_charged_before_its_first_batch")
def torch_second_pass_free(original, self):
    """a batch sampler charges its first pass alone"""
    try:
        yield from original(self)
    finally:
        self.ledger = None


@bug(
    "torch_steps:Training._resume",
    "adapters/test_transformers.py::test_a_resumed_run_goes_on_with_its_ledger",
    "transformers",
)
def torch_resume_forgets(original, self, saved):
    """a checkpoint replaces a ledger that holds more"""
    self._ledger = import_module("accountant").Accountant.from_json(saved)


@bug(
    "_opacus_draws:_probability",
    "test_the_probability_is_the_share_of_all_words_that_a_sampler_takes",
)
def opacus_nominal_rate(original, rate, *given):
    """coins are accounted at the nominal rate where theirs is larger"""
    return min(rate, original(rate, *given))


@bug("_opacus_steps:_multiplier", "test_what_a_step_did_is_what_is_recorded")
def opacus_norm_of_the_noise(original, optimizer, bound):
    """the noise is counted in the norm that it was drawn for, not in that of the clipping"""
    return float(optimizer.noise_multiplier)


@bug("_opacus_draws:Draws.take", "test_what_has_no_account_is_refused")
def opacus_batches_left_out(original, self, rows):
    """batches that no step uses are not noticed"""
    self.ahead, self._left_out = 10**6, lambda other: False
    return original(self, rows)


@bug("_opacus_draws:States.use", "test_noise_that_comes_again_is_refused")
def opacus_same_noise_again(original, *given):
    """a generator in a state that it had before is not noticed"""
    return


@bug("_opacus_ghost:_refuse_other_gradients", "test_what_ghost_clipping_does_not_clip_is_refused")
def opacus_penalty_unclipped(original, *given):
    """a loss that depends on parameters outside their layers is not noticed"""
    return


@bug("_torch_observer:Randomness.fresh", "test_every_other_unit_adds_the_same_bits")
def units_share_their_masks(original, *given):
    """a model draws every unit's masks from one stream"""
    return


@bug(
    "_torch_observer:Contents.moved",
    "adapters/test_torch_units_apart.py::test_a_model_that_keeps_something_is_refused",
)
def kept_unseen(original, *given):
    """what a model keeps of a batch is not looked at"""
    return


@bug("torch_batches:Run.spend", "test_batches_are_spent_once_and_in_their_order")
def batches_spent_again(original, *given):
    """a batch may be used again"""
    return


@bug("opacus:reseed", "test_masks_come_from_the_system_whatever_the_seed")
def opacus_known_seed(original):
    """opacus draws from the seed that the user set"""
    return {}


@bug("_opacus_clipping:factors", "test_no_record_decides_whether_training_goes_on")
def opacus_no_number_for_all(original, norms, bounds):
    """a record that is no number makes the sum of all records none"""
    return (bounds / (norms + 1e-6)).clamp(max=1.0)

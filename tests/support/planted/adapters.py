"""Broken adapters of PyTorch and Opacus; what they patch is imported when a bug is planted."""

from importlib import import_module

from support.planted.named import Named
from support.planted.registry import wrap


def adapter(name):
    return import_module(f"accountant.adapters.{name}")


def method(module, owner, name, change):
    """Replace a method of an adapter's class, or with no owner a function, by a change of it."""

    def plant(patch):
        found = adapter(module)
        wrap(found if owner is None else getattr(found, owner), name, change)(patch)

    return plant


def by_parameter(original):
    def _add(self, sums):
        held = self._parameters
        try:
            for total, p in zip(sums, held, strict=True):
                self._parameters = [p]
                original(self, [total])
        finally:
            self._parameters = held

    return _add


def to_nearest(patch):
    torch = import_module("torch")
    patch.setattr(torch, "trunc", torch.round)


def by_the_batch(patch):
    steps, seen = adapter("torch_steps"), [1.0]
    units = steps.PrivateSteps.units

    def noting(self, batch):
        seen[0] = float(max(len(batch), 1))
        return units(self, batch)

    patch.setattr(steps.PrivateSteps, "units", noting)
    patch.setattr(steps, "average", lambda sampler: seen[0])


def never_lost(original):
    return lambda norms, bounds: (bounds / (norms + 1e-6)).clamp(max=1.0)


def free_after_the_first(original):
    return lambda self, noise: original(self, noise) if self._noise is None else None


def first_pass_only(original):
    def iterate(self):
        try:
            yield from original(self)
        finally:
            self.ledger = None

    return iterate


def whatever_was_saved(original):
    def resume(self, saved):
        self.ledger = import_module("accountant").Accountant.from_json(saved)

    return resume


def waiting_ignored(patch):
    draws = adapter("_opacus_draws").Draws
    take = draws.take

    def careless(self, rows):
        self.ahead = 10**6
        return take(self, rows)

    patch.setattr(draws, "take", careless)
    patch.setattr(draws, "_left_out", lambda self, other: False)


def exact_norm(original):
    def made(self, *given, **named):
        original(self, *given, **named)
        self._excess = 1.0

    return made


def nothing(original):
    return lambda *given: None


BUGS = (
    Named(
        "torch-clipped-by-parameter",
        "every parameter's gradient is clipped by itself, to the norm of all",
        method("torch_steps", "PrivateSteps", "_add", by_parameter),
        "adapters/test_torch_steps.py::test_all_parameters_of_a_unit_share_one_norm",
        needs="torch",
    ),
    Named(
        "torch-rounded-to-nearest",
        "a clipped gradient is rounded to the nearest point of the grid",
        to_nearest,
        "adapters/test_torch_steps.py::test_what_a_unit_adds_is_never_longer_than_the_norm",
        needs="torch",
    ),
    Named(
        "torch-half-noise",
        "PyTorch steps add half of their noise",
        method(
            "torch_steps",
            "PrivateSteps",
            "_noise",
            lambda original: lambda self, like: original(self, like) // 2,
        ),
        "adapters/test_torch_steps.py::test_the_noise_is_that_of_the_multiplier_and_the_batch_is_divided_by_its_average",
        needs="torch",
    ),
    Named(
        "torch-realised-mean",
        "PyTorch steps are divided by the size of the batch that came up",
        by_the_batch,
        "adapters/test_torch_steps.py::test_a_step_is_divided_by_a_public_number",
        needs="torch",
    ),
    Named(
        "torch-gradients-pile-up",
        "a unit's gradient is added to that of the unit before it",
        method("torch_steps", "PrivateSteps", "_clear", nothing),
        "adapters/test_torch_steps.py::test_a_unit_more_moves_the_sum_by_what_it_adds_and_by_nothing_else",
        needs="torch",
    ),
    Named(
        "torch-norm-as-computed",
        "a norm is taken for exact as it was computed",
        method("torch_steps", "PrivateSteps", "__init__", exact_norm),
        "adapters/test_torch_steps.py::test_the_norm_is_widened_by_what_its_sum_may_lose",
        needs="torch",
    ),
    Named(
        "torch-noise-may-fall",
        "the noise of a run that is charged as a whole may fall",
        method("_observer", "Run", "to_charge", free_after_the_first),
        "adapters/test_observer.py::test_a_run_is_charged_whole_and_its_noise_may_not_fall",
    ),
    Named(
        "torch-second-pass-free",
        "a batch sampler charges its first pass alone",
        method("torch_batches", "BatchSampler", "__iter__", first_pass_only),
        "adapters/test_torch_batches.py::test_a_run_is_charged_before_its_first_batch",
        needs="torch",
    ),
    Named(
        "torch-resume-forgets",
        "a checkpoint replaces a ledger that holds more",
        method("_torch_training", "Training", "resume", whatever_was_saved),
        "adapters/test_transformers.py::test_a_resumed_run_goes_on_with_its_ledger",
        needs="transformers",
    ),
    Named(
        "opacus-nominal-rate",
        "coins are accounted at the nominal rate where theirs is larger",
        method(
            "_opacus_draws",
            None,
            "_probability",
            lambda original: lambda rate, *given: min(rate, original(rate, *given)),
        ),
        "adapters/test_opacus_coins.py::test_the_probability_is_the_share_of_all_words_that_a_sampler_takes",
        needs="opacus",
    ),
    Named(
        "opacus-norm-of-the-noise",
        "the noise is counted in the norm that it was drawn for, not in that of the clipping",
        method(
            "_opacus_steps",
            None,
            "_multiplier",
            lambda original: lambda optimizer, bound: float(optimizer.noise_multiplier),
        ),
        "adapters/test_opacus_steps.py::test_what_a_step_did_is_what_is_recorded",
        needs="opacus",
    ),
    Named(
        "opacus-batches-left-out",
        "batches that no step uses are not noticed",
        waiting_ignored,
        "adapters/test_opacus_steps.py::test_what_has_no_account_is_refused",
        needs="opacus",
    ),
    Named(
        "opacus-same-noise-again",
        "a generator in a state that it had before is not noticed",
        method("_opacus_draws", "States", "use", nothing),
        "adapters/test_opacus_coins.py::test_noise_that_comes_again_is_refused",
        needs="opacus",
    ),
    Named(
        "opacus-penalty-unclipped",
        "a loss that depends on parameters outside their layers is not noticed",
        method("_opacus_ghost", None, "_refuse_other_gradients", nothing),
        "adapters/test_opacus_ghost.py::test_what_ghost_clipping_does_not_clip_is_refused",
        needs="opacus",
    ),
    Named(
        "units-share-their-masks",
        "a model draws every unit's masks from one stream",
        method("_torch_observer", "Randomness", "fresh", nothing),
        "adapters/test_torch_units_apart.py::test_every_other_unit_adds_the_same_bits",
        needs="torch",
    ),
    Named(
        "kept-unseen",
        "what a model keeps of a batch is not looked at",
        method("_torch_observer", "Contents", "moved", nothing),
        "adapters/test_torch_units_apart.py::test_a_model_that_keeps_something_is_refused",
        needs="torch",
    ),
    Named(
        "batches-spent-again",
        "a batch may be used again",
        method("_observer", "Run", "spend", nothing),
        "adapters/test_observer.py::test_batches_are_spent_once_and_in_their_order",
    ),
    Named(
        "opacus-known-seed",
        "opacus draws from the seed that the user set",
        method("opacus", None, "reseed", lambda original: dict),
        "adapters/test_opacus_apart.py::test_masks_come_from_the_system_whatever_the_seed",
        needs="opacus",
    ),
    Named(
        "opacus-no-number-for-all",
        "a record that is no number makes the sum of all records none",
        method("_opacus_clipping", None, "factors", never_lost),
        "adapters/test_opacus_apart.py::test_no_record_decides_whether_training_goes_on",
        needs="opacus",
    ),
)

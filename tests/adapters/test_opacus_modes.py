"""Modes of Opacus 1.6: models without a wrapper, mixed precision, tensor parallelism."""

import copy
import re
import warnings

import pytest

import accountant as ac
from support.opacus_runs import QUIET, opacus, torch
from support.opacus_twins import DataLoader, TensorDataset, make, records, twins

pytestmark = QUIET

# Each way in which Opacus' hooks stand on a model that it does not wrap.
UNWRAPPED = pytest.mark.parametrize("mode", ["hooks", "functorch", "ghost"])


def plain(made):
    for _ in range(6):
        for x, y in made.loader:
            made.step(x, y)


def in_parts(made):
    with made.parts(7) as loader:
        for x, y in loader:
            made.step(x, y)


@UNWRAPPED
@pytest.mark.parametrize("loop", [plain, in_parts])
def test_a_model_without_a_wrapper_is_watched(loop, mode, monkeypatch):
    done = twins(loop, monkeypatch, wrap_model=False, grad_sample_mode=mode)
    assert done.refused is None
    assert done.inner.updates == len(done.rows) > 3
    assert type(done.model) is torch.nn.Sequential


def left_out(made):
    for at, (x, y) in enumerate(made.loader):
        if at != 2:
            made.step(x, y)


def sum_changed(made):
    for at, (x, y) in enumerate(made.loader):
        made.backward(x, y)
        if at == 2:
            for p in made.optimizer.params:
                p.summed_grad = torch.ones_like(p)
        made.optimizer.step()


def remembers(made):
    made.model.register_buffer("last", torch.zeros(1))

    def keep(module, _, out):
        module.last.copy_(out.sum().detach())

    made.model.register_forward_hook(keep)
    plain(made)


@UNWRAPPED
@pytest.mark.parametrize(
    ("loop", "reason"),
    [(left_out, "left out"), (sum_changed, "summed_grad"), (remembers, "last changed")],
)
def test_what_is_refused_with_a_wrapper_is_refused_without(loop, reason, mode, monkeypatch):
    done = twins(loop, monkeypatch, wrap_model=False, grad_sample_mode=mode)
    assert re.search(reason, done.refused or ""), done.refused
    assert done.inner.updates == len(done.rows)


def test_two_runs_on_one_model_without_a_wrapper():
    made = make(records(100, True), wrap_model=False)
    plain(made)
    made.optimizer.accountant_watch.module.cleanup()
    engine = opacus.PrivacyEngine(accountant="exact")
    _, optimizer, loader = engine.make_private(
        module=made.model,
        optimizer=made.optimizer,
        data_loader=made.plain,
        noise_multiplier=4.0,
        max_grad_norm=1.0,
        wrap_model=False,
    )
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(made.model(x), y).backward()
        optimizer.step()
    assert len(engine.accountant) == 5


def test_weights_that_do_not_change_are_told():
    made = make(records(100, True), noise_multiplier=1.0)  # the learning rate is 0
    with pytest.warns(UserWarning, match="did not change in two steps"):
        plain(made)
    for group in made.optimizer.param_groups:
        group["lr"] = 0.1
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        plain(made)
    assert not [each for each in told if "did not change" in str(each.message)]


# Half precision.


def autocast(made):
    for x, y in made.loader:
        made.optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = made.loss(x, y)
        loss.backward()
        made.optimizer.step()


@pytest.mark.parametrize("options", [{}, {"wrap_model": False}, {"clipping": "per_layer"}])
def test_mixed_precision_is_clipped_in_float32(options, monkeypatch):
    if "clipping" in options:
        options = {**options, "max_grad_norm": [0.6, 0.8], "layers": 2}
    # The check of the twins: no record moves a sum by more than 1e-5 over the norm.
    done = twins(autocast, monkeypatch, **options)
    assert done.refused is None
    assert done.inner.updates == len(done.rows) == 5


@pytest.mark.parametrize("options", [{}, {"wrap_model": False}])
def test_norms_of_half_precision_are_refused(options, monkeypatch):
    done = twins(autocast, monkeypatch, grad_sample_mode="ghost", **options)
    assert re.search("norms of bfloat16", done.refused or ""), done.refused
    assert done.inner.updates == len(done.rows) == 0


def test_one_layer_of_half_precision_is_enough():
    made = make(records(100, True), layers=2, grad_sample_mode="ghost")
    last = made.model._module[-1]
    last.forward = torch.autocast("cpu", dtype=torch.bfloat16)(last.forward)
    with pytest.raises(ac.UnsupportedError, match="norms of bfloat16"):
        plain(made)
    assert made.inner.updates == len(made.rows) == 0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_parameters_of_half_precision_are_refused(dtype):
    model = torch.nn.Linear(3, 1).to(dtype)
    data = TensorDataset(torch.randn(60, 3, dtype=dtype), torch.randn(60, 1, dtype=dtype))
    engine = opacus.PrivacyEngine(accountant="exact")
    options = {
        "module": model, "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
        "data_loader": DataLoader(data, batch_size=10), "noise_multiplier": 1.0,
        "max_grad_norm": 1.0,
    }  # fmt: skip
    kept = copy.deepcopy(vars(model))
    with pytest.raises(ac.UnsupportedError, match="float32 or float64; got"):
        engine.make_private(**options)
    assert vars(model).keys() == kept.keys()


def test_tensor_parallelism_is_refused_by_name():
    model = torch.nn.Linear(3, 1)
    options = {
        "module": model, "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
        "data_loader": DataLoader(TensorDataset(torch.randn(60, 3)), batch_size=10),
        "noise_multiplier": 1.0, "max_grad_norm": 1.0,
    }  # fmt: skip
    with pytest.raises(ac.UnsupportedError, match="tensor parallelism"):
        opacus.PrivacyEngine(accountant="exact").make_private(
            **options, grad_sample_mode="ghost_tp", wrap_model=False
        )
    model.weight.to_local = lambda: model.weight  # as a parameter that is in parts has
    with pytest.raises(ac.UnsupportedError, match="ghost_fsdp"):
        opacus.PrivacyEngine(accountant="exact").make_private(**options)

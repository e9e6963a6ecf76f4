"""Every event that JAX Privacy makes is accounted for, or refused by name; skipped without it."""

import inspect

import pytest

pytest.importorskip("dp_accounting")
pytest.importorskip("jax_privacy")
from dp_accounting import NeighboringRelation

import accountant as ac
from accountant.adapters.dp_events import ExactAccountant

# The makers of events have moved.
accounting = next(
    module
    for module in map(
        pytest.importorskip, ("jax_privacy.accounting", "jax_privacy.experimental.accounting")
    )
    if hasattr(module, "dpsgd_event")
)

pytestmark = pytest.mark.filterwarnings("ignore")

DELTA = 1e-5
MAKERS = {name for name in vars(accounting) if name.endswith("_event") and name[0] != "_"}
TRUNCATED = {"sampling_prob": 0.05, "truncated_batch_size": 80}
# Name, arguments, and the relations under which there is a theorem.
MADE = [
    ("dpsgd_event", {"sampling_prob": 0.05}, "add replace special"),
    ("dpsgd_event", {"sampling_prob": 0.05, "use_zcdp": True}, "add"),
    ("fixed_dpsgd_event", {"dataset_size": 1000, "batch_size": 50}, "replace special"),
    (
        "fixed_dpsgd_event",
        {"dataset_size": 1000, "batch_size": 50, "replace": True},
        "add replace",
    ),
    ("truncated_dpsgd_event", {"num_examples": 1000, **TRUNCATED}, "add replace special"),
    ("amplified_bandmf_event", {"num_bands": 4, "sampling_prob": 0.05}, "add replace special"),
    (
        "truncated_amplified_bandmf_event",
        {"num_bands": 4, "largest_group_size": 250, **TRUNCATED},
        "add replace special",
    ),
]
RELATIONS = {
    "add": NeighboringRelation.ADD_OR_REMOVE_ONE,
    "replace": NeighboringRelation.REPLACE_ONE,
    "special": NeighboringRelation.REPLACE_SPECIAL,
}


def test_no_maker_of_events_is_forgotten():
    assert {name for name, _, _ in MADE} >= MAKERS


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("name", "given", "covered"), MADE, ids=lambda part: str(part)[:30])
def test_events_are_covered_or_refused(name, given, covered, relation):
    maker = getattr(accounting, name, None)
    if maker is None or not given.keys() <= inspect.signature(maker).parameters.keys():
        pytest.skip("this version of JAX Privacy does not make it")
    event = maker(1.5, 40, **given)
    accountant = ExactAccountant(RELATIONS[relation])
    assert accountant.supports(event) == (relation in covered)
    if relation in covered:
        accountant.compose(event)
        assert 0.0 < accountant.get_epsilon(DELTA) < 20.0
    if name == "dpsgd_event" and relation == "add" and "use_zcdp" not in given:
        assert accountant.get_epsilon(DELTA) == ac.get_epsilon(0.05, 1.5, 40, DELTA)

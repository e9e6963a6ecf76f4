"""Every event that JAX Privacy makes is accounted for, or refused by name; skipped without it."""

import copy
import inspect
import re
from pathlib import Path

import pytest

pytest.importorskip("dp_accounting")
pytest.importorskip("jax_privacy")
import dp_accounting
import jax_privacy
import numpy as np
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
    ("fixed_dpsgd_event", {"dataset_size": 1000, "batch_size": 50, "replace": True}, "add replace"),
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


# The docstring of the module that makes the events: 3.77 by dp-accounting's loss distributions.
THEIRS = {"noise_multiplier": 3.0, "iterations": 512, "sampling_prob": 0.1}


def test_the_event_of_their_own_docstring():
    event = accounting.dpsgd_event(**THEIRS)
    found = ExactAccountant().compose(event).get_epsilon(1e-6)
    own = dp_accounting.pld.PLDAccountant().compose(event).get_epsilon(1e-6)
    assert round(own, 2) == 3.77
    assert 3.76 < found <= own


def test_a_calibration_gets_an_accountant_of_a_relation():
    # What a plan of JAX Privacy's head does with its accountant_fn, and 2.0.0 with copies of one.
    def calibrated(fresh):
        return dp_accounting.calibrate_dp_mechanism(
            fresh, lambda sigma: accounting.dpsgd_event(sigma, 512, sampling_prob=0.1), 1.0, 1e-6
        )

    relation = NeighboringRelation.ADD_OR_REMOVE_ONE
    noise = calibrated(lambda: ExactAccountant(relation))
    assert noise == calibrated(lambda: copy.deepcopy(ExactAccountant(relation)))
    assert noise <= calibrated(dp_accounting.pld.PLDAccountant) * (1 + 1e-6)
    event = accounting.dpsgd_event(noise, 512, sampling_prob=0.1)
    assert ExactAccountant().compose(event).get_epsilon(1e-6) <= 1.0


def test_a_copy_has_the_releases_and_is_another():
    one = ExactAccountant(NeighboringRelation.REPLACE_SPECIAL)
    one.compose(dp_accounting.GaussianDpEvent(2.0), 3)
    other = copy.deepcopy(one)
    assert other.get_epsilon(DELTA) == one.get_epsilon(DELTA)
    assert other.neighboring_relation is one.neighboring_relation
    other.compose(dp_accounting.NonPrivateDpEvent())
    assert other.get_epsilon(DELTA) == np.inf > one.get_epsilon(DELTA)
    assert (other.ledger == one.ledger) is False


def test_the_plan_of_the_newest_release_takes_it():
    plans = pytest.importorskip("jax_privacy.experimental.execution_plan")
    if not hasattr(plans, "BandMFExecutionPlanConfig"):
        pytest.skip("this version of JAX Privacy has another plan")
    config = {
        "iterations": 40, "strategy": np.array([1.0, 0.5]), "epsilon": 2.0, "delta": DELTA,
        "sampling_prob": 0.1,
    }  # fmt: skip
    noises = [
        plans.BandMFExecutionPlanConfig(**config, accountant=kind(RELATIONS["special"])).plan
        for kind in (ExactAccountant, dp_accounting.pld.PLDAccountant)
    ]
    mine, own = (each.dp_event.event.event.noise_multiplier for each in noises)
    assert 0.5 * own < mine <= own * (1 + 1e-6)


def test_the_plan_of_the_head_takes_it():
    plans = pytest.importorskip("jax_privacy.execution_plan")
    config = plans.BandMFConfig(
        iterations=40, expected_participations=2.0, strategy=np.array([1.0, 0.5])
    )
    mine = config.calibrate(epsilon=2.0, delta=DELTA, accountant_fn=ExactAccountant)
    own = config.calibrate(epsilon=2.0, delta=DELTA)
    assert 0.5 * own.noise_multiplier < mine.noise_multiplier <= own.noise_multiplier * (1 + 1e-6)


def test_the_class_on_the_page_serves_the_newest_release():
    if not hasattr(jax_privacy.accounting, "DpAccountantConfig"):
        pytest.skip("this version of JAX Privacy takes accountant_fn")
    page = (Path(__file__).parents[2] / "docs/adapters.md").read_text()
    (block,) = re.findall(r"```python\n(import jax_privacy.*?)```", page, re.DOTALL)
    names = {"ExactAccountant": ExactAccountant}
    exec(block, names)
    training = jax_privacy.accounting
    params = training.DpParams(num_samples=1000, batch_size=100, delta=1e-6, noise_multipliers=3.0)
    exact, own = (
        training.DpsgdTrainingAccountant(config).compute_epsilon(512, params)
        for config in (names["ExactConfig"](), training.PldAccountantConfig())
    )
    assert exact == ac.get_epsilon(0.1, 3.0, 512, 1e-6)
    assert exact <= own * (1 + 1e-9)

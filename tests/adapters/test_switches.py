"""The table of docs/adapters.md: each row is run, and written, where its framework is installed.

WRITE_SWITCHES=1 pytest tests/adapters/test_switches.py   rewrites the rows of an environment
"""

import os
import re
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import pytest

import accountant as ac

PAGE = Path(__file__).parents[2] / "docs" / "adapters.md"
DELTA = 1e-5
RATE, NOISE, STEPS = 0.01, 1.1, 1000
pytestmark = pytest.mark.filterwarnings("ignore")


def exact():
    return ac.get_epsilon(RATE, NOISE, STEPS, DELTA)


def callback():
    from accountant.adapters.torch_batches import step_of
    from accountant.sampling import PoissonSampler

    sampler = PoissonSampler(dataset_size=10_000, sampling_probability=RATE, steps=STEPS)
    return None, (STEPS * step_of(sampler, NOISE)).epsilon(DELTA)


def nvflare():
    from accountant.adapters.nvflare import PrivateFedAvg

    controller = PrivateFedAvg("federation", {}, STEPS, NOISE, 1.0, sampling_probability=RATE)
    return None, (STEPS * controller.noise().mechanism(1)).epsilon(DELTA)


def opacus():
    import opacus.accountants

    found = []
    for name in ("prv", "exact"):
        one = opacus.accountants.create_accountant(name)
        one.history = [(NOISE, RATE, STEPS)]
        found.append(one.get_epsilon(DELTA))
    return found


def flower(method, relation, noise, rounds):
    from flwr import serverapp

    from accountant.adapters.flower_accountant import ExactAccountant

    config = serverapp.PrivacyConfig(
        DELTA, 10_000, serverapp.NeighboringRelation(relation), serverapp.SamplingMethod(method)
    )
    found = []
    for one in (
        serverapp.RdpAccountant(config),
        ExactAccountant(config, noise_over="clipping norm"),
    ):
        one.compose(serverapp.GaussianPrivacyEvent(noise, 100, 10_000), rounds)
        found.append(one.get_epsilon(DELTA))
    return found


def flower_full():
    return flower("no-amplification", "add-or-remove-one", 4.0, 100)


def flower_poisson():
    return flower("poisson", "add-or-remove-one", 1.0, 500)


def flower_without():
    return flower("without-replacement", "replace-one", 1.0, 500)


def dp_events():
    import dp_accounting as dp

    from accountant.adapters.dp_events import ExactAccountant

    step = dp.PoissonSampledDpEvent(RATE, dp.GaussianDpEvent(NOISE))
    accountants = (dp.pld.PLDAccountant(), ExactAccountant())
    return [one.compose(step, STEPS).get_epsilon(DELTA) for one in accountants]


def pfl():
    from pfl.privacy.privacy_accountant import PLDPrivacyAccountant

    from accountant.adapters.pfl import ExactPrivacyAccountant

    return [
        kind(
            num_compositions=STEPS, sampling_probability=RATE, mechanism="gaussian",
            noise_parameter=NOISE, delta=DELTA,
        ).epsilon
        for kind in (PLDPrivacyAccountant, ExactPrivacyAccountant)
    ]  # fmt: skip


def tensorflow_privacy():
    from adapters.test_other_frameworks import theirs

    pytest.importorskip("dp_accounting")  # which its module imports
    library = theirs("tensorflow_privacy", "privacy/analysis/compute_dp_sgd_privacy_lib.py")
    return library.compute_dp_sgd_privacy(60_000, 600, NOISE, 10, DELTA)[0], exact()


def nemo():
    privacy_args = pytest.importorskip("nemo_safe_synthesizer.privacy.dp_transformers.privacy_args")
    own = privacy_args.SafeSynthesizerAccountant(True, NOISE, RATE, DELTA, STEPS)
    return own.compute_epsilon(STEPS), exact()


UNITS = "units, batches, model's contents, generators, charges"
CALLBACK = "`PrivacyCallback(units, σ, norm, delta=δ).attach(trainer)`"
# Framework and run; its distribution; the line of a switch; what is watched; what is refused; the
# numbers before and after. The run is σ = 1.1, q = 0.01, 1,000 steps, unless the name says another.
ROWS = [
    (
        "Opacus", "opacus", "`PrivacyEngine(accountant=\"exact\")`",
        "batches, norms, sums, noise, contents, updates; `wrap_model=False`, FSDP2, autocast too",
        "skipped or joined batches, adaptive clipping, half-precision norms, tensor parallelism",
        opacus,
    ),
    (
        "Flower, σ = 4, 100 rounds in full", "flwr", "`accountant=ExactAccountant(config)`",
        "budget, rounds on the disk", "states that forget rounds; another population", flower_full,
    ),
    (
        "Flower, Poisson, σ = 1, 500 rounds", "flwr", "`ExactAccountant(config)`",
        "no strategy uses it yet", "as above", flower_poisson,
    ),
    (
        "Flower, 100 of 10,000 without replacement, σ = 1, 500 rounds", "flwr",
        "`ExactAccountant(config, noise_over=\"clipping norm\")`", "no strategy uses it yet",
        "a config that does not say what the noise is over", flower_without,
    ),
    (
        "dp-accounting", "dp-accounting", "`ExactAccountant()` of `dp_events`", "events",
        "events without a theorem", dp_events,
    ),
    (
        "JAX Privacy", "jax_privacy",
        "`ExactConfig()`; at its head `accountant_fn=ExactAccountant`", "events",
        "events without a theorem", dp_events,
    ),
    ("Hugging Face", "transformers", CALLBACK, UNITS, "FSDP, DeepSpeed, fp16, lomo", callback),
    (
        "PEFT", "peft", CALLBACK, "as above; adapters alone are trained and saved", "as above",
        callback,
    ),
    (
        "TRL (SFT, DPO)", "trl", CALLBACK, "as above; padding-free batches are a unit's",
        "packing, shuffling, KTO, GRPO, RLOO and others whose losses pair records", callback,
    ),
    (
        "Lightning", "lightning", "`callbacks=[PrivacyCallback(units, sampler, σ, norm, delta=δ)]`",
        UNITS, "several processes, 16-bit scaling, manual optimisation", callback,
    ),
    (
        "NVFlare", "nvflare", "`PrivateFedAvg(directory, budgets, …)` for `FedAvg`",
        "rounds, clients' budgets on the disk", "directories in use, or older than charges",
        nvflare,
    ),
    (
        "pfl", "pfl", "`ExactPrivacyAccountant(…)` for `PLDPrivacyAccountant`", "numbers",
        "`noise_scale` other than 1", pfl,
    ),
    (
        "TensorFlow Privacy", "tensorflow-privacy", "`get_epsilon(q, σ, steps, δ)`", "numbers", "",
        tensorflow_privacy,
    ),
    (
        "NeMo Safe Synthesizer", "nemo-safe-synthesizer",
        "`get_epsilon`, `calibrate_sigma` for `prv_accountant`", "numbers", "", nemo,
    ),
]  # fmt: skip


def text(value):
    return "none" if value is None else f"{value:.4f}"


def newer(one, other):
    return [int(x) for x in re.findall(r"\d+", one)] > [int(x) for x in re.findall(r"\d+", other)]


def installed(distribution):
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_the_row_is_what_the_framework_does(row):
    name, distribution, switch, watched, refused, run = row
    found = installed(distribution)
    if found is None:
        pytest.skip(f"{distribution} is not installed")
    if distribution == "flwr" and not find_spec("dp_accounting"):
        pytest.skip("Flower's own accountant needs dp-accounting")
    pattern = re.compile(rf"^\|{re.escape(name)} \|.*\|$", re.MULTILINE)
    (stated,) = pattern.findall(PAGE.read_text(encoding="utf-8"))
    if newer(stated.split(" |")[1], found):
        pytest.skip(f"another package holds {distribution} at {found}")
    own, ours = run()
    cells = (name, found, switch, watched, refused, text(own), text(ours))
    made = f"|{' |'.join(cells)}|"
    if os.environ.get("WRITE_SWITCHES"):
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(pattern.sub(lambda _: made, page), encoding="utf-8")
    (line,) = pattern.findall(PAGE.read_text(encoding="utf-8"))
    assert line == made
    below = "without replacement" in name  # theirs is below the truth, as the page says
    if own is not None:
        assert (ours > own) == below


def test_the_page_has_every_row_and_no_other():
    table = PAGE.read_text(encoding="utf-8").split("## One line each")[1].split("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("|")]
    assert [line.split(" |")[0].removeprefix("|") for line in lines[2:]] == [row[0] for row in ROWS]

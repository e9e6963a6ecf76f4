"""pfl's accountant, and the numbers of TensorFlow Privacy and NeMo; each skipped without it."""

import importlib.util
from pathlib import Path

import pytest

import accountant as ac
from accountant.errors import DomainError, UnsupportedError
from support.scripts import script

DELTA = 1e-5
RATE, NOISE, STEPS = 0.01, 1.1, 1000
pytestmark = pytest.mark.filterwarnings("ignore")


def theirs(package, path):
    """Return a module of a package whose parents need what is not installed here."""
    found = importlib.util.find_spec(package)
    if found is None:
        pytest.skip(f"{package} is not installed")
    return script(Path(found.submodule_search_locations[0]) / path)


def test_pfl_takes_the_accountant():
    pytest.importorskip("pfl")
    from pfl.privacy.gaussian_mechanism import GaussianMechanism
    from pfl.privacy.privacy_accountant import PLDPrivacyAccountant

    from accountant.adapters.pfl import ExactPrivacyAccountant

    run = {"num_compositions": STEPS, "sampling_probability": RATE, "mechanism": "gaussian"}
    own, exact = (
        kind(**run, noise_parameter=NOISE, delta=DELTA)
        for kind in (PLDPrivacyAccountant, ExactPrivacyAccountant)
    )
    assert exact.epsilon == ac.get_epsilon(RATE, NOISE, STEPS, DELTA) <= own.epsilon
    assert own.epsilon == pytest.approx(exact.epsilon, rel=1e-3)
    exact = ExactPrivacyAccountant(**run, epsilon=2.0, delta=DELTA)
    assert (STEPS * ac.PoissonSampled(ac.Gaussian(exact.noise_parameter), RATE)).epsilon(DELTA) <= 2
    assert exact.noise_parameter <= PLDPrivacyAccountant(
        **run, epsilon=2.0, delta=DELTA
    ).noise_parameter * (1 + 1e-3)
    mechanism = GaussianMechanism.from_privacy_accountant(accountant=exact, clipping_bound=0.5)
    assert mechanism.relative_noise_stddev == exact.noise_parameter
    found = ExactPrivacyAccountant(**run, noise_parameter=NOISE, epsilon=1.0)
    assert found.delta == ac.get_delta(RATE, NOISE, STEPS, 1.0)
    laplace = ExactPrivacyAccountant(
        num_compositions=3, sampling_probability=1.0, mechanism="Laplace", noise_parameter=2.0,
        delta=DELTA,
    )  # fmt: skip
    assert laplace.epsilon == (3 * ac.Laplace(2.0)).epsilon(DELTA)
    ExactPrivacyAccountant(**run, noise_parameter=NOISE, epsilon=2.0, delta=DELTA)
    with pytest.raises(DomainError, match="epsilon must be at least"):
        ExactPrivacyAccountant(**run, noise_parameter=NOISE, epsilon=1.0, delta=DELTA)
    with pytest.raises(UnsupportedError, match="noise_scale"):
        ExactPrivacyAccountant(**run, noise_parameter=NOISE, delta=DELTA, noise_scale=0.5)


def test_the_numbers_of_tensorflow_privacy():
    pytest.importorskip("dp_accounting")
    path = "privacy/analysis/compute_dp_sgd_privacy_lib.py"
    library = theirs("tensorflow_privacy", path)
    # 60,000 records in batches of 600, for ten epochs.
    epsilon, _ = library.compute_dp_sgd_privacy(60_000, 600, NOISE, 10, DELTA)
    assert ac.get_epsilon(RATE, NOISE, STEPS, DELTA) < epsilon < 2.5
    assert epsilon == pytest.approx(1.7253, abs=1e-3)


def test_the_numbers_of_nemo():
    pytest.importorskip("prv_accountant")
    library = pytest.importorskip("nemo_safe_synthesizer.privacy.dp_transformers.privacy_args")
    accountant = library.SafeSynthesizerAccountant(True, NOISE, RATE, DELTA, STEPS)
    exact = ac.get_epsilon(RATE, NOISE, STEPS, DELTA)
    assert exact <= accountant.compute_epsilon(STEPS) <= exact * 1.1
    noise = library.prv_find_noise_multiplier(
        sampling_probability=RATE, num_steps=STEPS, target_epsilon=2.0, target_delta=DELTA
    )
    assert ac.calibrate_sigma(2.0, DELTA, RATE, STEPS) <= noise

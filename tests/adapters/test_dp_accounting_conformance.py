"""dp-accounting's own tests of accountants, run on the adapter in place of its two accountants.

The wheel of dp-accounting ships them: 13 of the base class, 68 of the accountant of loss
distributions, 142 of that of Rényi divergences. What fails is listed, each with the theorem that
gives the answer which the test denies, or with the reason why it does not apply;
docs/adapters.md has the same list.
"""

import re
import types
import unittest
from pathlib import Path

import pytest

dp = pytest.importorskip("dp_accounting")
pytest.importorskip("absl.testing")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning")

PAGE = Path(__file__).parents[2] / "docs/adapters.md"
# Test, a part of its parameters, and the theorem or the reason, as on the page.
DENIED = (
    ("test_composition_errors_for_neighboring_relation", "(LaplaceDpEvent", "M5"),
    ("test_composition_errors_for_neighboring_relation", "(PoissonSampledDpEvent", "E2"),
    ("test_composition_errors_for_neighboring_relation", "(DiscreteLaplaceDpEvent", "M13"),
    ("test_composition_errors_for_neighboring_relation", "(PermuteAndFlipDpEvent", "E10"),
    ("test_poisson_subsampling_laplace_not_supported_for_replace_one", "", "E2"),
    (
        "test_additive_noise_mechanisms_with_zero_noise_multiplier",
        "event=GaussianDpEvent(noise_multiplier=0)",
        "M6",
    ),
    (
        "test_additive_noise_mechanisms_with_zero_noise_multiplier",
        "event=LaplaceDpEvent(noise_multiplier=0)",
        "M6",
    ),
    ("test_truncated_subsampled_gaussian_basic", "", "S13"),
    ("test_supports", "rdp_privacy_accountant_test", "E7"),
    ("test_tree_wrong_neighbor_rel_replace", "", "E6"),
    ("test_epsilon_delta_consistency", "", "M6"),
    ("test_laplace_repetition", "", "M1"),
    ("test_log_a_frac_early_termination", "", "no series"),
    ("test_compute_rdp_tree_restart_raise", "", "refused"),
    ("test_raises_on_invalid", "", "refused"),
    ("test_repeat_and_select_gaussian_poisson", "_large ", "10^9"),
    ("test_repeat_and_select_pure_poisson", "10^10", "10^9"),
)
# They read private fields that only an accountant of Rényi divergences has.
PRIVATE = re.compile("has no attribute '_(rdp|orders)'")


def run(module, tests, ours):
    """Run a test class with ``ours`` in place; return (identifier, last words) of what failed."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tests, module.__name__.split(".")[-1], ours)
        kind = next(
            kind
            for kind in vars(tests).values()
            if isinstance(kind, type) and issubclass(kind, unittest.TestCase)
        )
        suite = unittest.defaultTestLoader.loadTestsFromTestCase(kind)
        every = [str(test) for test in suite]
        result = unittest.TestResult()
        suite.run(result)
    return every, [(str(test), said) for test, said in (*result.failures, *result.errors)]


@pytest.fixture(scope="module")
def loss_distributions():
    from dp_accounting.pld import pld_privacy_accountant, pld_privacy_accountant_test

    from accountant.adapters.dp_events import ExactAccountant

    ours = types.SimpleNamespace(**vars(pld_privacy_accountant))
    ours.PLDAccountant = ExactAccountant
    return run(pld_privacy_accountant, pld_privacy_accountant_test, ours)


@pytest.fixture(scope="module")
def divergences():
    from dp_accounting.rdp import rdp_privacy_accountant, rdp_privacy_accountant_test

    from accountant.adapters.dp_events import ExactAccountant

    class WithOrders(ExactAccountant):
        """Takes the orders that theirs takes, and needs none."""

        def __init__(
            self, orders=None, neighboring_relation=dp.NeighboringRelation.ADD_OR_REMOVE_ONE
        ):
            super().__init__(neighboring_relation)

    ours = types.SimpleNamespace(**vars(rdp_privacy_accountant))
    ours.RdpAccountant = WithOrders
    return run(rdp_privacy_accountant, rdp_privacy_accountant_test, ours)


@pytest.mark.parametrize("suite", ["loss_distributions", "divergences"])
def test_all_that_apply_pass_but_those_that_a_theorem_denies(suite, request):
    every, failed = request.getfixturevalue(suite)
    assert len(every) >= {"loss_distributions": 68, "divergences": 142}[suite]
    left = {name for name, said in failed if not PRIVATE.search(said)}
    for name, part, _ in DENIED:
        there = {one for one in every if name in one and part in one}
        # Whoever makes one of them pass finds its row here.
        assert there <= left, (name, part)
        left -= there
    assert left == set()


@pytest.mark.parametrize("suite", ["loss_distributions", "divergences"])
def test_those_of_the_base_class_all_pass(suite, request):
    every, failed = request.getfixturevalue(suite)
    from dp_accounting import privacy_accountant_test

    base = vars(privacy_accountant_test.PrivacyAccountantTest)
    inherited = tuple(name.rstrip("0123456789") for name in base if name.startswith("test_"))
    ran = {one for one in every if one.startswith(inherited)}
    assert len(ran) >= 13
    assert not ran & {name for name, _ in failed}


def test_the_page_lists_the_exceptions():
    listed = re.search(r"## Conformance\n(.*?)\n## ", PAGE.read_text() + "\n## ", re.S)[1]
    for name, _, reason in DENIED:
        assert f"`{name}" in listed
        assert reason in listed

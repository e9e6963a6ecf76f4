"""dp-accounting's own tests of accountants, run on the adapter: 13 of the base class, 68 of PLD's.

The wheel of dp-accounting ships them. What fails is listed, each with the theorem that gives the
answer which the test denies; docs/adapters.md has the same list.
"""

import re
import types
import unittest
from pathlib import Path

import pytest

pytest.importorskip("dp_accounting")
pytest.importorskip("absl.testing")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

PAGE = Path(__file__).parents[2] / "docs/adapters.md"
# Test, a part of its parameters, and the theorem.
DENIED = (
    ("test_composition_errors_for_neighboring_relation", "(LaplaceDpEvent", "M5"),
    ("test_composition_errors_for_neighboring_relation", "(PoissonSampledDpEvent", "E2"),
    ("test_composition_errors_for_neighboring_relation", "(DiscreteLaplaceDpEvent", "M13"),
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
)


@pytest.fixture(scope="module")
def outcomes():
    """Run every test; return the identifiers of all, and of those that failed."""
    from dp_accounting.pld import pld_privacy_accountant, pld_privacy_accountant_test

    from accountant.adapters.dp_events import ExactAccountant

    ours = types.SimpleNamespace(**vars(pld_privacy_accountant))
    ours.PLDAccountant = ExactAccountant
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pld_privacy_accountant_test, "pld_privacy_accountant", ours)
        suite = unittest.defaultTestLoader.loadTestsFromTestCase(
            pld_privacy_accountant_test.PldPrivacyAccountantTest
        )
        every = [test.id() for test in suite]
        result = unittest.TestResult()
        suite.run(result)
    return every, [test.id() for test, _ in (*result.failures, *result.errors)]


def test_all_pass_but_those_that_a_theorem_denies(outcomes):
    every, failed = outcomes
    assert len(every) >= 68
    unexplained = list(failed)
    for name, part, _ in DENIED:
        found = [one for one in unexplained if name in one and part in one]
        assert len(found) == 1, (name, part, found)
        unexplained.remove(found[0])
    assert unexplained == []


def test_those_of_the_base_class_all_pass(outcomes):
    every, failed = outcomes
    from dp_accounting import privacy_accountant_test

    base = vars(privacy_accountant_test.PrivacyAccountantTest)
    inherited = tuple(name.rstrip("0123456789") for name in base if name.startswith("test_"))
    ran = [one for one in every if one.split("PldPrivacyAccountantTest.")[1].startswith(inherited)]
    assert len(ran) >= 13
    assert not set(ran) & set(failed)


def test_the_page_lists_the_exceptions():
    listed = re.search(r"## Conformance\n(.*?)\n## ", PAGE.read_text() + "\n## ", re.S)[1]
    for name, _, theorem in DENIED:
        assert f"`{name}`" in listed
        assert theorem in listed

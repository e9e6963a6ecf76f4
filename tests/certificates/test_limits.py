"""What cannot be certified is refused with a reason, before the checker would."""

import pytest

pytest.importorskip("flint")
import accountant as ac
from accountant.certificates.claim import LONGEST_LIST, RANGES
from dp_verifier import document


def test_the_ranges_are_those_of_the_checker():
    found = {}
    for kind, given in document.KEYS.items():
        if kind.startswith("part"):
            for each in given:
                key, span = each.split(":")
                low, high = span.strip("#[]").split("..")
                found[key.rstrip("?")] = float(low), float(high)
    assert found == RANGES
    assert document.LONGEST_LIST == LONGEST_LIST


@pytest.mark.parametrize(
    ("release", "delta", "reason"),
    [
        (10 * ac.PoissonSampled(ac.Gaussian(1.0), 0.0), 1e-5, "loses nothing"),
        (3 * ac.PureDP(0.0), 1e-5, "loses nothing"),
        (ac.Gaussian(1e10), 1e-5, "sigma must be in"),
        (3 * ac.Laplace(1e-3), 1e-5, "laplace must be in"),
        (ac.Gaussian(1e-10), 0.05, "sigma must be in"),
        (3 * ac.Gaussian(1.0), 1e-300, "delta must be at least 1e-200"),
    ],
    ids=str,
)
def test_what_has_no_room_is_refused_with_a_reason(release, delta, reason):
    with pytest.raises(ac.UnsupportedError, match=reason):
        ac.certificate(release, delta)


def test_a_release_is_a_mechanism_or_a_ledger():
    with pytest.raises(ac.ArgumentTypeError, match="release must be a mechanism or an Accountant"):
        ac.certificate(None, 1e-5)

"""What mutation testing (support/hardening) found nobody watching in compositions."""

import pytest

from accountant.composition import Composition, Parallel
from accountant.errors import DomainError, UnsupportedError
from accountant.mechanisms import Gaussian, Laplace
from accountant.relations import NeighbouringRelation
from support.toy_mechanisms import Skewed


def test_directions_are_kept_apart():
    mixed = 3 * Skewed(0.25, 0.5) + Skewed(1.0, 0.125) + 2 * Skewed(0.0, 1.0)
    remove, add = mixed.pairs()
    assert remove.rdp(2.0) == 2 * (3 * 0.25 + 1.0)
    assert add.rdp(2.0) == 2 * (3 * 0.5 + 0.125 + 2.0)
    assert len((2 * Gaussian(1.0)).pairs()) == 1
    remove, add = Parallel((Skewed(0.25, 0.5), Skewed(1.0, 0.125))).pairs()
    assert (remove.rdp(2.0), add.rdp(2.0)) == (2.0, 1.0)
    assert len(Parallel((Gaussian(1.0), Gaussian(2.0))).pairs()) == 1


def test_counts_of_parts():
    a, b = Gaussian(1.0), Laplace(2.0)
    assert (a + a + 0 * b).parts == ((a, 2),)
    assert (0 * a + 0 * b).parts == ((a, 0),)
    assert (2 * (a + 3 * b) + b).parts == ((a, 2), (b, 7))
    assert (2**53 * a).parts == ((a, 2**53),)
    for build in (lambda: 2**53 * a + a, lambda: (2**53 + 1) * a, lambda: Composition(())):
        with pytest.raises(DomainError):
            build()
    with pytest.raises(DomainError):
        Parallel(())
    for build in (
        lambda: Parallel((a, a.under(NeighbouringRelation.REPLACE_ONE))),
        lambda: Parallel((a.under(NeighbouringRelation.REPLACE_ONE),)),
        lambda: a + a.under(NeighbouringRelation.REPLACE_ONE),
    ):
        with pytest.raises(UnsupportedError):
            build()
    assert repr(1 * a) == "1 * Gaussian(1.0)"
    assert repr(2 * a + b) == "2 * Gaussian(1.0) + Laplace(2.0)"

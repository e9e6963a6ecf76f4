"""The names that ``import accountant`` gives."""

import accountant as ac
from accountant import ledger


def test_only_public_names_are_listed():
    assert dir(ac) == sorted([*ac.__all__, "__version__"])
    for name in dir(ac):
        assert getattr(ac, name) is not None


def test_a_ledger_is_an_accountant():
    assert ac.Ledger is ac.Accountant is ledger.Ledger is ledger.Accountant


def test_packages_need_no_import_of_their_own():
    for name in ("attack", "audit", "calibration", "conversions", "learn", "ledger", "sampling"):
        assert getattr(ac, name).__name__ == f"accountant.{name}"

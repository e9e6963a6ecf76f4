"""The largest count that a budget admits."""

from accountant.ledger import meters


def test_the_largest_count_is_found_at_both_ends():
    assert meters.largest(lambda n: False) == 0
    assert meters.largest(lambda n: True) == 2**53
    for most in (1, 2, 3, 1000, 2**53 - 1):
        assert meters.largest(lambda n, most=most: n <= most) == most

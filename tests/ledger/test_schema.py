"""Mechanisms and records as text, and back; test_schema_mechanisms.py has every shipped kind."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountant import mechanisms as m
from accountant.errors import ArgumentTypeError, DomainError, UnsupportedError
from accountant.ledger import Accountant, register
from support.toy_mechanisms import Bag, Coin, Noise

register(Bag)
register(Coin)
register(Noise)


def test_functions_cannot_be_written_and_the_message_says_which_record():
    ledger = Accountant()
    ledger.compose(Noise(1.0))
    ledger.compose(m.RenyiCurve(lambda order: 0.1 * order))
    with pytest.raises(UnsupportedError, match="record 1"):
        ledger.to_json()


def test_unregistered_classes_are_refused_at_writing():
    class Coin2(Coin):
        pass

    ledger = Accountant()
    ledger.compose(Coin2(1.0))
    with pytest.raises(UnsupportedError, match="register"):
        ledger.to_json()
    with pytest.raises(ArgumentTypeError):
        register(3)
    with pytest.raises(DomainError, match="taken"):
        register(type("Gaussian", (Coin,), {"__dataclass_params__": Coin.__dataclass_params__}))


anything = st.floats(allow_nan=False) | st.sampled_from([math.inf, -math.inf, -0.0, 5e-324])
bags = st.builds(
    Bag,
    numbers=st.lists(anything, max_size=4).map(tuple),
    inner=st.none() | st.floats(0.1, 9.0).map(m.Gaussian) | st.floats(0.0, 9.0).map(Coin),
    flag=st.booleans(),
    name=st.text(max_size=8),
    whole=st.integers(-(10**30), 10**30),
)
entries = st.tuples(
    bags,
    st.integers(1, 10**6),
    st.none() | st.text(max_size=10),
    st.none() | st.floats(allow_nan=False, allow_infinity=False),
)


@pytest.mark.long
@given(st.lists(entries, max_size=6))
def test_any_values_survive_json(items):
    ledger = Accountant()
    for item in items:
        ledger.compose(*item[:3], time=item[3])
    again = Accountant.from_json(ledger.to_json())
    assert again.history == ledger.history
    assert again.to_json() == ledger.to_json()
    for before, after in zip(ledger.history, again.history, strict=True):
        # -0.0 == 0.0, but their bits differ.
        assert repr(before.mechanism) == repr(after.mechanism)


def test_nan_survives_as_nan():
    ledger = Accountant()
    ledger.compose(Bag(numbers=(math.nan,)))
    value = Accountant.from_json(ledger.to_json()).history[0].mechanism.numbers[0]
    assert math.isnan(value)

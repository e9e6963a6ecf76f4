"""The odometers of the real SmartNoise SQL as compositions."""

import pytest

import accountant as ac

snsql = pytest.importorskip("snsql", reason="SmartNoise SQL is not installed")
from accountant.adapters.smartnoise import from_odometer  # noqa: E402


def reader(**privacy):
    import numpy as np
    import pandas as pd

    frame = pd.DataFrame({"id": range(300), "k": np.arange(300) % 3, "v": np.arange(300) * 1.0})
    columns = {
        "row_privacy": False,
        "id": {"type": "int", "private_id": True},
        "k": {"type": "int"},
        "v": {"type": "float", "lower": 0.0, "upper": 300.0},
    }
    return snsql.from_df(
        frame, privacy=snsql.Privacy(epsilon=1.0, delta=1e-6), metadata={"": {"": {"t": columns}}}
    )


def test_the_steps_of_a_query():
    source = reader()
    with pytest.raises(ac.UnsupportedError, match="no step"):
        from_odometer(source)
    source.execute("SELECT k, COUNT(*) AS n, SUM(v) AS s FROM t GROUP BY k")
    found = from_odometer(source)
    assert found == from_odometer(source.odometer)
    steps = source.odometer.steps
    assert sum(n for _, n in found.parts) == len(steps)
    assert found.epsilon(1.001e-6) == pytest.approx(sum(e for e, _ in steps), rel=1e-2)
    ledger = ac.Accountant()
    ledger.compose(found)
    assert ledger.epsilon(1e-4) < 3.0


def test_gaussian_noise_is_refused():
    """Its threshold is set by the formula of Laplace noise (smartnoise-sdk #204)."""
    from snsql.sql._mechanisms.base import Mechanism
    from snsql.sql.privacy import Stat

    source = reader()
    source.odometer.privacy.mechanisms.map[Stat.count] = Mechanism.gaussian
    with pytest.raises(ac.UnsupportedError, match="Gaussian"):
        from_odometer(source)


def test_the_odometer_of_equal_steps_is_refused():
    from snsql.sql.odometer import Odometer

    source = Odometer(snsql.Privacy(epsilon=0.05, delta=0.2))
    source.spend(10)
    epsilon, delta = (float(each) for each in source.spent)
    truth = 10 * ac.ApproximateDP(0.05, delta=0.2)
    assert float(truth.delta_bounds(epsilon).lower) >= 0.8926 > 4.0 * delta
    with pytest.raises(ac.UnsupportedError, match="OdometerHeterogeneous"):
        from_odometer(source)

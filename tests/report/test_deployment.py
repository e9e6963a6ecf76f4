"""What a caller says of a deployment is checked, and never says more than was said."""

import pytest

import accountant as ac
from accountant.errors import ArgumentTypeError, DomainError
from accountant.report import Deployment
from accountant.report.contents import sampling_words
from accountant.sampling import FixedSizeSampled


@pytest.mark.parametrize(
    ("values", "error", "says"),
    [
        ({"records": 0}, DomainError, "records"),
        ({"user_records": 2_000_000}, DomainError, "user_records"),
        ({"model": "trusted"}, DomainError, "model"),
        ({"title": 3}, ArgumentTypeError, "title"),
        ({"documentation": "javascript:alert(1)"}, DomainError, "https://"),
        ({"registry": 3}, ArgumentTypeError, "registry"),
        ({"colour": "blue"}, DomainError, "'colour'"),
    ],
)
def test_bad_values_are_named(values, error, says):
    with pytest.raises(error, match=says):
        Deployment.of(values)


def test_delta_is_compared_with_one_over_the_records():
    told = Deployment(records=1000)
    assert told.delta_words(1e-3).startswith("Too large")
    assert told.delta_words(5e-4).startswith("Not small")
    assert told.delta_words(1e-6).startswith("Small enough")
    assert "without exception" in told.delta_words(0.0)
    assert "not stated" in Deployment().delta_words(1e-5)


def test_sampling_is_put_into_words():
    poisson = ac.PoissonSampled(ac.Gaussian(1.0), 0.01)
    assert "some 600 of the 60,000 records" in sampling_words(poisson, 60_000)
    assert "some" not in sampling_words(poisson, None)
    fixed = FixedSizeSampled(2.0, batch_size=10, dataset_size=100)
    assert sampling_words(fixed, None) == "each step uses 10 of 100 records"
    assert sampling_words(ac.Gaussian(1.0), 7) == ""


def test_records_of_several_people_are_named():
    told = Deployment(owners=5).user_words()
    assert "who owns which record is public" in told
    assert "At most 5 of the records" in told
    with pytest.raises(ac.DomainError, match="owners"):
        Deployment(owners=0)

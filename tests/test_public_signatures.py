"""How public names are called: what can be swapped goes by keyword, and each thing has one name."""

import inspect
import pydoc

import pytest

import accountant as ac
from accountant import derived, matrix, mechanisms, sampling
from support.every_mechanism import EXAMPLES

NAMES = {
    name: getattr(home, name)
    for home in (ac, mechanisms, derived, sampling, matrix)
    for name in home.__all__
}
SAMPLERS = [
    sampling.BallsInBins(dataset_size=100, bins=4, strategy=matrix.banded_square_root(8, bands=2)),
    sampling.CyclicBatches(dataset_size=100, batch_size=10, epochs=2),
    sampling.CyclicPoisson(dataset_size=100, sampling_probability=0.1, bands=3, steps=5),
    sampling.FixedSizeSampler(dataset_size=100, batch_size=10, steps=5),
    sampling.FullBatch(dataset_size=100, steps=5),
    sampling.PoissonSampler(dataset_size=100, sampling_probability=0.1, steps=5),
    sampling.RandomAllocation(dataset_size=100, steps_per_epoch=10, epochs=2),
    sampling.SeparatedPoisson(
        dataset_size=100, sampling_probability=0.1, min_separation=3, steps=5
    ),
    sampling.ShuffledBatches(dataset_size=100, batch_size=10, epochs=2),
    sampling.TruncatedPoissonSampler(dataset_size=100, sampling_probability=0.1, cap=20, steps=5),
    sampling.WithReplacementSampler(
        dataset_size=100, batch_size=10, steps=5, relation=ac.NeighbouringRelation.REPLACE_ONE
    ),
]
SAMPLED = [
    sampling.Allocated(2.0, steps=10),
    sampling.FixedSizeSampled(2.0, batch_size=5, dataset_size=100),
    sampling.PoissonSampled(ac.Gaussian(2.0, sensitivity=0.5), 0.1),
    sampling.TruncatedPoissonSampled(2.0, sampling_probability=0.1, cap=20, dataset_size=100),
    sampling.WithReplacementSampled(2.0, batch_size=5, dataset_size=100),
    mechanisms.ShuffledResponses(1.0, dataset_size=1000, k=4),
    mechanisms.SmoothSensitivityGaussian(5.0, smoothness=0.01),
    ac.BestOfRuns(ac.Gaussian(4.0), 0.1, eta=0.5),
]
# Two positions that cannot be swapped unnoticed: a mechanism and a number, two lists of one length
# that serve in either order, functions named by what they are.
TWO = {
    "PoissonSampled", "SampledReplacement", "BestOfRuns", "BestOfPoissonRuns", "ReportNoisyMax",
    "FirstAboveThreshold",
}  # fmt: skip
LISTS = {"DominatingPMFs", "LossDistribution"}


def is_error(value):
    return inspect.isclass(value) and issubclass(value, BaseException)


def positional(call):
    found = inspect.signature(call).parameters.values()
    return [each.name for each in found if each.kind is each.POSITIONAL_OR_KEYWORD]


# A Rényi curve prints the function it was made from, which is no call.
PRINTED = [
    value for value in (*EXAMPLES, *SAMPLED, *SAMPLERS) if not isinstance(value, ac.RenyiCurve)
]


@pytest.mark.parametrize("value", PRINTED, ids=repr)
def test_what_is_printed_is_the_call(value):
    again = eval(repr(value), dict(NAMES))
    assert again == value
    assert repr(again) == repr(value)


def test_sizes_of_samplers_go_by_keyword():
    kinds = {kind for kind in map(NAMES.get, sampling.__all__) if inspect.isclass(kind)}
    kinds = {kind for kind in kinds if issubclass(kind, sampling.Sampler)}
    assert kinds == {sampling.Sampler, *map(type, SAMPLERS)}
    for kind in kinds:
        assert positional(kind) == []
    with pytest.raises(TypeError):
        sampling.PoissonSampler(*(100, 0.1, 5))


def test_numbers_that_could_be_swapped_go_by_keyword():
    tried = 0
    for name, kind in NAMES.items():
        if not (inspect.isclass(kind) and issubclass(kind, ac.Mechanism)):
            continue
        most = 4 if name in LISTS else 2 if name in TWO else 1
        assert len(positional(kind)) <= most, name
        tried += 1
    assert tried >= 30
    with pytest.raises(TypeError):
        ac.ApproximateDP(*(1e-6, 0.5))
    with pytest.raises(TypeError):
        ac.Gaussian(*(1.0, 2.0))
    assert positional(ac.PoissonSampled) == ["mechanism", "sampling_probability"]


# Two distributions p and q, RAPPOR's own letters.


def test_a_delta_has_no_default():
    """But for the calibrations that have had one from the start, and a budget, where it is pure."""
    for home in (ac, mechanisms, derived, sampling):
        for name in home.__all__:
            value = getattr(home, name)
            if is_error(value) or not callable(value):
                continue
            if "delta" in (found := inspect.signature(value).parameters):
                default = found["delta"].default
                assert (
                    (default == 1e-5)
                    if name.startswith("calibrate_")
                    else (default == 0.0)
                    if name == "Budget"
                    else default in (inspect.Parameter.empty, None)
                ), name


# NumPy's own parameters; the quick functions say their types in overloads; copying protocols.


def test_help_of_get_epsilon():
    first = pydoc.render_doc(ac.get_epsilon, renderer=pydoc.plaintext).splitlines()[2]
    assert "q: 'Scalar | ArrayLike'" in first
    assert first.endswith("-> 'float | NDArray[np.float64]'")

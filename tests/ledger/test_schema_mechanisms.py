"""Every mechanism and every wrapper of the package, through a ledger file and the command line.

The classes are found by walking the package: a new one without an example here fails.
"""

import dataclasses
import importlib
import inspect
import json
import math
import pkgutil

import pytest
from click.testing import CliRunner

import accountant
from accountant import derived, sampling
from accountant import mechanisms as m
from accountant.cli import main, options
from accountant.composition import Composition, parallel
from accountant.derived.joint import JointRelease, SampledReplacement
from accountant.ledger import Accountant, register, schema
from accountant.mechanisms.base import Mechanism
from accountant.relations import NeighbouringRelation
from accountant.sampling import PoissonSampled
from accountant.sampling.poisson_replacement import PoissonReplacement, TruncatedReplacement

REPLACE = NeighbouringRelation.REPLACE_ONE
ZERO_OUT = NeighbouringRelation.ZERO_OUT


def objective_perturbation():
    from accountant.learn.convex.mechanism import ObjectivePerturbation

    return ObjectivePerturbation("Logistic()", data_norm=1.0, regularization=2.0, noise=3.0)


EXAMPLES = [
    m.Gaussian(1.1),
    m.Gaussian(math.inf),
    m.Gaussian(1.5, sensitivity=0.1, relation=REPLACE),
    m.GDP(0.3),
    m.Laplace(2.0),
    m.DiscreteGaussian(3.0),
    m.DiscreteGaussianSum(3.0, contributors=10, sensitivity=2),
    m.Skellam(9.0),
    m.DominatedBy(2 * m.Gaussian(3.0)),
    m.DiscreteGaussianVector(3.0),
    m.DiscreteLaplace(2.0),
    m.PureDP(0.5),
    m.ApproximateDP(0.5, delta=1e-7),
    m.RandomizedResponse(1.0, k=4),
    m.ZCDP(0.1),
    m.TruncatedCDP(0.1, omega=20.0),
    m.MixtureOfGaussians(2.0, sensitivities=(0.0, 1.0), probabilities=(0.5, 0.5)),
    m.DominatingPMFs((0.25, 0.75), (0.75, 0.25)),
    m.ExponentialMechanism(0.4),
    m.ReportNoisyMax(0.4),
    m.AboveThreshold(4.0, query_scale=8.0),
    m.SparseHistogram(m.Gaussian(6.0), threshold=36.0, max_partitions=3, minimum=2),
    m.SparseHistogram(m.Laplace(2.0), threshold=15.5, beside=m.Gaussian(4.0), adaptive=True),
    accountant.BestOfRuns(m.Gaussian(4.0), 0.1, eta=0.0),
    accountant.BestOfPoissonRuns(m.Laplace(4.0), 3.0),
    accountant.BestOfRuns([m.Laplace(4.0), m.Gaussian(9.0)], 0.1),
    derived.AnyOf([m.Laplace(4.0), m.Gaussian(9.0)]),
    derived.FirstAboveThreshold(m.Laplace(4.0), 0.1),
    m.SmoothSensitivityGaussian(5.0, smoothness=0.01),
    m.ShuffledResponses(1.0, dataset_size=1000, k=4),
    accountant.ShuffleModel(m.RandomizedResponse(1.0, k=4), dataset_size=1000),
    objective_perturbation(),
    PoissonSampled(m.Gaussian(0.1 + 0.2), 1 / 3),
    PoissonSampled(m.Laplace(0.7), 1e-9),
    PoissonSampled(m.DiscreteGaussianVector(3.0), 0.1),
    PoissonSampled(m.Gaussian(2.0) + m.Laplace(3.0), 0.1),
    Composition(((m.Gaussian(2.0), 3), (m.Laplace(1.0), 1))),
    parallel(m.Gaussian(2.0), 5 * m.Laplace(1.0)),
    parallel(m.Gaussian(2.0), m.Laplace(1.0), adaptive=True),
    JointRelease(m.Gaussian(2.0) + m.PureDP(0.1)),
    PoissonSampled(JointRelease(m.Gaussian(2.0) + m.PureDP(0.1)), 0.1),
    SampledReplacement(m.Gaussian(2.0, relation=REPLACE), 0.1),
    SampledReplacement(m.Laplace(2.0, relation=REPLACE), 0.1, relation=ZERO_OUT),
    PoissonReplacement(2.0, sampling_probability=0.1),
    TruncatedReplacement(2.0, sampling_probability=0.1, cap=12, dataset_size=100),
    TruncatedReplacement(
        2.0, sampling_probability=0.1, cap=12, dataset_size=100, relation=ZERO_OUT
    ),
    sampling.Allocated(5.0, steps=4),
    sampling.AllocatedMechanism(m.Laplace(2.0), steps=20),
    sampling.FixedSizeSampled(2.0, batch_size=5, dataset_size=100),
    sampling.WithReplacementSampled(2.0, batch_size=5, dataset_size=100),
    sampling.SeparatedParticipations(2.0, sampling_probability=0.1, min_separation=3, steps=20),
    sampling.TruncatedPoissonSampled(2.0, sampling_probability=0.1, cap=20, dataset_size=100),
]
# They hold functions.
UNWRITABLE = {"RenyiCurve", "LossDistribution"}
# What only bounds another mechanism from below is never released.
FROM_BELOW = {"FromBelow", "OnePair"}


def shipped():
    """Return every mechanism of the package that can be made, by walking all modules."""
    for module in pkgutil.walk_packages(accountant.__path__, "accountant."):
        try:
            importlib.import_module(module.name)
        except ImportError:  # an optional dependency is missing
            continue
    found, queue = set(), [Mechanism]
    while queue:
        for kind in queue.pop().__subclasses__():
            queue.append(kind)
            ours = kind.__module__.startswith("accountant.")
            if ours and not kind.__name__.startswith("_") and not inspect.isabstract(kind):
                found.add(kind.__name__)
    return found


@pytest.fixture(autouse=True)
def nothing_registered(monkeypatch):
    """Files must be read without help from adapters or from other tests."""
    kept = {k: v for k, v in schema._registered.items() if k == "ObjectivePerturbation"}
    monkeypatch.setattr(schema, "_registered", kept)


def test_every_mechanism_of_the_package_is_known_to_files_and_tried():
    known, tried = set(schema.names()), {type(each).__name__ for each in EXAMPLES}
    assert shipped() - FROM_BELOW == known
    assert known == tried | UNWRITABLE


def test_no_other_class_takes_the_name_of_one_that_is_not_imported_yet(monkeypatch):
    monkeypatch.setattr(schema, "_registered", {})

    @dataclasses.dataclass(frozen=True)
    class ObjectivePerturbation(m.PureDP):
        pass

    with pytest.raises(accountant.DomainError, match=r"is taken by accountant\.learn"):
        register(ObjectivePerturbation)


@pytest.mark.long(keep=22)
@pytest.mark.parametrize("mechanism", EXAMPLES, ids=repr)
def test_it_survives_a_file_and_is_answered(mechanism, tmp_path):
    ledger, path = Accountant(), tmp_path / "ledger.json"
    ledger.compose(mechanism, 2, label="x")
    ledger.save(path)
    again = Accountant.load(path)
    assert again.history == ledger.history
    assert type(again.history[0].mechanism) is type(mechanism)
    assert repr(again.history[0].mechanism) == repr(mechanism)
    asked = CliRunner().invoke(main, ["show", str(path), "--delta", "1e-3", "--json"])
    assert asked.exit_code == 0, asked.output
    (row,) = json.loads(asked.output)["epsilons"]
    assert row["epsilon"] == pytest.approx(ledger.epsilon(1e-3), rel=0.02)


@pytest.mark.parametrize("mechanism", EXAMPLES, ids=repr)
def test_a_pipeline_may_name_it(mechanism):
    written = schema.encode_mechanism(mechanism)
    text = json.dumps({"delta": 1e-5, "release": [written | {"count": 3}]})
    (record,) = options.parse(text, "text").ledger.history
    assert (record.mechanism, record.count) == (mechanism, 3)


@pytest.mark.long
@pytest.mark.parametrize(
    "mechanism",
    [each for each in EXAMPLES if type(each).__module__.startswith("accountant.sampling")]
    + [each for each in EXAMPLES if isinstance(each, JointRelease)],
    ids=repr,
)
def test_a_reviewer_gets_a_statement(mechanism, tmp_path):
    ledger, path = Accountant(), tmp_path / "ledger.json"
    ledger.compose(mechanism, 3)
    ledger.save(path)
    asked = CliRunner().invoke(main, ["report", str(path), "--format", "json", "--delta", "1e-3"])
    assert asked.exit_code == 0, asked.output
    assert json.loads(asked.stdout)

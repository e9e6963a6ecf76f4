"""Every public mechanism in every form that composes: plain, sampled, in groups, stated, derived.

:func:`under` lists those that have a bound under a neighbouring relation. A test checks that every
class which ledger files know is here.
"""

import math

from scipy.special import ndtr

import accountant as ac
from accountant import NeighbouringRelation as Relation
from accountant import PoissonSampled, sampling
from accountant import mechanisms as m
from accountant.composition import parallel
from accountant.derived import AnyOf, FirstAboveThreshold
from accountant.derived.joint import JointRelease, SampledReplacement
from accountant.learn.convex.mechanism import ObjectivePerturbation
from accountant.sampling.poisson_replacement import PoissonReplacement, TruncatedReplacement

REPLACE, ZERO_OUT = Relation.REPLACE_ONE, Relation.ZERO_OUT


def by_density(infinite=0.0):
    """Return the loss N(1/2, 1) of Gaussian noise of scale one, by its distribution functions."""
    rest = 1.0 - infinite
    return m.LossDistribution(
        lambda x: rest * ndtr(x - 0.5),
        lambda x: rest * ndtr(0.5 - x) + infinite,
        lambda x: ndtr(x + 0.5),
        lambda x: ndtr(-0.5 - x),
        relative_error=1e-12,
        infinite_mass=infinite,
    )


# One or more of every kind that is no curve of its own: for the tests that go over them all.
EXAMPLES = [
    m.Gaussian(1.1),
    m.Gaussian(3.0, sensitivity=0.3),
    m.GDP(0.7),
    m.Laplace(2.0),
    m.Laplace(1.5, sensitivity=2.5),
    m.DiscreteGaussian(2.5),
    m.DiscreteGaussian(0.7, sensitivity=3),
    m.DiscreteGaussianSum(0.9, contributors=5),
    m.Skellam(6.0, sensitivity=2),
    m.DominatedBy(2 * m.Gaussian(3.0)),
    m.DiscreteGaussianVector(2.5, sensitivity=0.7),
    m.DiscreteLaplace(2.0, sensitivity=3),
    m.DiscreteLaplace(1.0),
    m.PureDP(0.4),
    m.ApproximateDP(0.5, delta=1e-6),
    m.RandomizedResponse(1.0),
    m.RandomizedResponse(1.0, k=5),
    m.ExponentialMechanism(0.8),
    m.ReportNoisyMax(2.0),
    m.ReportNoisyMax(2.0, "laplace", monotonic=True),
    m.ReportNoisyMax(3.0, "exponential"),
    m.AboveThreshold(2.0, query_scale=4.0, positives=3),
    m.MixtureOfGaussians(1.2, sensitivities=(0.0, 1.0, 2.0), probabilities=(0.5, 0.25, 0.25)),
    m.DominatingPMFs((0.5, 0.25, 0.25), (0.25, 0.25, 0.5)),
    m.ZCDP(0.1),
    m.TruncatedCDP(0.1, omega=10.0),
    m.RenyiCurve.from_table((2.0, 4.0, 8.0), (0.1, 0.25, 0.7)),
]
# One or more of every kind, most under add-or-remove, others under the one relation they have.
PLAIN = (
    *EXAMPLES,
    m.Gaussian(1e-3),
    m.Gaussian(math.inf),
    m.GDP(0.3),
    m.ApproximateDP(0.5, delta=1e-9),
    m.ApproximateDP(0.0, delta=1e-8),
    m.MixtureOfGaussians(1.2, sensitivities=(1.0, 2.0), probabilities=(0.75, 0.25)),
    m.DominatingPMFs((0.5, 0.3, 0.2), (0.2, 0.4, 0.4)),
    m.DominatingPMFs((0.5, 0.5 - 2.0**-30, 2.0**-30), (0.25, 0.75, 0.0), infinite_loss=True),
    m.RenyiCurve(lambda order: 0.05 * order),
    by_density(),
    by_density(infinite=1e-10),
    m.SmoothSensitivityGaussian(5.0, smoothness=0.01),
    m.DominatedBy(2 * m.Gaussian(2.0)),
    m.SparseHistogram(m.Gaussian(6.0), threshold=36.0, max_partitions=3),
    m.SparseHistogram(m.Laplace(2.0), threshold=15.0, beside=m.Gaussian(4.0)),
    m.SparseHistogram(m.DiscreteLaplace(2.0), threshold=20.0, max_rows=3),
    m.SparseHistogram(m.Gaussian(4.0), threshold=22.0, max_partitions=4, adaptive=True),
    ObjectivePerturbation("Logistic()", data_norm=1.0, regularization=2.0, noise=3.0),
)
DERIVED = (
    ac.BestOfRuns(m.Gaussian(4.0), 0.1, eta=0.0),
    ac.BestOfPoissonRuns(m.Laplace(4.0), 3.0),
    AnyOf([m.Laplace(4.0), m.Gaussian(9.0)]),
    FirstAboveThreshold(m.Laplace(4.0), 0.1),
    m.ShuffledResponses(1.0, dataset_size=1000, k=4),
    m.ShuffledResponses(1.0, dataset_size=1000),
    ac.ShuffleModel(m.RandomizedResponse(1.0, k=4), dataset_size=1000),
    parallel(m.Gaussian(2.0), 5 * m.Laplace(3.0)),
    parallel(m.Gaussian(2.0), m.Laplace(1.0), adaptive=True),
    JointRelease(m.Gaussian(2.0) + m.PureDP(0.1)),
    m.Gaussian(3.0).group(3),
    m.ApproximateDP(0.1, delta=1e-10).group(4),
    m.ZCDP(0.01).group(3),
)
SAMPLED = (
    PoissonSampled(m.Gaussian(1.0), 0.01),
    PoissonSampled(m.Gaussian(2.0), 1e-300),
    PoissonSampled(m.Gaussian(1.0), 0.0),
    PoissonSampled(m.Gaussian(1.0), 0.01).group(4),
    PoissonSampled(m.Laplace(0.7), 0.02),
    PoissonSampled(m.Laplace(5.0), 1e-20),
    PoissonSampled(m.DiscreteGaussian(1.0), 0.01),
    PoissonSampled(m.DiscreteLaplace(2.0), 0.05),
    PoissonSampled(m.DiscreteGaussianVector(3.0), 0.1),
    PoissonSampled(m.RandomizedResponse(2.0, k=3), 0.1),
    PoissonSampled(m.ExponentialMechanism(1.0), 0.1),
    PoissonSampled(m.ApproximateDP(1.0, delta=1e-9), 0.1),
    PoissonSampled(m.ZCDP(0.1), 0.05),
    PoissonSampled(
        m.MixtureOfGaussians(1.5, sensitivities=(0.0, 1.0), probabilities=(0.5, 0.5)), 0.05
    ),
    PoissonSampled(m.Gaussian(2.0) + m.Laplace(3.0), 0.1),
    PoissonSampled(by_density(), 0.05),
    SampledReplacement(m.Gaussian(2.0, relation=REPLACE), 0.1),
    SampledReplacement(m.Laplace(2.0, relation=REPLACE), 0.1, relation=ZERO_OUT),
    PoissonReplacement(2.0, sampling_probability=0.1),
    TruncatedReplacement(2.0, sampling_probability=0.1, cap=12, dataset_size=100),
    sampling.Allocated(5.0, steps=4),
    sampling.AllocatedMechanism(m.Laplace(2.0), steps=20),
    sampling.FixedSizeSampled(2.0, batch_size=5, dataset_size=100),
    sampling.WithReplacementSampled(2.0, batch_size=5, dataset_size=100),
    sampling.SeparatedParticipations(2.0, sampling_probability=0.1, min_separation=3, steps=20),
    sampling.TruncatedPoissonSampled(2.0, sampling_probability=0.1, cap=20, dataset_size=100),
)
EVERY = PLAIN + DERIVED + SAMPLED


def under(relation):
    """Return the mechanisms that have a bound under the relation, stated under it."""
    found = []
    for each in EVERY:
        try:
            found.append(each.under(relation))
        except ac.UnsupportedError:
            continue
    return list(dict.fromkeys(found))

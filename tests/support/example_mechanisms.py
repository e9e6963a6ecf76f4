"""One mechanism of every kind or more, for the tests that go over them all."""

import accountant as ac

EXAMPLES = [
    ac.Gaussian(1.1),
    ac.Gaussian(3.0, sensitivity=0.3),
    ac.GDP(0.7),
    ac.Laplace(2.0),
    ac.Laplace(1.5, sensitivity=2.5),
    ac.DiscreteGaussian(2.5),
    ac.DiscreteGaussian(0.7, sensitivity=3),
    ac.DiscreteGaussianSum(0.9, contributors=5),
    ac.Skellam(6.0, sensitivity=2),
    ac.mechanisms.DominatedBy(2 * ac.Gaussian(3.0)),
    ac.DiscreteGaussianVector(2.5, sensitivity=0.7),
    ac.DiscreteLaplace(2.0, sensitivity=3),
    ac.DiscreteLaplace(1.0),
    ac.PureDP(0.4),
    ac.ApproximateDP(0.5, delta=1e-6),
    ac.RandomizedResponse(1.0),
    ac.RandomizedResponse(1.0, k=5),
    ac.ExponentialMechanism(0.8),
    ac.ReportNoisyMax(2.0),
    ac.ReportNoisyMax(2.0, "laplace", monotonic=True),
    ac.ReportNoisyMax(3.0, "exponential"),
    ac.AboveThreshold(2.0, query_scale=4.0, positives=3),
    ac.MixtureOfGaussians(1.2, sensitivities=(0.0, 1.0, 2.0), probabilities=(0.5, 0.25, 0.25)),
    ac.DominatingPMFs((0.5, 0.25, 0.25), (0.25, 0.25, 0.5)),
    ac.ZCDP(0.1),
    ac.TruncatedCDP(0.1, omega=10.0),
    ac.RenyiCurve.from_table((2.0, 4.0, 8.0), (0.1, 0.25, 0.7)),
]

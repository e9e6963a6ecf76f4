"""Private convex learning: one or a few releases instead of thousands of noisy steps."""

from accountant.learn.convex.bolt_on import bolt_on_sgd, permutation_sgd_sensitivity
from accountant.learn.convex.fit import PrivateResult
from accountant.learn.convex.gradient import last_iterate_mu, noisy_gradient_descent
from accountant.learn.convex.losses import (
    BoundedPoisson,
    Huber,
    HuberHinge,
    Logistic,
    Loss,
    Softmax,
)
from accountant.learn.convex.mechanism import ObjectivePerturbation, calibrate_objective
from accountant.learn.convex.perturbation import (
    minimum_sensitivity,
    perturb_objective,
    perturb_output,
)
from accountant.learn.convex.posterior import (
    exponential_mechanism,
    gibbs_posterior,
    gibbs_posterior_mu,
    private_quantile,
)
from accountant.learn.convex.statistics import (
    ada_ssp,
    private_covariance,
    private_mean,
    private_ridge,
)

__all__ = [
    "BoundedPoisson",
    "Huber",
    "HuberHinge",
    "Logistic",
    "Loss",
    "ObjectivePerturbation",
    "PrivateResult",
    "Softmax",
    "ada_ssp",
    "bolt_on_sgd",
    "calibrate_objective",
    "exponential_mechanism",
    "gibbs_posterior",
    "gibbs_posterior_mu",
    "last_iterate_mu",
    "minimum_sensitivity",
    "noisy_gradient_descent",
    "permutation_sgd_sensitivity",
    "perturb_objective",
    "perturb_output",
    "private_covariance",
    "private_mean",
    "private_quantile",
    "private_ridge",
]

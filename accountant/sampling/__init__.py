"""Samplers, which draw batches and return the mechanism that accounts for them.

A guarantee holds for one sampler *and* one relation. Each sampler draws its batches exactly as its
theorem assumes and returns the mechanism of that theorem, so the account describes the batches.
"""

# Samplers, each with the mechanism of one of its steps: poisson, truncated_poisson, spaced_poisson,
# fixed_size, random_allocation, epochs, balls_in_bins and correlated_noise; sampler is shared.
# Pairs: sampled_pairs and sampled_atoms for Poisson sampling when a record is added or removed,
# exchange_pair and replacement_pair when one is exchanged for another, with the laws of one step of
# its game in replacement_laws and lattice_envelope; allocation_pair for random allocation, by its
# transform (allocation_profile, _line and _plan) or its law (allocation_law), several_steps
# (several_sums) for several of the steps, and
# allocated_mechanism for other noise (ratio_sums).
from accountant.sampling.allocated_mechanism import AllocatedMechanism
from accountant.sampling.balls_in_bins import BallsInBins
from accountant.sampling.correlated_noise import (
    MatrixMechanism,
    square_root_strategy,
    tree_strategy,
)
from accountant.sampling.epochs import CyclicBatches, FullBatch, ShuffledBatches
from accountant.sampling.fixed_size import (
    FixedSizeSampled,
    FixedSizeSampler,
    WithReplacementSampled,
    WithReplacementSampler,
)
from accountant.sampling.poisson import PoissonSampled, PoissonSampler
from accountant.sampling.random_allocation import Allocated, RandomAllocation
from accountant.sampling.sampler import Sampler, amplify
from accountant.sampling.secure_sum import discrete_gaussian_sum_of_vectors, skellam_sum_of_vectors
from accountant.sampling.spaced_poisson import (
    CyclicPoisson,
    SeparatedParticipations,
    SeparatedPoisson,
)
from accountant.sampling.truncated_poisson import TruncatedPoissonSampled, TruncatedPoissonSampler

__all__ = [
    "Allocated",
    "AllocatedMechanism",
    "BallsInBins",
    "CyclicBatches",
    "CyclicPoisson",
    "FixedSizeSampled",
    "FixedSizeSampler",
    "FullBatch",
    "MatrixMechanism",
    "PoissonSampled",
    "PoissonSampler",
    "RandomAllocation",
    "Sampler",
    "SeparatedParticipations",
    "SeparatedPoisson",
    "ShuffledBatches",
    "TruncatedPoissonSampled",
    "TruncatedPoissonSampler",
    "WithReplacementSampled",
    "WithReplacementSampler",
    "amplify",
    "discrete_gaussian_sum_of_vectors",
    "skellam_sum_of_vectors",
    "square_root_strategy",
    "tree_strategy",
]

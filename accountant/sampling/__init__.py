"""Samplers, which draw batches and return the mechanism that accounts for them.

A guarantee holds for one sampler *and* one relation. Each sampler draws its batches exactly as its
theorem assumes and returns the mechanism of that theorem, so the account describes the batches.
"""

# Samplers, each with the mechanism of one of its steps: poisson_batches (poisson), fixed_size,
# with_replacement, truncated_poisson, random_allocation, shuffled, cyclic, cyclic_poisson,
# separated_poisson, balls_in_bins, full_batch, and correlated_noise; sampler, batch_size_sampler
# and drawing are shared.
# Pairs: sampled_pairs for Poisson sampling when a record is added or removed; replacement_pair,
# poisson_replacement and sampled_replacement when a record is *exchanged for another* (drawing
# with replacement is with_replacement, and its pair mixture_pair); allocation_pair and
# allocation_law for random allocation; convex_combination for a public coin; lognormal and _renyi
# serve several.
from accountant.sampling.allocated_mechanism import AllocatedMechanism
from accountant.sampling.amplification import amplify
from accountant.sampling.balls_in_bins import BallsInBins
from accountant.sampling.correlated_noise import (
    MatrixMechanism,
    square_root_strategy,
    tree_strategy,
)
from accountant.sampling.cyclic import CyclicBatches
from accountant.sampling.cyclic_poisson import CyclicPoisson
from accountant.sampling.fixed_size import FixedSizeSampled, FixedSizeSampler
from accountant.sampling.full_batch import FullBatch
from accountant.sampling.poisson import PoissonSampled
from accountant.sampling.poisson_batches import PoissonSampler
from accountant.sampling.random_allocation import Allocated, RandomAllocation
from accountant.sampling.sampler import Sampler
from accountant.sampling.secure_sum import (
    discrete_gaussian_sum_of_vectors,
    skellam_sum_of_vectors,
)
from accountant.sampling.separated_poisson import SeparatedParticipations, SeparatedPoisson
from accountant.sampling.shuffled import ShuffledBatches
from accountant.sampling.truncated_poisson import TruncatedPoissonSampled, TruncatedPoissonSampler
from accountant.sampling.with_replacement import WithReplacementSampled, WithReplacementSampler

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

"""The local model: every user adds noise to his or her own report."""

from accountant.learn.local.bounded import (
    MeanEstimate,
    estimate_mean,
    randomize_gaussian,
    randomize_laplace,
)
from accountant.learn.local.responses import FrequencyEstimate, KaryResponse, Rappor
from accountant.learn.local.shuffling import shuffled_epsilon
from accountant.mechanisms import ShuffledResponses

__all__ = [
    "FrequencyEstimate",
    "KaryResponse",
    "MeanEstimate",
    "Rappor",
    "ShuffledResponses",
    "estimate_mean",
    "randomize_gaussian",
    "randomize_laplace",
    "shuffled_epsilon",
]

"""Trainers that use the accountant, in numpy and scipy only.

DP-SGD is at this level: ``dp_sgd`` is the call, ``plan`` its public settings, ``run`` the state
between two steps, ``release`` the one place where a sum gets its noise, ``account`` the cost of
steps and the ledger they are charged to. The other learners are packages: ``convex``, ``pate``,
``selection``, ``blocks``, ``local`` and ``generation``; ``models`` holds what DP-SGD trains.
"""

from accountant.learn.checkpoint import Checkpoint, CheckpointError
from accountant.learn.clipping import AdaptiveQuantile, Automatic, Flat, PerLayer
from accountant.learn.dp_sgd import (
    Watch,
    train_dp_sgd,
    train_one_example_sgd,
    train_projected_gradient_descent,
)
from accountant.learn.features import (
    Chain,
    Frozen,
    OrientedGradients,
    PrincipalComponents,
    RandomFourierFeatures,
    UnitNorm,
)
from accountant.learn.models import (
    ConvolutionalNetwork,
    LinearRegression,
    LogisticRegression,
    Model,
    MultilayerPerceptron,
    PerExampleModel,
    RidgeRegression,
    SoftmaxRegression,
)
from accountant.learn.optimizers import (
    SGD,
    AdaGrad,
    Adam,
    AdamW,
    DPAdam,
    RMSProp,
    cosine,
    inverse_square_root,
    polynomial,
    step_decay,
    warmup,
)
from accountant.learn.plan import Batches, Noise
from accountant.learn.result import LastIterate, MeanOfLast, MovingAverage, TrainingResult

__all__ = [
    "SGD",
    "AdaGrad",
    "Adam",
    "AdamW",
    "AdaptiveQuantile",
    "Automatic",
    "Batches",
    "Chain",
    "Checkpoint",
    "CheckpointError",
    "ConvolutionalNetwork",
    "DPAdam",
    "Flat",
    "Frozen",
    "LastIterate",
    "LinearRegression",
    "LogisticRegression",
    "MeanOfLast",
    "Model",
    "MovingAverage",
    "MultilayerPerceptron",
    "Noise",
    "OrientedGradients",
    "PerExampleModel",
    "PerLayer",
    "PrincipalComponents",
    "RMSProp",
    "RandomFourierFeatures",
    "RidgeRegression",
    "SoftmaxRegression",
    "TrainingResult",
    "UnitNorm",
    "Watch",
    "cosine",
    "inverse_square_root",
    "polynomial",
    "step_decay",
    "train_dp_sgd",
    "train_one_example_sgd",
    "train_projected_gradient_descent",
    "warmup",
]

"""Trainers that use the accountant, in numpy and scipy only.

DP-SGD is at this level: ``dp_sgd`` is the call, ``plan`` its public settings, ``run`` the state
between two steps, ``release`` the one place where a sum gets its noise, ``account`` the cost of
steps and the ledger they are charged to. The other learners are packages: ``convex``, ``pate``,
``selection``, ``blocks``, ``local`` and ``generation``; ``models`` holds what DP-SGD trains.
"""

from accountant.learn.averaging import LastIterate, MeanOfLast, MovingAverage
from accountant.learn.checkpoint import Checkpoint, CheckpointError
from accountant.learn.clipping import AdaptiveQuantile, Automatic, Flat, PerLayer
from accountant.learn.descent import train_one_example_sgd, train_projected_gradient_descent
from accountant.learn.dp_sgd import Watch, train_dp_sgd
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
from accountant.learn.optimizers import SGD, AdaGrad, Adam, AdamW, DPAdam, RMSProp
from accountant.learn.plan import Batches, Noise
from accountant.learn.result import TrainingResult
from accountant.learn.schedules import (
    Constant,
    Cosine,
    InverseSquareRoot,
    Polynomial,
    StepDecay,
    Warmup,
)

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
    "Constant",
    "ConvolutionalNetwork",
    "Cosine",
    "DPAdam",
    "Flat",
    "Frozen",
    "InverseSquareRoot",
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
    "Polynomial",
    "PrincipalComponents",
    "RMSProp",
    "RandomFourierFeatures",
    "RidgeRegression",
    "SoftmaxRegression",
    "StepDecay",
    "TrainingResult",
    "UnitNorm",
    "Warmup",
    "Watch",
    "train_dp_sgd",
    "train_one_example_sgd",
    "train_projected_gradient_descent",
]

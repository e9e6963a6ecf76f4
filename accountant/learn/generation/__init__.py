"""Synthetic records: noisy marginals, DP-GAN, PATE-GAN."""

from accountant.learn.generation.domain import Category, Domain, Numeric, Synthesis
from accountant.learn.generation.dp_gan import GanSynthesis, train_dp_gan
from accountant.learn.generation.marginals import MarginalSynthesis, synthesize_marginals
from accountant.learn.generation.pate_gan import PateGanSettings, PateGanSynthesis, train_pate_gan

__all__ = [
    "Category",
    "Domain",
    "GanSynthesis",
    "MarginalSynthesis",
    "Numeric",
    "PateGanSettings",
    "PateGanSynthesis",
    "Synthesis",
    "synthesize_marginals",
    "train_dp_gan",
    "train_pate_gan",
]

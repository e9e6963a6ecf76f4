"""Audits of this package's own releases."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from accountant.audit.mechanism import (
    audit_masses,
    audit_mechanism,
    audit_observations,
    cell_masses,
)
from accountant.audit.report import AuditReport
from accountant.audit.trainer import audit_trainer
from accountant.calibration import calibrate_sigma
from accountant.learn.clipping import AdaptiveQuantile, ClippingLike, PerLayer, Rule
from accountant.learn.convex import output
from accountant.learn.convex.fit import Fit
from accountant.learn.convex.losses import Logistic
from accountant.learn.convex.mechanism import ObjectivePerturbation
from accountant.learn.convex.moments import private_quantile
from accountant.learn.local import KaryResponse, randomize_laplace
from accountant.learn.models import LogisticRegression, MultilayerPerceptron
from accountant.learn.pate import GNMax
from accountant.learn.plan import Batches, Noise
from accountant.learn.release import Privatiser
from accountant.learn.selection import report_noisy_max
from accountant.learn.validation import silence
from accountant.mechanisms.discrete import DiscreteGaussianVector
from accountant.mechanisms.gaussian import Gaussian
from accountant.noise import SecureGenerator
from accountant.relations import NeighbouringRelation

REPLACE_ONE = NeighbouringRelation.REPLACE_ONE
# Whole runs are audited with these, where nothing else is said.
FULL = Batches(steps=4, sampler="full")
QUIET = Noise(2.0)


def dp_sgd_release(noise: str, n: int, seed: int | None, delta: float, sure: float) -> AuditReport:
    """Audit the release of DP-SGD's noisy sums, with one canary for each coordinate."""
    sigma, norm = 1.0, 0.5
    privatiser = Privatiser(LogisticRegression(n, bias=False), noise, sigma, 100.0)
    generator = SecureGenerator(seed)
    exact = noise == "gaussian"
    return audit_mechanism(
        lambda values: privatiser.release(values, Rule((norm,)), generator)[0],
        norm,
        claimed=Gaussian(sigma) if exact else DiscreteGaussianVector(sigma).epsilon(delta),
        delta=delta,
        observations=n,
        confidence=sure,
        vectorized=True,
        name=f"DP-SGD, one release, {noise.replace('_', ' ')} noise",
    )


def dp_sgd_run(
    kind: str,
    n: int,
    seed: int | None,
    delta: float,
    sure: float,
    batches: Batches = FULL,
    noise: Noise = QUIET,
    clipping_norm: ClippingLike = 1.0,
) -> AuditReport:
    """Audit a whole run of DP-SGD from inside."""
    public = np.random.default_rng(0)
    x = public.standard_normal((120, 3))
    return audit_trainer(
        MultilayerPerceptron((3, 4, 2)),
        x,
        (x[:, 0] > 0).astype(int),
        batches=batches,
        noise=noise,
        clipping_norm=clipping_norm,
        delta=delta,
        canaries=max(64, 2 * n // 5),
        confidence=sure,
        rng=seed,
        name=f"DP-SGD, whole run, {kind}",
    )


def poisson_run(n: int, seed: int | None, delta: float, sure: float) -> AuditReport:
    """Audit a whole run under Poisson sampling."""
    canaries = max(64, 2 * n // 5)
    batches = Batches((120 + canaries) / 4, steps=20)
    return dp_sgd_run("Poisson sampling", n, seed, delta, sure, batches, Noise(1.0))


def output_perturbation(n: int, seed: int | None, delta: float, sure: float) -> AuditReport:
    """Audit output perturbation under replace-one, from two exact minima."""
    # One record of label ±1 and a hinge loss whose slope is 1 at the minimum: they are ±1/λ.
    lam, epsilon = 10.0, 1.0
    distance = output.minimum_sensitivity(slope=1.0, regularization=lam, relation=REPLACE_ONE)
    fit = Fit("audit of output perturbation", epsilon, delta, None, seed)
    return audit_mechanism(
        lambda minima: output.add_noise(fit, minima, distance, REPLACE_ONE).value,
        1.0 / lam,
        baseline=-1.0 / lam,
        claimed=Gaussian(calibrate_sigma(epsilon, delta)),
        delta=delta,
        observations=n,
        confidence=sure,
        vectorized=True,
        name="output perturbation, replace-one",
    )


def objective_perturbation(delta: float) -> AuditReport:
    """Audit objective perturbation of a logistic model in one dimension, by exact masses."""
    lam, noise = 1.0, 3.7
    edges = 60.0 * np.sinh(np.linspace(-6.0, 6.0, 20_001)) / math.sinh(6.0)

    def masses(records: int) -> Any:
        def tails(theta: Any) -> tuple[Any, Any]:
            # The minimum is at theta for this noise, which falls as theta grows.
            b = records * special.expit(-theta) - lam * theta
            return special.ndtr(-b / noise), special.ndtr(b / noise)

        return cell_masses(tails, edges)

    return audit_masses(
        masses(1),
        masses(0),
        claimed=ObjectivePerturbation(Logistic(), data_norm=1.0, regularization=lam, noise=noise),
        delta=delta,
        name="objective perturbation, one dimension",
    )


def k_ary_response(n: int, seed: int | None, sure: float) -> AuditReport:
    """Audit k-ary randomised response."""
    generator = SecureGenerator(seed)
    mechanism = KaryResponse(1.0, 10)
    with silence():  # of the seed, which an audit may have
        reports = [mechanism.randomize(np.full(n, value), rng=generator) for value in (1, 0)]
    scores = [(r == 0).astype(float) - (r == 1) for r in reports]
    return audit_observations(
        *scores, claimed=1.0, delta=0.0, confidence=sure, name="randomised response, k = 10"
    )


def local_laplace(n: int, seed: int | None, sure: float) -> AuditReport:
    """Audit local reports with Laplace noise."""
    generator = SecureGenerator(seed)
    scores = [
        randomize_laplace(np.full(n, value), (0.0, 1.0), 1.0, rng=generator).values
        for value in (0.0, 1.0)
    ]
    return audit_observations(
        *scores, claimed=1.0, delta=0.0, confidence=sure, name="local reports, Laplace noise"
    )


def noisy_maximum(n: int, seed: int | None, sure: float) -> AuditReport:
    """Audit the noisy maximum at its worst case: one score rises and all others fall."""
    generator = SecureGenerator(seed)
    claim = report_noisy_max([0.0, 0.0], 1.0, noise="exponential", rng=generator).mechanism
    scores = [
        np.array(
            [
                report_noisy_max(values, 1.0, noise="exponential", rng=generator).index == 1
                for _ in range(max(100, n // 20))  # calls are slow
            ]
        )
        for values in ([0.0, 1.0, 0.0], [-1.0, 2.0, -1.0])
    ]
    return audit_observations(
        *scores, claimed=claim, delta=0.0, confidence=sure, name="noisy maximum, exponential noise"
    )


def private_median(n: int, seed: int | None, sure: float) -> AuditReport:
    """Audit the private median of three values, one of which is present or absent."""
    seeds = SecureGenerator(seed).words(2 * max(100, n // 20)).tolist()
    scores = [
        np.array(
            [
                private_quantile(
                    np.array(values),
                    0.5,
                    epsilon=2.0,
                    lower=-1.0,
                    upper=1.0,
                    rng=None if seed is None else word,
                ).value.ravel()[0]
                for word in words
            ]
        )
        for values, words in (([0.0, 0.0], seeds[::2]), ([0.0, 0.0, 1.0], seeds[1::2]))
    ]
    return audit_observations(
        *scores, claimed=2.0, delta=0.0, confidence=sure, name="private median"
    )


def two_class_vote(delta: float) -> AuditReport:
    """Audit GNMax with two classes by exact masses, at its worst margin of votes."""
    sigma = 2.0
    scale = sigma * math.sqrt(2.0)
    claimed = GNMax(sigma).answer_mechanism
    reports = []
    for gap in range(-20, 21):
        # One record moves a vote, and the margin by two.
        p, q = (
            [special.ndtr(margin / scale), special.ndtr(-margin / scale)]
            for margin in (gap + 2, gap)
        )
        reports.append(audit_masses(p, q, claimed=claimed, delta=delta, name="GNMax, two classes"))
    return max(reports, key=lambda report: report.epsilon_lower)


Audit = Callable[[int, "int | None", float, float], "AuditReport"]

AUDITS: dict[str, Audit] = {
    "release": lambda n, seed, d, c: dp_sgd_release("gaussian", n, seed, d, c),
    "discrete": lambda n, seed, d, c: dp_sgd_release("discrete_gaussian", n, seed, d, c),
    "full": lambda n, seed, d, c: dp_sgd_run("full batches", n, seed, d, c),
    "poisson": poisson_run,
    "per-layer": lambda n, seed, d, c: dp_sgd_run(
        "per-layer clipping", n, seed, d, c, clipping_norm=PerLayer(1.0)
    ),
    "adaptive": lambda n, seed, d, c: dp_sgd_run(
        "adaptive clipping", n, seed, d, c, clipping_norm=AdaptiveQuantile(1.0)
    ),
    "output": output_perturbation,
    "response": lambda n, seed, d, c: k_ary_response(n, seed, c),
    "laplace": lambda n, seed, d, c: local_laplace(n, seed, c),
    "maximum": lambda n, seed, d, c: noisy_maximum(n, seed, c),
    "median": lambda n, seed, d, c: private_median(n, seed, c),
}
EXACT: dict[str, Callable[[float], AuditReport]] = {
    "objective": objective_perturbation,
    "votes": two_class_vote,
}


def self_audit(
    names: tuple[str, ...] = (),
    *,
    observations: int = 100_000,
    delta: float = 1e-5,
    confidence: float = 0.95,
    seed: int | None = None,
) -> list[AuditReport]:
    """Audit what this package releases.

    Parameters
    ----------
    names : tuple of str
        Which of ``AUDITS`` and ``EXACT``; all when empty.
    observations : int
        For each audit by sampling, under each data set. Whole runs take two fifths as many
        canaries, and releases that are called one by one a twentieth.
    delta : float
        At which ε is compared; pure mechanisms are compared at 0.
    confidence : float
        Of all reports together: the audits by sampling share the error.
    seed : int, optional
        To repeat an audit.

    Returns
    -------
    list of AuditReport

    Notes
    -----
    *Guarantee.* If all claims are true, a report is flagged with probability at most
    1 - confidence (docs/theorems_audit.md, Theorem A9).
    """
    chosen = names or (*AUDITS, *EXACT)
    random = [name for name in chosen if name in AUDITS]
    sure = 1.0 - (1.0 - confidence) / max(1, len(random))
    return [
        AUDITS[name](observations, seed, delta, sure) if name in AUDITS else EXACT[name](delta)
        for name in chosen
    ]

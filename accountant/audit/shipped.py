"""Audits of this package's own releases."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
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
from accountant.learn.convex import perturbation as output
from accountant.learn.convex.fit import Fit
from accountant.learn.convex.losses import Logistic
from accountant.learn.convex.mechanism import ObjectivePerturbation
from accountant.learn.convex.posterior import private_quantile
from accountant.learn.local import KaryResponse, randomize_laplace
from accountant.learn.models import LogisticRegression, MultilayerPerceptron
from accountant.learn.pate import GNMax
from accountant.learn.plan import Batches, Noise
from accountant.learn.release import Privatiser
from accountant.learn.selection import report_noisy_max
from accountant.learn.validation import silence
from accountant.mechanisms.base import Mechanism
from accountant.mechanisms.discrete import DiscreteGaussianVector
from accountant.mechanisms.gaussian import Gaussian
from accountant.noise import SecureGenerator
from accountant.relations import NeighbouringRelation

REPLACE_ONE = NeighbouringRelation.REPLACE_ONE


@dataclass(frozen=True)
class Sampling:
    """How much an audit by sampling observes under each data set, and at what it compares."""

    observations: int
    seed: int | None
    delta: float
    confidence: float

    @property
    def canaries(self) -> int:
        """How many canaries a whole run has."""
        return max(64, 2 * self.observations // 5)

    @property
    def calls(self) -> int:
        """How often a release is called that is slow."""
        return max(100, self.observations // 20)

    def release(self, release: Any, canary: float, name: str, **given: Any) -> AuditReport:
        """Audit a release that takes many values at once."""
        return audit_mechanism(
            release, canary, delta=self.delta, observations=self.observations,
            confidence=self.confidence, vectorized=True, name=name, **given,
        )  # fmt: skip

    def pure(self, scores: Sequence[object], claimed: Mechanism | float, name: str) -> AuditReport:
        """Audit a pure claim by the scores under the two data sets."""
        return audit_observations(
            *scores, claimed=claimed, delta=0.0, confidence=self.confidence, name=name
        )


def dp_sgd_release(noise: str, how: Sampling) -> AuditReport:
    """Audit the release of DP-SGD's noisy sums, with one canary for each coordinate."""
    sigma, norm = 1.0, 0.5
    model = LogisticRegression(how.observations, bias=False)
    privatiser = Privatiser(model, noise, sigma, 100.0)
    generator = SecureGenerator(how.seed)
    exact = noise == "gaussian"
    return how.release(
        lambda values: privatiser.release(values, Rule((norm,)), generator)[0],
        norm,
        f"DP-SGD, one release, {noise.replace('_', ' ')} noise",
        claimed=Gaussian(sigma) if exact else DiscreteGaussianVector(sigma).epsilon(how.delta),
    )


def dp_sgd_run(
    kind: str, how: Sampling, clipping_norm: ClippingLike = 1.0, *, poisson: bool = False
) -> AuditReport:
    """Audit a whole run of DP-SGD from inside: of four full batches, or under Poisson sampling."""
    public = np.random.default_rng(0)
    x = public.standard_normal((120, 3))
    sampled = Batches((len(x) + how.canaries) / 4, steps=20)
    return audit_trainer(
        MultilayerPerceptron((3, 4, 2)),
        x,
        (x[:, 0] > 0).astype(int),
        batches=sampled if poisson else Batches(steps=4, sampler="full"),
        noise=Noise(1.0 if poisson else 2.0),
        clipping_norm=clipping_norm,
        delta=how.delta,
        canaries=how.canaries,
        confidence=how.confidence,
        rng=how.seed,
        name=f"DP-SGD, whole run, {kind}",
    )


def output_perturbation(how: Sampling) -> AuditReport:
    """Audit output perturbation under replace-one, from two exact minima."""
    # One record of label ±1 and a hinge loss whose slope is 1 at the minimum: they are ±1/λ.
    lam, epsilon = 10.0, 1.0
    distance = output.minimum_sensitivity(slope=1.0, regularization=lam, relation=REPLACE_ONE)
    fit = Fit("audit of output perturbation", epsilon, how.delta, None, how.seed)
    return how.release(
        lambda minima: output.add_noise(fit, minima, distance, REPLACE_ONE).value,
        1.0 / lam,
        "output perturbation, replace-one",
        baseline=-1.0 / lam,
        claimed=Gaussian(calibrate_sigma(epsilon, how.delta)),
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


def k_ary_response(how: Sampling) -> AuditReport:
    """Audit k-ary randomised response."""
    generator, mechanism = SecureGenerator(how.seed), KaryResponse(1.0, 10)
    users = np.ones(how.observations, int)
    with silence():  # of the seed, which an audit may have
        reports = [mechanism.randomize(value * users, rng=generator) for value in (1, 0)]
    scores = [(r == 0).astype(float) - (r == 1) for r in reports]
    return how.pure(scores, 1.0, "randomised response, k = 10")


def local_laplace(how: Sampling) -> AuditReport:
    """Audit local reports with Laplace noise."""
    generator, users = SecureGenerator(how.seed), np.ones(how.observations)
    scores = [
        randomize_laplace(value * users, (0.0, 1.0), 1.0, rng=generator).values
        for value in (0.0, 1.0)
    ]
    return how.pure(scores, 1.0, "local reports, Laplace noise")


def noisy_maximum(how: Sampling) -> AuditReport:
    """Audit the noisy maximum at its worst case: one score rises and all others fall."""
    draw = partial(report_noisy_max, noise="exponential", rng=SecureGenerator(how.seed))
    claim = draw([0.0, 0.0], 1.0).mechanism
    scores = [
        np.array([draw(values, 1.0).index == 1 for _ in range(how.calls)])
        for values in ([0.0, 1.0, 0.0], [-1.0, 2.0, -1.0])
    ]
    return how.pure(scores, claim, "noisy maximum, exponential noise")


def private_median(how: Sampling) -> AuditReport:
    """Audit the private median of three values, one of which is present or absent."""
    seeds = SecureGenerator(how.seed).words(2 * how.calls).tolist()
    draw = partial(private_quantile, quantile=0.5, epsilon=2.0, lower=-1.0, upper=1.0)
    scores = [
        np.array(
            [
                float(draw(np.array(values), rng=None if how.seed is None else w).value[0])
                for w in words
            ]
        )
        for values, words in (([0.0, 0.0], seeds[::2]), ([0.0, 0.0, 1.0], seeds[1::2]))
    ]
    return how.pure(scores, 2.0, "private median")


def two_class_vote(delta: float) -> AuditReport:
    """Audit GNMax with two classes by exact masses, at its worst margin of votes."""
    sigma = 2.0
    scale = sigma * math.sqrt(2.0)
    claimed = GNMax(sigma).answer_mechanism
    reports = []
    for gap in range(-20, 21):
        # One record moves a vote, and the margin by two.
        p, q = (special.ndtr([x / scale, -x / scale]) for x in (gap + 2, gap))
        reports.append(audit_masses(p, q, claimed=claimed, delta=delta, name="GNMax, two classes"))
    return max(reports, key=lambda report: report.epsilon_lower)


AUDITS: dict[str, Callable[[Sampling], AuditReport]] = {
    "release": partial(dp_sgd_release, "gaussian"),
    "discrete": partial(dp_sgd_release, "discrete_gaussian"),
    "full": partial(dp_sgd_run, "full batches"),
    "poisson": partial(dp_sgd_run, "Poisson sampling", poisson=True),
    "per-layer": partial(dp_sgd_run, "per-layer clipping", clipping_norm=PerLayer(1.0)),
    "adaptive": partial(dp_sgd_run, "adaptive clipping", clipping_norm=AdaptiveQuantile(1.0)),
    "output": output_perturbation,
    "response": k_ary_response,
    "laplace": local_laplace,
    "maximum": noisy_maximum,
    "median": private_median,
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
    how = Sampling(observations, seed, delta, 1.0 - (1.0 - confidence) / max(1, len(random)))
    return [AUDITS[name](how) if name in AUDITS else EXACT[name](delta) for name in chosen]

"""The document that states an ε and carries what is needed to check it."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accountant import checks
from accountant.certificates.evidence import SHARE, evidence_of
from accountant.certificates.statement import steps_of
from accountant.certificates.step import Step
from accountant.environment import to_nearest
from accountant.errors import DomainError, UnsupportedError

if TYPE_CHECKING:
    from accountant.certificates.evidence import Steps
    from accountant.checks import Scalar
    from accountant.ledger import Accountant
    from accountant.mechanisms.base import Mechanism

__all__ = ["Certificate", "certificate"]

# The part of δ that is left to the checker's rounding, aliases and truncation.
SLACK = 3e-9
# How much larger an ε is claimed where no evidence was found for it: relatively, at ε = 0 in all.
LARGER = (1e-4, 1e-3)


@dataclass(frozen=True)
class Certificate:
    """A claim about a release, with evidence that another program can check.

    Attributes
    ----------
    epsilon, delta : float
        The claim: the release is (ε, δ)-private under ``relation``.
    relation : str
        The neighbouring relation.
    text : str
        The certificate itself: JSON, as docs/certificates.md describes it.
    larger : float
        By how much the claimed ε is larger than the release's, relatively (of an ε of 0, in all),
        because no evidence was found for that: 0, 1e-4 or 1e-3.
    """

    epsilon: float
    delta: float
    relation: str
    text: str
    larger: float = 0.0


@to_nearest
def certificate(release: Mechanism | Accountant, delta: Scalar) -> Certificate:
    """Return a certificate that a release is (ε, ``delta``)-private.

    Parameters
    ----------
    release : Mechanism or Accountant
        Gaussian noise, plain, on a Poisson sample or with random shifts (groups of records, draws
        with replacement, mixtures), composed; randomised response of one ε; or a ledger of such
        releases.
    delta : float
        δ in (0, 1).

    Returns
    -------
    Certificate
        Its ε is the release's ε at δ(1 - 3e-9): the rest is left to the checker. Where rare events
        decide and no evidence was found, it is larger by 0.01 or 0.1 percent, as ``larger`` says.

    Raises
    ------
    UnsupportedError
        The release is none of these, or no evidence was found that the checker could follow.

    Notes
    -----
    *Guarantee* — none is needed from this function: the checker (``dp-verify``) accepts a document
    only if it has shown the claim by itself, in ball arithmetic. A wrong document is refused.

    *Algorithm* — a search in plain floating point for a vertical line, a step and a path on which
    Theorems K1 to K4 show the claim; tens of milliseconds.
    """
    delta = checks.number(checks.DELTA, delta)
    if not 0.0 < delta < 1.0:
        raise DomainError(f"delta must be in (0, 1); got {delta!r}")
    mechanism = _whole(release)
    steps = steps_of(mechanism)
    rest = delta * (1.0 - SLACK) - _missing(steps)
    if not rest > 0.0:
        raise UnsupportedError(f"delta must be larger for the mixtures here; got {delta!r}")
    epsilon = float(mechanism.epsilon(rest))
    if not epsilon < math.inf:
        raise UnsupportedError(f"no finite ε is known for {mechanism!r} at delta = {delta!r}")
    relation = mechanism.relation.words
    least, larger, evidence = epsilon, 0.0, None
    for larger in (0.0, *LARGER):
        epsilon, share = least * (1.0 + larger) if least > 0.0 else larger, SHARE
        if larger:
            share = max(share, 0.02 * (1.0 - float(mechanism.delta(epsilon)) / delta))
        try:
            evidence = _both(steps, epsilon, delta, share)
            break
        except UnsupportedError:
            if larger == LARGER[-1]:
                raise
    claim = {
        "relation": relation,
        "direction": "both",
        "epsilon": epsilon,
        "delta": delta,
        "parts": [step.listed() for step in steps],
    }
    document = {"format": "dp-certificate", "version": 1, "claim": claim, "evidence": evidence}
    if larger:
        document["note"] = f"epsilon is larger than that of the release by {larger:g} of it"
    text = json.dumps(document, allow_nan=False, separators=(",", ":")) + "\n"
    return Certificate(epsilon, delta, relation, text, larger)


def _missing(steps: Steps) -> float:
    return sum(step.lost_delta for step in steps if isinstance(step, Step))


def _both(steps: Steps, epsilon: float, delta: float, share: float) -> dict[str, object]:
    return {
        way: evidence_of(steps, epsilon, delta, remove=way == "remove", share=share)
        for way in ("remove", "add")
    }


def _whole(release: Mechanism | Accountant) -> Mechanism:
    """Return one mechanism: a ledger is the composition of its releases."""
    from accountant.composition import composed
    from accountant.ledger import Accountant

    if not isinstance(release, Accountant):
        return release
    if not len(release):
        raise DomainError("release must not be an empty ledger")
    return composed(release.counts)

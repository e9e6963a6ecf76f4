"""The document that states an ε and carries what is needed to check it."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from accountant import checks
from accountant.certificates.evidence import SHARE, evidence_of
from accountant.certificates.finite import Law
from accountant.certificates.grid import find_grid
from accountant.certificates.limits import require_room
from accountant.certificates.statement import statement_of
from accountant.certificates.step import Step
from accountant.checks import Scalar
from accountant.environment import to_nearest
from accountant.errors import DomainError, UnsupportedError
from accountant.ledger import Accountant
from accountant.mechanisms.base import Mechanism
from accountant.pairs.base import Problems

if TYPE_CHECKING:
    Evidence: TypeAlias = dict[str, dict[str, Any]]


# The part of δ that is left to the checker's rounding, aliases and truncation.
SLACK = 3e-9
# How much larger an ε is claimed where no evidence was found for it: relatively, at ε = 0 in all.
LARGER = (1e-4, 1e-3)
DIRECTIONS = ("remove", "add")


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
        because no evidence was found for that.
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
        with replacement, mixtures); Laplace, discrete Laplace and discrete Gaussian noise,
        randomised response, pure and approximate guarantees and pairs of PMFs, also on a Poisson
        sample and beside Gaussian noise with one shift; or a ledger of such releases.
    delta : float
        δ in (0, 1).

    Returns
    -------
    Certificate
        Its ε is the release's ε at δ(1 - 3e-9): the rest is left to the checker. On a grid it is
        that of the grid, and where rare events decide and no evidence was found it is larger by
        0.01 or 0.1 percent: ``larger`` says by how much.

    Raises
    ------
    UnsupportedError
        The release is none of these, loses nothing, has numbers that the format has no room for
        (δ below 1e-200, say), or no evidence was found that the checker could follow.

    Notes
    -----
    *Guarantee* — none is needed from this function: the checker (``dp-verify``) accepts a document
    only if it has shown the claim by itself, in ball arithmetic. A wrong document is refused.

    *Algorithm* — a search in plain floating point for a vertical line, a step and a path on which
    Theorems K1 to K4 show the claim, or for knots on which K5 does.
    """
    delta = checks.number(checks.DELTA, delta)
    if not 0.0 < delta < 1.0:
        raise DomainError(f"delta must be in (0, 1); got {delta!r}")
    mechanism = _whole(release)
    parts, problems = statement_of(mechanism)
    rest = delta * (1.0 - SLACK) - sum(each.lost_delta for each in parts if isinstance(each, Step))
    if not rest > 0.0:
        raise UnsupportedError(f"delta must be larger for the mixtures here; got {delta!r}")
    least = float(mechanism.epsilon(rest))
    if not least < math.inf:
        raise UnsupportedError(f"no finite ε is known for {mechanism!r} at delta = {delta!r}")
    require_room([part.listed() for part in parts], least, delta)
    epsilon, evidence = _shown(mechanism, parts, problems, least, delta)
    larger = epsilon - least if least == 0.0 else (epsilon - least) / least
    claim = {
        "relation": mechanism.relation.words,
        "direction": "both",
        "epsilon": epsilon,
        "delta": delta,
        "parts": [part.listed() for part in parts],
    }
    document = {"format": "dp-certificate", "version": 1, "claim": claim, "evidence": evidence}
    if larger > 0.0:
        document["note"] = f"epsilon is larger than the accountant's by {larger:.1e} of it"
    text = json.dumps(document, allow_nan=False, separators=(",", ":")) + "\n"
    return Certificate(epsilon, delta, mechanism.relation.words, text, larger)


def _shown(
    mechanism: Mechanism, parts: list[Step | Law], problems: Problems, least: float, delta: float
) -> tuple[float, Evidence]:
    """Return an ε, ``least`` if possible, and the evidence for it in both directions."""
    steps = [part for part in parts if isinstance(part, Step)]
    if len(steps) < len(parts):
        return _on_grids(problems, least, delta)
    try:
        return least, {way: _line(steps, least, delta, way) for way in DIRECTIONS}
    except UnsupportedError:
        pass
    removal = find_grid(problems[0], least, delta)
    if removal is not None and removal.epsilon <= least * (1.0 + LARGER[0]):
        epsilon = removal.epsilon
        return epsilon, {
            "remove": removal.evidence,
            "add": _line(steps, epsilon, delta, "add"),
        }
    for larger in LARGER:
        epsilon = least * (1.0 + larger) if least > 0.0 else larger
        share = max(SHARE, 0.02 * (1.0 - float(mechanism.delta(epsilon)) / delta))
        try:
            return epsilon, {way: _line(steps, epsilon, delta, way, share) for way in DIRECTIONS}
        except UnsupportedError:
            if larger == LARGER[-1]:
                raise
    raise AssertionError


def _line(
    steps: list[Step], epsilon: float, delta: float, way: str, share: float = SHARE
) -> dict[str, Any]:
    return evidence_of(steps, epsilon, delta, remove=way == "remove", share=share)


def _on_grids(problems: Problems, least: float, delta: float) -> tuple[float, Evidence]:
    found = [find_grid(parts, least, delta) for parts in dict.fromkeys(problems)]
    if any(each is None for each in found):
        raise UnsupportedError(
            f"no grid of the largest size was found at ε = {least!r}, δ = {delta!r}"
        )
    shown = [each for each in found if each is not None]
    evidence = dict(zip(DIRECTIONS, (shown[0].evidence, shown[-1].evidence), strict=True))
    return max(each.epsilon for each in shown), evidence


def _whole(release: Mechanism | Accountant) -> Mechanism:
    """Return one mechanism: a ledger is the composition of its releases."""
    from accountant.composition import composed
    from accountant.ledger import Accountant
    from accountant.mechanisms.base import Mechanism

    if not isinstance(release, Accountant):
        checks.instance("release", release, (Mechanism,), "a mechanism or an Accountant")
        return release
    if not len(release):
        raise DomainError("release must not be an empty ledger")
    return composed(release.counts)

"""The document that states an ε and carries what is needed to check it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from accountant import checks
from accountant._basics.rounding import U
from accountant.certificates.grid import find_grid
from accountant.certificates.line import Search
from accountant.certificates.rare import find_rare_line
from accountant.certificates.rule import NoLineError, Step
from accountant.checks import Scalar
from accountant.composition import composed
from accountant.environment import to_nearest
from accountant.errors import DomainError, UnsupportedError
from accountant.ledger import Accountant
from accountant.mechanisms.base import Mechanism
from accountant.mechanisms.integer_laws import GaussianSumPair, GeometricPair
from accountant.mechanisms.laplace import LaplacePair
from accountant.mechanisms.user_defined import PMFPair
from accountant.pairs.atoms import ResponsePair
from accountant.pairs.base import DominatingPair, Problems
from accountant.sampling.sampled_atoms import SampledAtoms
from accountant.sampling.sampled_pairs import SampledPair

# Of the numbers of a part, and of elements of its lists, by their keys in the document.
RANGES = {
    "count": (1, 10**15),
    "sigma": (1e-9, 1e9),
    "shifts": (1e-9, 1e9),
    "weights": (0.0, 1.0),
    "lost": (0.0, 1.0),
    "laplace": (1e-9, 700.0),
    "randomised_response": (0.0, 700.0),
    "categories": (2, 10**9),
    "infinite": (0.0, 1.0),
    "discrete_laplace": (1e-3, 1e4),
    "discrete_gaussian": (1e-3, 1e4),
    "sensitivity": (1, 10**4),
    "p": (0.0, 1.0),
    "q": (0.0, 1.0),
    "sampled": (1e-12, 1.0),
}
LARGEST_EPSILON = 1e18
# Below this the checker would take too many digits.
LEAST_DELTA = 1e-200
LONGEST_LIST = 2000


def require_room(parts: Iterable[dict[str, Any]], epsilon: float, delta: float) -> None:
    """Refuse a claim that the checker would not read."""
    listed = list(parts)
    if not listed:
        raise UnsupportedError("the release loses nothing: there is nothing to check")
    for part in listed:
        for key, value in part.items():
            low, high = RANGES[key]
            each = value if isinstance(value, list) else [value]
            if len(each) > LONGEST_LIST:
                raise UnsupportedError(
                    f"{key} must have at most {LONGEST_LIST} elements for a certificate;"
                    f" got {len(each)}"
                )
            if not low <= min(each) <= max(each) <= high:
                raise UnsupportedError(
                    f"{key} must be in [{low:g}, {high:g}] for a certificate; got {value!r}"
                )
    if not epsilon <= LARGEST_EPSILON:
        raise UnsupportedError(
            f"ε must be at most {LARGEST_EPSILON:g} for a certificate; got {epsilon!r}"
        )
    if not delta >= LEAST_DELTA:
        raise UnsupportedError(
            f"delta must be at least {LEAST_DELTA:g} for a certificate; got {delta!r}"
        )


MOST_LISTED = 2000


class Law(NamedTuple):
    """Releases of a law, described as the document has it."""

    described: dict[str, Any]
    times: int

    def listed(self) -> dict[str, Any]:
        """Return the part as the document has it."""
        return self.described | {"count": self.times}


def _described(pair: DominatingPair, reverse: bool) -> dict[str, Any] | None:
    """Describe the law of a pair, or of one that is the second direction of a release."""
    if isinstance(pair, SampledPair | SampledAtoms):
        # The sample of the inner pair, which is that of removal; of addition it is the reverse.
        inner = _described(pair.reverse if pair.add and pair.reverse else pair.inner, False)
        return None if inner is None or "sampled" in inner else inner | {"sampled": pair.q}
    if isinstance(pair, ResponsePair) and pair.bound > 0.0:
        found = {"randomised_response": pair.bound, "categories": pair.others + 2}
        return found | ({"infinite": pair.infinite} if pair.infinite else {})
    if isinstance(pair, LaplacePair) and pair.reach > 0.0:
        return {"laplace": pair.reach}
    if isinstance(pair, GeometricPair) and pair.shift:
        return {"discrete_laplace": pair.spread, "sensitivity": pair.shift}
    if isinstance(pair, GaussianSumPair) and pair.shift and pair.clients == 1:
        return {"discrete_gaussian": pair.spread, "sensitivity": pair.shift}
    if isinstance(pair, PMFPair) and len(pair.p) <= MOST_LISTED:
        p, q = (pair.q, pair.p) if reverse else (pair.p, pair.q)
        return {"p": list(p), "q": list(q)}
    return None


def statement_of(release: Mechanism) -> tuple[list[Step | Law], Problems]:
    """Return the parts of a release, and its pairs in the direction of removal and of addition."""
    problems = release.profile().problems
    found = [
        [_part(pair, count, reverse=k > 0) for pair, count in parts]
        for k, parts in enumerate(problems)
    ]
    first = found[0] if found else []
    if any([one.listed() for one in other] != [one.listed() for one in first] for other in found):
        raise UnsupportedError(
            f"{release!r} has alternatives; a certificate is for one list of releases"
        )
    return first, (problems[0], problems[-1])


def _part(pair: DominatingPair, count: int, *, reverse: bool) -> Step | Law:
    part, mixture = pair.gaussian_part, pair.gaussian_mixture
    if part is not None:
        one = np.array([1.0])
        return Step(part.noise_multiplier, one, one * part.sampling_probability, count)
    if mixture is None:
        law = _described(pair, reverse)
        if law is not None:
            return Law(law, count)
        raise UnsupportedError(
            "a certificate is for Gaussian noise and its mixtures, Laplace and discrete noise,"
            f" randomised response, stated guarantees and pairs of PMFs; got {pair!r}"
        )
    # Rounded up: more weight on farther shifts dominates (Theorem D8).
    wide = mixture.weight_error + 4.0 * U if mixture.weight_error else 0.0
    weights = np.array(mixture.weights) * (1.0 + wide)
    if not weights.sum() + mixture.remainder < 1.0 - 1e-9:
        raise UnsupportedError(f"{pair!r} has a weight of 0 below 1e-9")
    shifts = np.array(mixture.shifts) * (1.0 + mixture.shift_error)
    return Step(mixture.noise_multiplier, shifts, weights, count, mixture.remainder)


# The part of δ that each of aliases, truncation and the path may take.
SHARE = 2e-11


def evidence_of(
    steps: list[Step], epsilon: float, delta: float, *, remove: bool, share: float = SHARE
) -> dict[str, Any]:
    """Return evidence that one direction's profile of Gaussian steps at ε is at most δ.

    ``share`` of δ is what each source of error may take.
    """
    if all(step.is_plain for step in steps):
        return {"kind": "plain"}
    stays = math.fsum(step.count * math.log1p(-step.moves) for step in steps if step.moves < 1.0)
    sometimes_stays = all(step.moves < 1.0 for step in steps)
    if sometimes_stays and (-math.expm1(stays) <= delta or (not remove and epsilon >= -stays)):
        return {"kind": "never_moved"}
    if len(steps) == 1 and steps[0].count == 1:
        return {"kind": "one_step", "threshold": _threshold(steps[0], epsilon, remove)}
    try:
        search = Search(steps, epsilon, delta, remove=remove, share=share)
        return search.chernoff() or search.line()
    except NoLineError:
        found = find_rare_line(steps, epsilon, delta, share) if remove else None
        if found is not None:
            return found
        raise UnsupportedError(
            f"no certificate of the largest size was found at ε = {epsilon!r}, δ = {delta!r}"
        ) from None


def _threshold(step: Step, epsilon: float, remove: bool) -> float:
    """Return a point where the loss of one step is just below ε, also where that is 0."""
    if remove:
        at = step.inverse_loss(epsilon * (1.0 - 1e-12))
        return at - 2.0 * math.ulp(at)
    at = step.inverse_loss(-epsilon * (1.0 - 1e-12))
    return at + 2.0 * math.ulp(at)


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

    def lines(epsilon: float, share: float = SHARE) -> Evidence:
        ways = (
            evidence_of(steps, epsilon, delta, remove=way, share=share) for way in (True, False)
        )
        return dict(zip(DIRECTIONS, ways, strict=True))

    with suppress(UnsupportedError):
        return least, lines(least)
    removal = find_grid(problems[0], least, delta)
    if removal is not None and removal.epsilon <= least * (1.0 + LARGER[0]):
        added = evidence_of(steps, removal.epsilon, delta, remove=False)
        return removal.epsilon, {"remove": removal.evidence, "add": added}
    for larger in LARGER:
        epsilon = least * (1.0 + larger) if least > 0.0 else larger
        share = max(SHARE, 0.02 * (1.0 - float(mechanism.delta(epsilon)) / delta))
        try:
            return epsilon, lines(epsilon, share)
        except UnsupportedError:
            if larger == LARGER[-1]:
                raise
    raise AssertionError


def _on_grids(problems: Problems, least: float, delta: float) -> tuple[float, Evidence]:
    found = [find_grid(parts, least, delta) for parts in dict.fromkeys(problems)]
    shown = [each for each in found if each is not None]
    if len(shown) < len(found):
        raise UnsupportedError(
            f"no grid of the largest size was found at ε = {least!r}, δ = {delta!r}"
        )
    evidence = dict(zip(DIRECTIONS, (shown[0].evidence, shown[-1].evidence), strict=True))
    return max(each.epsilon for each in shown), evidence


def _whole(release: Mechanism | Accountant) -> Mechanism:
    """Return one mechanism: a ledger is the composition of its releases."""
    if not isinstance(release, Accountant):
        checks.instance("release", release, (Mechanism,), "a mechanism or an Accountant")
        return release
    if not len(release):
        raise DomainError("release must not be an empty ledger")
    return composed(release.counts)

"""The answers to what a reviewer asks, as pairs of a question and a sentence or two.

``summary`` answers the questions of the page's first section; ``evaluation`` those that NIST SP
800-226 lists for whoever evaluates a claim of differential privacy.
"""

from __future__ import annotations

import math

from accountant._basics.display import percent, plain, text_down, text_up
from accountant.report import facts
from accountant.report.contents import MODELS, UNSTATED, Contents

# Digits shown; the certificates have more.
DIGITS = 5
_SEARCHES = ("BestOfRuns", "BestOfPoissonRuns", "FirstAboveThreshold", "PrivateSelection")


def summary(s: Contents) -> tuple[tuple[str, str], ...]:
    """Return the questions and answers of the first section."""
    found = (
        ("Marked as not private", _not_private(s)),
        ("What is protected", f"{facts.PROTECTED.get(s.relation, 'nothing')}: {s.unit}."),
        ("Neighbouring relation", f"{s.relation}. {s.definition}"),
        ("Who must be trusted", MODELS[s.deployment.model]),
        ("How large this ε is", _size(s)),
        ("Whether δ is small", s.deployment.delta_words(s.headline.delta)),
        ("Budget", _budget(s)),
        ("Releases", _releases(s)),
        ("How records were chosen", _sampling(s)),
        ("A person with several records", _user(s)),
        ("What was tuned on the data", _tuning(s)),
        ("Outside of the guarantee", _outside(s)),
        ("Without any δ", _pure(s)),
        ("In one number for all δ", _gaussian(s)),
        ("Exactness", _exactness(s)),
        ("How to check the number", command(s)),
    )
    return tuple((question, answer) for question, answer in found if answer)


def evaluation(s: Contents) -> tuple[tuple[str, str], ...]:
    """Return the fields of NIST SP 800-226, in its order from the privacy parameter down."""
    variant = "pure" if s.headline.delta == 0.0 else "approximate"
    return (
        ("Privacy parameters", f"{_headline(s)}; {variant} differential privacy; {s.tone.word}."),
        ("Unit of privacy", f"{s.unit}. {s.deployment.user_words()}"),
        ("Neighbouring data sets", f"{s.relation} ({_bounded(s)}). {s.definition}"),
        ("Trust model", MODELS[s.deployment.model]),
        ("Mechanisms and composition", f"{_releases(s)} Composed by: {s.analysis} ({s.reason})."),
        ("Hyper-parameters and preprocessing", _tuning(s)),
        ("Correctness of the arithmetic", _ARITHMETIC),
        ("Randomness and floating point of the noise", _RANDOMNESS),
        ("Side channels", _CHANNELS),
        ("Access control and data collection", _ACCESS),
        ("Accuracy and bias of what was released", "Not part of a privacy statement."),
    )


_ARITHMETIC = (
    "Every number here is certified: discretisation, truncation and round-off are inside the"
    " bounds, and each bound names its theorem."
)
_RANDOMNESS = (
    "Not visible in a ledger: check that the noise came from a secure generator and was rounded as"
    " its theorem assumes. The trainers of accountant do both (theorems T and V)."
)
_CHANNELS = (
    "Not covered: running time, memory, energy, and messages of errors may depend on the data."
)
_ACCESS = (
    "Not covered: who may read the records, how they were collected, and for how long they are"
    " kept."
)


def command(s: Contents) -> str:
    """Return how to check the number."""
    which = f", where LEDGER is the file with the checksum {s.ledger}" if s.ledger else ""
    return f"accountant show LEDGER --delta {plain(s.headline.delta)} prints it again{which}."


def certify(s: Contents) -> str:
    """Return the command that makes the certificate of the statement again."""
    delta = plain(s.headline.delta)
    return f"accountant certify --ledger LEDGER --delta {delta} -o certificate.json"


def _headline(s: Contents) -> str:
    if not s.headline.epsilon < math.inf:
        return f"no finite ε is known at δ = {plain(s.headline.delta)}"
    return f"ε ≤ {text_up(s.headline.epsilon, DIGITS)} at δ = {plain(s.headline.delta)}"


def _bounded(s: Contents) -> str:
    return {"add-or-remove": "unbounded", "replace-one": "bounded"}.get(s.relation, "one record")


def _size(s: Contents) -> str:
    even = next((g for g in s.guesses if g.prior == 0.5), None)
    told = f"{s.tone.word.capitalize()}."
    if even is None or not s.total:
        return told
    return (
        f"{told} Whoever guesses by the release whether a given record was used, and would be right"
        f" half of the time without it, is right at most {percent(even.accuracy)} of the time."
    )


def _not_private(s: Contents) -> str:
    if not s.not_private:
        return ""
    said = "; ".join(s.not_private)
    return (
        f"The ledger says of some releases: {said}. No number here holds against who can recompute"
        " the noise."
    )


def _budget(s: Contents) -> str:
    if s.budget is None:
        return "The ledger enforces none: nothing would have stopped further releases."
    limit, spent, most = s.budget.limit, "", s.budget.epsilon
    if most and s.headline.delta == s.budget.delta and s.headline.epsilon < math.inf:
        share = 100.0 * s.headline.epsilon / most
        spent = f" By the ε above, {share:.3g} % of it is spent."
    return f"The ledger refuses every release beyond {limit} (filter: {s.budget.filter}).{spent}"


def _releases(s: Contents) -> str:
    kinds = len(s.releases)
    return f"{s.total:,}, of {kinds} kind{'' if kinds == 1 else 's'}."


def _sampling(s: Contents) -> str:
    ways = dict.fromkeys(
        row.sampler + (f" ({row.sampling})" if row.sampling else "") for row in s.releases
    )
    shown = list(ways)[:4]
    more = f"; and {len(ways) - 4} more ways" if len(ways) > 4 else ""
    return ("; ".join(shown) or "nothing was released") + more + "."


def _user(s: Contents) -> str:
    words = s.deployment.user_words()
    if s.user is None:
        return words
    if s.user.epsilon is None:
        return f"{words} No ε is known for such a person: {s.user.note}."
    if not s.user.epsilon < math.inf:
        return f"{words} For such a person no finite ε is known at this δ."
    at = plain(s.headline.delta)
    return f"{words} For such a person ε ≤ {text_up(s.user.epsilon, DIGITS)} at δ = {at}."


def _tuning(s: Contents) -> str:
    searches = sum(row.count for row in s.releases if row.mechanism.startswith(_SEARCHES))
    paid = (
        f" The ledger has {searches:,} searches over private runs, which the ε above pays for."
        if searches
        else ""
    )
    told = s.deployment.tuning or (
        f"{UNSTATED} Choices made on these records are paid for only where they are releases of the"
        " ledger; others weaken the guarantee."
    )
    return told + paid


def _outside(s: Contents) -> str:
    told = s.deployment.outside or UNSTATED
    return f"{told} Whatever else was published about these records is not part of the ε above."


def _pure(s: Contents) -> str:
    if s.pure is None or s.headline.delta == 0.0 or not s.total:
        return ""
    return f"ε ≤ {text_up(s.pure.epsilon, DIGITS)} at δ = 0 (pure differential privacy)."


def _gaussian(s: Contents) -> str:
    if (found := s.gaussian) is None:
        return ""
    mu = text_up(found.mu, DIGITS)
    held = "every δ" if found.delta == 0.0 else f"every δ ≥ {plain(found.delta)}"
    if found.delta == 0.0:
        return f"μ = {mu}: exactly Gaussian differential privacy, at every δ (Theorem C8)."
    return (
        f"μ = {mu}: at {held} the releases are at most as visible as by μ-Gaussian differential"
        f" privacy (Theorem R3). Its trade-off curve is at most {text_up(found.regret, 2)} from the"
        " exact one (the regret, Theorem R4)."
    )


def _exactness(s: Contents) -> str:
    between = ""
    if s.headline.epsilon_lower > 0.0 and s.headline.epsilon < math.inf:
        between = (
            "The ε of the worst cases stated by the theorems below lies between"
            f" {text_down(s.headline.epsilon_lower, DIGITS)} and"
            f" {text_up(s.headline.epsilon, DIGITS)}. "
        )
    rounded = (
        " The parameters of very many different steps were rounded to the safe side first (Theorem"
        " R2)."
        if s.rounded
        else ""
    )
    return (
        f"{between}Every number here is rounded to the safe side, and none is below the truth."
        f" Analysis: {s.analysis} ({s.reason}).{rounded}"
    )

"""Checks certificates of differential privacy; see docs/certificates.md of the accountant."""

from time import process_time

from flint import ctx

from dp_verifier.document import Refused, checked, need, read
from dp_verifier.evidence import BOUNDS
from dp_verifier.laws import Shifted, ball, law_of

__all__ = ["Refused", "check"]

PRECISIONS, SECONDS = (128, 192, 384, 768, 1536), 12  # after which no higher precision is begun


def check(text):
    """Return the claim, and a line about each direction; raise Refused unless all is shown."""
    try:
        document = checked(read(text), "document", "document")
        return document.claim, _shown(document.claim, document.evidence)
    except (ArithmeticError, ValueError, TypeError, AttributeError, MemoryError) as error:
        raise Refused(f"the check broke off: {type(error).__name__}") from error


def _shown(claim, evidence):
    for part in claim.parts if claim.relation == "replace-one" else ():  # (K5, 2)
        whole = getattr(part, "weights", [1]) == [1] and not getattr(part, "sampled", 0)
        need(whole, "the pair of a sample is not that of replacing a record")
    given, started, shown = checked(evidence, claim.direction, "evidence"), process_time(), []
    for direction, case in vars(given).items():
        bits, found = _decided(claim, case, direction == "remove", started)
        shown.append(f"{direction}: H <= {found}, claim {float(claim.delta)} ({case.kind}, {bits})")
    return shown


def _decided(claim, case, remove, started):
    """Raise the precision until the bound is at most delta, or certainly is not."""
    before, width = ctx.prec, None
    try:
        for bits in PRECISIONS[claim.delta < 1e-24 :]:
            ctx.prec = max(bits, getattr(case, "bits", 0) + 64)
            laws, delta = [law_of(part) for part in claim.parts], ball(claim.delta)
            noise = all(isinstance(law, Shifted) for law in laws)  # (K4, 1), (K6, 2)
            need(noise or case.kind == "grid", "this evidence is for noise with random shifts")
            found = BOUNDS[case.kind](laws, case, remove, ball(claim.epsilon))
            found += sum(law.lost for law in laws)
            if found <= delta:
                return ctx.prec, found.upper().str(8)
            # What more digits do not narrow is an error bound of the evidence, not of rounding.
            wide = width is not None and found.rad() > width
            if found > delta or wide or process_time() - started > SECONDS:
                break
            width = found.rad() / 1000
        raise Refused(f"H({float(claim.epsilon)}) <= {found.str(8)}, claimed {float(claim.delta)}")
    finally:
        ctx.prec = before

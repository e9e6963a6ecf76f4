"""Checks a whole certificate: reads the claim, runs the evidence of each direction."""

from time import monotonic

from flint import arb, ctx

from dp_verifier.document import Refused, fields, items, number, read, word
from dp_verifier.evidence import KINDS
from dp_verifier.laws import Finite, Shifted, ball

PRECISIONS = (128, 256, 512, 1024)
SECONDS = 50
MOST_PARTS = 100
RELATIONS = {"add-or-remove", "replace-one", "zero-out"}
DIRECTIONS = {"both": ("remove", "add"), "remove": ("remove",), "add": ("add",)}


class Claim:
    """The statement: for the composition of these pairs, H(epsilon) <= delta."""

    def __init__(self, given):
        fields(given, "claim", ("relation", "direction", "epsilon", "delta", "parts"))
        self.relation = word(given["relation"], "relation", RELATIONS)
        self.directions = DIRECTIONS[word(given["direction"], "direction", DIRECTIONS)]
        self.epsilon = number(given["epsilon"], "epsilon", 0, "1e18")
        self.delta = number(given["delta"], "delta", 0, 1)
        self.given = given
        self.laws = []
        for part in items(given["parts"], "parts", MOST_PARTS):
            kind = Finite if isinstance(part, dict) and "categories" in part else Shifted
            self.laws.append(kind(part))

    def refresh(self):
        """Make the balls of all parameters at the precision that now holds; return epsilon."""
        for law in self.laws:
            law.refresh()
        return ball(self.epsilon)


def check(text):
    """Return the claim, and a line about each direction; raise Refused unless all is shown."""
    try:
        return _checked(text)
    except (ArithmeticError, ValueError, TypeError, AttributeError, MemoryError) as error:
        raise Refused(f"the check broke off: {type(error).__name__}") from error


def _checked(text):
    document = fields(read(text), "document", ("format", "version", "claim", "evidence"), ("note",))
    word(document["format"], "format", {"dp-certificate"})
    number(document["version"], "version", 1, 1)
    claim, started = Claim(document["claim"]), monotonic()
    evidence = fields(document["evidence"], "evidence", claim.directions)
    shown = []
    for direction in claim.directions:
        given = evidence[direction]
        if not isinstance(given, dict):
            raise Refused("evidence must be an object")
        kind = KINDS[word(given.get("kind"), "kind", KINDS)]
        case = kind(claim.laws, given, direction == "remove")
        bits, found = _decide(claim, case, started)
        shown.append(f"{direction}: {given['kind']}, H(epsilon) <= {found} at {bits} bits")
    return claim, shown


def _decide(claim, case, started):
    """Raise the precision until the bound is at most delta, or certainly is not."""
    before, width = ctx.prec, None
    try:
        for bits in PRECISIONS:
            ctx.prec = bits
            found = case.bound(claim.refresh()) + sum((u.lost_mass() for u in claim.laws), arb(0))
            if found <= ball(claim.delta):
                return bits, found.upper().str(8)
            if found > ball(claim.delta):
                raise Refused(f"the evidence shows {found.str(8)} only, more than delta")
            # What more digits do not narrow is an error bound of the evidence, not of rounding.
            if monotonic() - started > SECONDS / 4 or (width is not None and found.rad() > width):
                break
            width = found.rad() / 1000
    finally:
        ctx.prec = before
    raise Refused(f"the evidence shows no more than {found.str(8)}")

"""Checks a whole certificate: reads the claim, runs the evidence of each direction."""

from time import process_time

from flint import arb, ctx

from dp_verifier.document import Refused, fields, items, number, read, word
from dp_verifier.evidence import KINDS
from dp_verifier.laws import Finite, Laplace, Shifted, ball

PRECISIONS = (192, 384, 768, 1536)
SECONDS = 50
MOST_PARTS = 100
RELATIONS = {"add-or-remove", "replace-one", "zero-out"}
KEYS = {"sigma": Shifted, "laplace": Laplace}
DIRECTIONS = {"both": ("remove", "add"), "remove": ("remove",), "add": ("add",)}


class Claim:
    """The statement: for the composition of these pairs, H(epsilon) <= delta."""

    def __init__(self, given):
        fields(given, "claim", ("relation", "direction", "epsilon", "delta", "parts"))
        self.relation = word(given["relation"], "relation", RELATIONS)
        self.directions = DIRECTIONS[word(given["direction"], "direction", DIRECTIONS)]
        self.epsilon = number(given["epsilon"], "epsilon", 0, "1e18")  # (K6, 1)
        self.delta = number(given["delta"], "delta", 0, 1)
        self.given = given
        self.laws = []
        for part in items(given["parts"], "parts", MOST_PARTS):
            if not isinstance(part, dict):
                raise Refused("a part must be an object")
            if "sampled" in part and self.relation == "replace-one":  # (K5, 2)
                raise Refused("sampled: the pair of a sample is not that of replacing a record")
            kind = next((KEYS[key] for key in KEYS if key in part), Finite)
            self.laws.append(kind(part))

    def refresh(self):
        """Make the balls of all parameters at the precision that now holds; return epsilon."""
        for law in self.laws:
            law.refresh()
        return ball(self.epsilon)

    def lost_mass(self):
        """Return what shifts that are not listed add to delta (Theorem D9)."""
        laws = [law for law in self.laws if isinstance(law, Shifted)]
        return sum(
            (law.count * ball(law.lost / (law.still - law.lost)) for law in laws if law.lost),
            arb(0),
        )


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
    claim, started = Claim(document["claim"]), process_time()
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
            ctx.prec = max(bits, getattr(case, "precision", 0))
            found = case.bound(claim.refresh()) + claim.lost_mass()
            if found <= ball(claim.delta):
                return ctx.prec, found.upper().str(8)
            if found > ball(claim.delta):
                break
            # What more digits do not narrow is an error bound of the evidence, not of rounding.
            late = process_time() - started > SECONDS / 4
            if late or (width is not None and found.rad() > width):
                break
            width = found.rad() / 1000
        raise Refused(f"the evidence shows no more than {found.str(8)}")
    finally:
        ctx.prec = before

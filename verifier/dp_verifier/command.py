"""The command ``dp-verify``: prints the claim, what was shown, what is assumed; pass or fail."""

import sys

from dp_verifier.check import check
from dp_verifier.document import LARGEST_DOCUMENT, Refused

ASSUMED = """\
assumed: the two laws of each part dominate one release under the stated relation (Theorems 14,
  D8, S8, M1, M5 to M7, M13); the mechanisms that ran are these, with this noise, sampling and
  sensitivity; the releases may depend on earlier ones; FLINT's balls enclose the exact results;
  Theorems 1, 2, 5, 7, 10, 14, D1, D9, D13, G1, G2, K1 to K6 of the documentation."""


def _law(part):
    if "sigma" not in part:
        return ", ".join(f"{key} {str(value)[:200]}" for key, value in part.items())
    pairs = list(zip(part["shifts"], part["weights"], strict=True))
    moves = ", ".join(f"{d} with probability {w}" for d, w in pairs[:8])
    more = ", ..." if len(pairs) > 8 else ""
    return f"{part['count']} x N(0, {part['sigma']}^2), moved by {moves}{more}"


def main(arguments=None):
    """Check the certificates named; return 0 if all pass, otherwise 1."""
    names = sys.argv[1:] if arguments is None else arguments
    if not names or names[0].startswith("-"):
        print("usage: dp-verify certificate.json ...")
        return 2
    return max([_report(name) for name in names])


def _report(name):
    try:
        with open(name, "rb") as file:
            text = file.read(LARGEST_DOCUMENT + 1).decode("utf-8")
        claim, shown = check(text)
    except (OSError, UnicodeDecodeError) as error:
        print(f"{name}: FAIL: {type(error).__name__}")
        return 1
    except Refused as reason:
        print(f"{name}: FAIL: {reason}")
        return 1
    given = claim.given
    print(
        f"{name}: claimed ({given['epsilon']}, {given['delta']})-differential privacy,"
        f" {claim.relation}, direction {given['direction']}, of"
    )
    for part in given["parts"]:
        print(f"  {_law(part)}")
    for line in shown:
        print(f"shown: {line}")
    print(ASSUMED)
    print("PASS")
    return 0

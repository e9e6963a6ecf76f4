"""The command ``dp-verify``: prints the claim, what was shown and is assumed, pass or fail."""

import sys

from dp_verifier import Refused, check
from dp_verifier.document import LARGEST_DOCUMENT, read

ASSUMED = """\
assumed: the two laws of each part dominate one release under the stated relation (Theorems 14,
  D8, S8, M1, M5 to M7, M13); the mechanisms that ran are these, with this noise, sampling and
  sensitivity; the releases may depend on earlier ones; FLINT's balls enclose the exact results;
  Theorems 1, 2, 5, 7, 10, 14, D1, D9, D13, G1, G2, K1 to K6 of the documentation."""


def main(arguments=None):
    """Check the certificates named; return 0 if all pass, 1 if one fails, 2 if one is not there."""
    names = sys.argv[1:] if arguments is None else arguments
    if not names or names[0].startswith("-"):
        print("usage: dp-verify certificate.json ...")
        return 2
    return min([code for code in map(_report, names) if code], default=0)


def _report(name):
    try:
        with open(name, "rb") as file:
            text = file.read(LARGEST_DOCUMENT + 1).decode("utf-8")
        shown, given = check(text)[1], read(text)["claim"]
    except (OSError, UnicodeDecodeError, Refused) as reason:
        print(f"{name}: FAIL: {type(reason).__name__}: {reason}")
        return 2 if isinstance(reason, OSError) else 1
    alone = f" of the direction {given['direction']} alone" * (given["direction"] != "both")
    print(f"{name}: claimed: ({given['epsilon']}, {given['delta']})-differential privacy{alone},")
    print(f"  {given['relation']}, of the composition of")
    for part in given["parts"]:
        print("  " + ", ".join(f"{key} {value}".replace("'", "") for key, value in part.items()))
    print("\n".join(f"shown: {line}" for line in shown), ASSUMED, f"PASS{alone}", sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Bugs planted in the checker are noticed: a false claim passes, or an honest one does not."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("flint")
from dp_verifier import Refused, check
from support.certificate_probes import probes

SOURCE = Path(__file__).parents[2] / "verifier" / "dp_verifier"
BUGS = {
    "tail dropped": ("evidence", "+ beyond / pi * (step / end**2 + 1 / end)", ""),
    "tail starts late": ("evidence", "step * self.orders\n", "step * self.orders * 100\n"),
    "sign of the direction": ("evidence", "1 - s if remove else s", "s if remove else 1 - s"),
    "poles": ("evidence", "/ (s * (s - 1))", "/ (s * s)"),
    "period": ("evidence", "step / pi * total", "step / (2 * pi) * total"),
    "first term in full": ("evidence", "epsilon, self.remove) / 2", "epsilon, self.remove) * 0"),
    "n off by one": ("evidence", "v * a**n for", "v * a ** (n - 1) for"),
    "outside dropped": ("evidence", "return low + high ", "return arb(0) "),
    "low side dropped": ("evidence", "return low + high ", "return high "),
    "high side dropped": ("evidence", "return low + high ", "return low "),
    "aliases of the path": ("rule", "(aliased + 2 * rule.a * ended)", "2 * rule.a * ended"),
    "ends of the path": ("rule", "(aliased + 2 * rule.a * ended)", "aliased"),
    "error of the path dropped": (
        "rule",
        "return [each + slack for",
        "return [each + 0 * slack for",
    ),
    "path above the zeros": ("rule", "if not self.angle < arb.pi():", "if False:"),
    "decay of the path alone": ("rule", "in pairs), self.error)", "in pairs), arb(0)) / 1000"),
    "decay, the mean length": ("rule", "total += (height * length", "total += (height / length"),
    "sinc of the whole length": ("rule", "_sinc(y * length / 2)", "_sinc(1000 * y * length)"),
    "large steps dropped": ("evidence", "return low + high + mass", "return low + high"),
    "small steps dropped": ("evidence", "found += self.chernoff(", "self.chernoff("),
    "reverse term dropped": ("evidence", "unlikely + self.reversed(epsilon))", "unlikely)"),
    "one middling step": ("evidence", "(1 - u / a) ** n for", "(1 - u / a) for"),
    "chernoff factor": ("evidence", "(b * b.log() - (1 + b)", "(b * b.log() - 2 * (1 + b)"),
    "order without the one": ("evidence", "c, end = 1 + b if", "c, end = b if"),
    "one step without its condition": ("evidence", "if not ratio.log() <= epsilon:", "if False:"),
    "one step, wrong law": ("evidence", "x, True) - ratio * law", "x, False) - ratio * law"),
    "what is above the knots dropped": ("grid", "t * sum(u, none) + total -", "t * sum(u, none) -"),
    "a sum's last knot dropped": ("grid", "kept[-1] += (shared >> self.bits) + 1", "pass"),
    "what is below the knots dropped": (
        "grid",
        "full[start] + sum(full[:start], none)",
        "full[start]",
    ),
    "infinite losses of the first dropped": ("grid", "infinite = s * sum(v, t) +", "infinite ="),
    "knots above ε alone": ("grid", "found = arb(whole[1])", "found = arb(0)"),
    "a power without its squares": ("grid", 'if bit == "1" else found', 'if bit == "2" else found'),
    "an outcome on its knot alone": ("laws", "masses[k + 1] += rise", "masses[max(k, 0)] += rise"),
    "an outcome beyond the knots on the last": (
        "laws",
        "infinite += (p - q * x[last])",
        "(p - q * x[last])",
    ),
    "chords end at 0": ("laws", "return masses, heights[-1]", "return masses, arb(0)"),
    "a sample without its rate": (
        "laws",
        "return rate * profile(y) if",
        "return rate**2 * profile(y) if",
    ),
    "addition as removal": ("laws", "return pairs if remove else", "return pairs if True else"),
    "infinite mass of a guarantee dropped": (
        "laws",
        "pairs += [(rest, arb(0)),",
        "[(rest, arb(0)),",
    ),
    "comparison the wrong way": ("check", "if found <= ball", "if not found > ball"),
    "shift forgotten": ("laws", "(d * (2 * z - d) /", "(d * (2 * z - 2 * d) /"),
    "variance for deviation": ("laws", "(-(z**2) / (2 * self.sigma**2))", "(-(z**2) / self.sigma)"),
}


def wrong(texts):
    """The first document that is judged wrongly."""
    for text, passes in texts:
        try:
            check(text)
            passed = True
        except Refused:
            passed = False
        if passed != passes:
            return text
    return None


def test_the_probes_are_judged_rightly():
    assert wrong(list(probes())[::9]) is None


@pytest.mark.slow
def test_all_probes_are_judged_rightly():
    assert wrong(probes()) is None


@pytest.mark.slow
@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_noticed(name, tmp_path):
    file, old, new = BUGS[name]
    shutil.copytree(SOURCE, tmp_path / "dp_verifier")
    target = tmp_path / "dp_verifier" / f"{file}.py"
    text = target.read_text()
    assert old in text, "the planted bug has no place any more"
    target.write_text(text.replace(old, new))
    (tmp_path / "probes.txt").write_text("\n".join(f"{int(ok)}{text}" for text, ok in probes()))
    program = (
        "import sys; from dp_verifier import check, Refused\n"
        "for line in open(sys.argv[1]):\n"
        "    try: check(line[1:]); passed = True\n"
        "    except Refused: passed = False\n"
        "    if passed != (line[0] == '1'): sys.exit(7)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "probes.txt")],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        check=False,
    )
    assert done.returncode == 7

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
    "tail dropped": ("evidence", "total + beyond * (step / end**2 + 1 / end)", "total"),
    "tail starts late": ("evidence", "step * orders\n", "step * orders * 100\n"),
    "sign of the direction": ("evidence", "(1 - s if remove else s)", "(s if remove else 1 - s)"),
    "poles": ("evidence", "/ (s * (s - 1))", "/ (s * s)"),
    "period": ("evidence", "total = step * (", "total = step / 2 * ("),
    "first term left out": ("evidence", "sum(terms) - terms[0] / 2", "sum(terms) - terms[0]"),
    "n off by one": ("evidence", "v * u**law.count for v", "v * u ** (law.count - 1) for v"),
    "outside dropped": ("evidence", "return low + sometimes", "return 0 * sometimes"),
    "low side dropped": ("evidence", "return low + sometimes", "return sometimes"),
    "high side dropped": ("evidence", "return low + sometimes", "return low + 0 * sometimes"),
    "aliases of the path": ("rule", "alias = 2 * stretch.exp()", "alias = 0 * stretch.exp()"),
    "aliases of the path below 0": ("rule", "+= alias * rule.over", "+= 0 * rule.over"),
    "ends of the path": ("rule", "self.error = 2 * rule.rise", "self.error = 0 * rule.rise"),
    "error of the path dropped": ("rule", "[each + acb(", "[each + 0 * acb("),
    "path above the zeros": ("rule", "need(self.angle < arb.pi()", "need(True"),
    "decay of the path alone": ("rule", "in pairs), self.error)", "in pairs), arb(0)) / 1000"),
    "decay, the mean length": ("rule", "total += (height * length", "total += (height / length"),
    "sinc of the whole length": ("rule", "_sinc(y * length / 2)", "_sinc(1000 * y * length)"),
    "large steps dropped": ("evidence", "(rules, remove) + large", "(rules, remove) + 0 * large"),
    "small steps dropped": ("evidence", "found += chernoff(small", "chernoff(small"),
    "reverse term dropped": ("evidence", "* q + back)", "* q)"),
    "large steps of the reverse term on the window alone": (
        "evidence",
        ", LARGE) + u.outside(m, LARGE)",
        ", LARGE) / 10**90",
    ),
    "one middling step": ("evidence", "(1 - u / a) ** law.count for", "(1 - u / a) for"),
    "chernoff factor": ("evidence", "b * b.log() - (1 + b)", "b * b.log() - 2 * (1 + b)"),
    "order without the one": ("evidence", "order = 1 + b if", "order = b if"),
    "one step without its condition": ("evidence", "need(ratio.log() <= epsilon", "need(True"),
    "one step, wrong law": ("evidence", "above(x, False), law.ratio", "above(x, True), law.ratio"),
    "what is above the knots dropped": ("grid", "t * sum(u, none) + total -", "t * sum(u, none) -"),
    "a sum's last knot dropped": ("grid", "kept[-1] += (shared >> self.bits) + 1", "pass"),
    "what is below the knots dropped": ("grid", "[start] + sum(full[:start], none)", "[start]"),
    "infinite losses of the first dropped": ("grid", "infinite = s * sum(v, t) +", "infinite ="),
    "knots above ε alone": ("grid", "arb(law[1]))", "arb(0))"),
    "a power without its squares": ("grid", "if n % 2 else even", "if n % 2 > 2 else even"),
    "an outcome on its knot alone": ("grid", "masses[k + 1] += rise", "masses[k] += rise"),
    "an outcome beyond the knots on the last": (
        "grid",
        "*masses[2:-1]], masses[-1]",
        "*masses[2:-2], sum(masses[-2:])], arb(0)",
    ),
    "chords end at 0": ("grid", "strict=True)], heights[-1]", "strict=True)], arb(0)"),
    "a sample without its rate": ("grid", "rate * law.profile(y)", "rate**2 * law.profile(y)"),
    "addition as removal": ("grid", ".outcomes if self.remove else", ".outcomes if True else"),
    "infinite mass of a guarantee dropped": (
        "laws",
        "[*pairs, (rest, arb(0)), (arb(0), rest)]",
        "pairs",
    ),
    "comparison the wrong way": ("__init__", "if found <= delta", "if not found > delta"),
    "shift forgotten": ("laws", "(d * (2 * z - d) /", "(d * (2 * z - 2 * d) /"),
    "variance for deviation": ("laws", "(-(z**2) / (2 * self.sigma**2))", "(-(z**2) / self.sigma)"),
    "masses of some outcomes": ("laws", "max(abs(m - 1), abs(", "0 * max(abs(m - 1), abs("),
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


@pytest.mark.long
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

"""Regenerate every number of the paper: numbers.tex, whose macros paper.tex uses.

python docs/paper/experiments.py           write numbers.tex
python docs/paper/experiments.py --check   compare it with what this machine finds

A check compares texts exactly, but for times, which may be ten times longer here, and for widths,
which may be twice as large: they are the last digits of two sums. The numbers of other accountants
are those of peers.json, which peers.py measured.
"""

import json
import math
import re
import statistics
import sys
import time
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT), str(ROOT / "tests"), str(ROOT / "verifier")]

import inequalities  # noqa: E402

import accountant as ac  # noqa: E402
import dp_verifier  # noqa: E402
from accountant._core import answers as core  # noqa: E402
from support import oracle_checks  # noqa: E402

NUMBERS = HERE / "numbers.tex"
SLOWER, WIDER = 10.0, 2.0
CENSUS = re.compile(r"```python\n(.*?)```", re.DOTALL)


def timed(ask, repeat=7):
    """Return an answer and the least processor time of some calls, in seconds."""
    best = math.inf
    for _ in range(repeat):
        began = time.process_time()
        found = ask()
        best = min(best, time.process_time() - began)
    return found, best


def a_time(seconds):
    """Write a time with two digits, marked as one."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), (r"$\mu$s", 1e-6)):
        if seconds >= size:
            digits = seconds / size
            shown = f"{digits:.1f}" if digits < 10 else f"{digits:.0f}"
            return rf"\timed{{{shown}}}{{{unit}}}"
    return r"\timed{1.0}{$\mu$s}"


def a_power(x):
    """Write a number as 1.2 times a power of ten."""
    if x == 0.0:
        return "0"
    mantissa, exponent = f"{x:.1e}".split("e")
    front = "" if mantissa == "1.0" else rf"{mantissa}\cdot"
    return rf"{front}10^{{{int(exponent)}}}"


def about(x):
    """Write a number with two digits."""
    return f"{x:.2g}" if 1e-3 <= x < 1e3 else a_power(x)


def a_width(x):
    """Write a relative width, marked as one."""
    return rf"\width{{{a_power(x)}}}"


def agreed(lower, upper, most=10):
    """Write the digits that both ends have, rounded."""
    for digits in range(most, 0, -1):
        low, high = f"{lower:.{digits}g}", f"{upper:.{digits}g}"
        if float(low) == float(high):
            return high
    return f"{upper:.1g}"


def plain(x):
    """Write a parameter."""
    if 1 <= x < 1e5 and x == int(x):
        return str(int(x))
    return f"{x:.4g}" if 1e-3 <= x < 1e5 else f"${a_power(x)}$"


def fresh(problem, index):
    """Return the problem with δ moved by parts in 10^12, so that no stored answer is timed."""
    return (*(problem[k] for k in ("q", "sigma", "steps")), problem["delta"] * (1 + index * 1e-12))


def dp_sgd(peers):
    """Rows: the certified bracket beside what other accountants answered."""
    ours, theirs = [], []
    for i, each in enumerate(peers["problems"]):
        found = ac.epsilon_bounds(*fresh(each, 0))
        counter = iter(range(1, 100))
        _, seconds = timed(lambda p=each, c=counter: ac.epsilon_bounds(*fresh(p, next(c))), 20)
        width = (found.upper - found.lower) / found.upper
        cells = [plain(each[k]) for k in ("q", "sigma", "steps", "delta")]
        cells += [agreed(*found, 11), f"${a_width(width)}$", a_time(seconds)]
        ours.append(" & ".join(cells))
        cells = [agreed(*found, 7)]
        for rows in peers["answers"].values():
            one = rows[i]
            if not math.isfinite(one.get("epsilon", math.nan)):
                cells.append(rf"\multicolumn{{2}}{{c}}{{{one.get('error', 'not finite')}}}")
                continue
            mark = r"\below" if one["epsilon"] < found.lower else ""
            cells.append(f"{one['epsilon']:.6g}{mark}")
            cells.append(a_time(one["seconds"]).replace(r"\timed", r"\stored"))
        theirs.append(" & ".join(cells))
    below = sum(row.count(r"\below") for row in theirs)
    return {"TableOurs": rows_of(ours), "TablePeers": rows_of(theirs), "PeersBelow": str(below)}


def rows_of(lines):
    """Join the rows of a table."""
    return "\n".join(line + r" \\" for line in lines)


def truths():
    """The stored enclosures: how many brackets miss them, and how wide the brackets are."""
    rows = oracle_checks.PROFILE
    wrong = list(oracle_checks.wrong_deltas(core, rows)) + list(
        oracle_checks.wrong_epsilons(core, rows)
    )
    widths, claimed = [], []
    for row in rows:
        delta, _ = oracle_checks.deltas_around(row)
        if not (0.0 < delta < 1.0 and row["epsilon"] > 0.0):
            continue
        low, high = core.epsilon_bounds(*oracle_checks.problem(row), delta, core.EITHER)
        width = (high - low) / high if high > 0.0 else 0.0
        widths.append(width)
        if oracle_checks.claimed_tight(*oracle_checks.problem(row), delta, row["epsilon"]):
            claimed.append(width)
    enclosed = max(
        (Decimal(r["upper"]) - Decimal(r["lower"])) / Decimal(r["upper"])
        for r in rows
        if Decimal(r["upper"]) > 0
    )
    return {
        "Truths": f"{len(rows):,}".replace(",", r"\,"),
        **{
            f"Truths{name}{end}": about(pick(float(row[key]) for row in rows))
            for name, key in (
                ("Q", "q"),
                ("Sigma", "sigma"),
                ("Steps", "steps"),
                ("Delta", "lower"),
            )
            for end, pick in (("Least", min), ("Most", max))
        },
        "TruthsWrong": str(len(wrong)),
        "TruthsWidth": a_power(float(enclosed)),
        "WidthMedian": a_width(statistics.median(widths)),
        "WidthWidest": a_width(max(widths)),
        "WidthsOverNine": str(sum(width > 1e-9 for width in widths)),
        "WidthsOverSix": str(sum(width > 1e-6 for width in widths)),
        "WidthsAll": f"{len(widths):,}".replace(",", r"\,"),
        "ClaimedAll": str(len(claimed)),
        "ClaimedWidest": a_width(max(claimed)),
    }


def census():
    """The releases of docs/census.md, by the page's own code."""
    place = {}
    code = CENSUS.search((ROOT / "docs" / "census.md").read_text())[1]
    exec(code.replace("print(", "str("), place)
    return place["census"]


def mixes():
    """Rows: compositions whose parts differ in kind."""
    step = ac.PoissonSampled(ac.Gaussian(1.0), 0.01)
    cases = [
        ("1000 DP-SGD steps, 1 Gaussian", 1000 * step + ac.Gaussian(10.0), 1e-5),
        ("10 Laplace, 1 Gaussian", 10 * ac.Laplace(5.0) + ac.Gaussian(10.0), 1e-5),
        (
            "5 Laplace, 3 discrete Gaussian, 2 responses",
            5 * ac.Laplace(4.0) + 3 * ac.DiscreteGaussian(7.0) + 2 * ac.RandomizedResponse(0.3),
            1e-6,
        ),
        ("100 Laplace", 100 * ac.Laplace(20.0), 1e-5),
        ("1000 DP-SGD steps, 10 Laplace", 1000 * step + 10 * ac.Laplace(5.0), 1e-5),
        ("2020 Census, 130 discrete Gaussian", census(), 1e-10),
    ]
    lines = []
    for name, mechanism, delta in cases:
        found = mechanism.epsilon_bounds(delta)
        moved = iter(range(1, 100))
        _, seconds = timed(
            lambda m=mechanism, d=delta, c=moved: m.epsilon_bounds(d * (1 + 1e-12 * next(c))), 3
        )
        width = (found.upper - found.lower) / found.upper
        how = mechanism.explain(delta).analysis
        cells = [name, f"${a_power(delta)}$", agreed(*found, 10), f"${a_width(width)}$"]
        lines.append(" & ".join([*cells, a_time(seconds), how]))
    rho = Fraction(542, 339) ** 2
    classical = float(rho) + 2.0 * math.sqrt(float(rho) * math.log(1e10))
    best = ac.ZCDP(float(rho)).epsilon(1e-10)
    parts = cases[-1][1].parts
    return {
        "TableMixes": rows_of(lines),
        "CensusReleases": str(sum(count for _, count in parts)),
        "CensusScales": str(len(parts)),
        "CensusClassical": f"{classical:.4f}",
        "CensusConverted": f"{best:.4f}",
        "CensusExact": agreed(*cases[-1][1].epsilon_bounds(1e-10), 10),
    }


def certificates():
    """One document of 1000 sampled steps: its size, what it claims, and its check."""
    run, delta = 1000 * ac.PoissonSampled(ac.Gaussian(1.0), 0.01), 1e-5
    made, making = timed(lambda: ac.certificate(run, delta), 1)
    (claim, _), checking = timed(lambda: dp_verifier.check(made.text), 3)
    exact = ac.epsilon_bounds(0.01, 1.0, 1000, delta)
    lines = sum(
        1
        for path in (ROOT / "verifier" / "dp_verifier").glob("*.py")
        for line in path.read_text().splitlines()
        if line.strip()
    )
    return {
        "CertBytes": f"{len(made.text.encode()):,}".replace(",", r"\,"),
        "CertClaim": f"{float(claim.epsilon):.10f}",
        "CertExact": agreed(*exact, 11),
        "CertMake": a_time(making),
        "CertCheck": a_time(checking),
        "CertLines": str(lines),
    }


def constants():
    """Numbers of the native code that the proof names."""
    source = ROOT / "accountant" / "_core" / "src"
    text = "\n".join(path.read_text() for path in sorted(source.rglob("*.h")))
    names = {"Nodes": "ACCT_GL_ORDER", "Block": "ACCT_SUM_BLOCK"}
    found = {k: re.search(rf"#define {v} (\d+)", text)[1] for k, v in names.items()}
    return found | {"Rate": str(2 * int(found["Nodes"]) - 1)}


def checks():
    """How many instances of the proof's inequalities were evaluated, and how many failed."""
    done = inequalities.run()
    return {
        "Checks": str(len(done)),
        "CheckedInstances": f"{sum(n for n, _ in done.values()):,}".replace(",", r"\,"),
        "CheckedWrong": str(sum(bad for _, bad in done.values())),
    }


def peers_of(stored):
    """Say where the numbers of other accountants are from."""
    of = stored["provenance"]
    versions = ", ".join(f"{name} {version}" for name, version in of["versions"].items())
    return {"PeersVersions": versions, "PeersDate": of["date"], "PeersPython": of["python"]}


def text():
    """Return the whole of numbers.tex."""
    stored = json.loads((HERE / "peers.json").read_text())
    found = {**constants(), **checks(), **truths(), **dp_sgd(stored), **mixes()}
    found |= {**certificates(), **peers_of(stored)}
    head = "% Written by experiments.py; do not edit.\n"
    head += "\\newcommand{\\timed}[2]{#1\\,#2}\n\\newcommand{\\stored}[2]{#1\\,#2}\n"
    head += "\\newcommand{\\width}[1]{#1}\n\\newcommand{\\below}{$^\\ast$}\n"
    return head + "".join(f"\\newcommand{{\\N{k}}}{{{v}}}\n" for k, v in found.items())


UNITS = {"s": 1.0, "ms": 1e-3, r"$\mu$s": 1e-6}
TIMED = re.compile(r"\\timed\{([\d.]+)\}\{(s|ms|\$\\mu\$s)\}")
WIDTH = re.compile(r"\\width\{((?:[\d.]+\\cdot)?10\^\{-?\d+\}|0)\}")


def _size(power):
    mantissa, _, exponent = power.rpartition(r"\cdot")
    return 0.0 if power == "0" else float(mantissa or 1) * 10.0 ** int(exponent[4:-1])


def differences(committed, found):
    """Return what of the two texts differs by more than a check allows."""
    wrong = []
    if TIMED.sub("", WIDTH.sub("", committed)) != TIMED.sub("", WIDTH.sub("", found)):
        pairs = zip(committed.splitlines(), found.splitlines(), strict=False)
        bare = [
            (TIMED.sub("", WIDTH.sub("", a)), TIMED.sub("", WIDTH.sub("", b))) for a, b in pairs
        ]
        wrong += [f"{a}\n    is here {b}" for a, b in bare if a != b] or ["the number of lines"]
    before, now = TIMED.findall(committed), TIMED.findall(found)
    for (old, unit), (new, other) in zip(before, now, strict=False):
        if float(new) * UNITS[other] > SLOWER * float(old) * UNITS[unit]:
            wrong.append(f"a time of {old} {unit} is {new} {other} here")
    for old, new in zip(WIDTH.findall(committed), WIDTH.findall(found), strict=False):
        if _size(new) > WIDER * _size(old) + 1e-14:
            wrong.append(f"a width of {old} is {new} here")
    return wrong


def main():
    found = text()
    if "--check" not in sys.argv:
        NUMBERS.write_text(found)
        return
    wrong = differences(NUMBERS.read_text(), found)
    print("\n".join(wrong) or "every number of the paper is what it was")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()

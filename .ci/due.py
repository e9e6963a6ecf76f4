"""Decides which full steps of CI are due, and keeps the record of those that passed.

    python .ci/due.py due SECONDS      the full steps for a push that fit into the seconds, a line
                                       each; what is left out, why and since when goes to stderr
    python .ci/due.py stale [STEP ...] those that did not pass on today's inputs, of all or of these
    python .ci/due.py passed STEP SECONDS

A full step is due when it never passed, when it last passed over 30 commits or seven days ago, or
when it is a front end (C, Windows, web, R, Rust) and one of its inputs changed since.
"""

import datetime
import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / ".ci" / "full"
HEADER = (
    "# step, hash of its inputs, date and number of commits when it last passed, seconds it took\n"
)
COMMITS = 30
DAYS = 7

CORE = ("accountant/_core/src", "libaccountant", "accountant/selftest/elementary.json")
BUILD = ("setup.py", "pyproject.toml", "accountant/_core", ".ci/steps")
# What each full step depends on, and the seconds it takes where no record says so.
FRONT_ENDS = {
    "c-library": ((*CORE, ".ci/steps"), 150),
    "windows": ((*CORE, ".ci/steps"), 300),
    "browser": (
        (*CORE, ".ci/steps", "web", "accountant/cli", "accountant/report", "docs", "tests/web"),
        400,
    ),
    "r": ((*CORE, ".ci/steps", "r"), 150),
    "rust": ((*CORE, ".ci/steps", "rust"), 120),
}
OTHERS = {
    "peers": (
        (*BUILD, "accountant", "tests/cross_cutting/test_peers.py", "benchmarks", "conformance"),
        700,
    ),
    "federations": ((*BUILD, "accountant", "examples", "tests/adapters", "tests/examples"), 600),
    "frameworks": ((*BUILD, "accountant", "examples", "tests/adapters", "docs/adapters.md"), 900),
    "statistics": (
        (*BUILD, "accountant", "tests/statistics", "tests/adapters", "tests/noise"),
        700,
    ),
    "paper": (
        (*BUILD, "accountant", "docs/paper", "docs/census.md", "tests/support", "verifier"),
        300,
    ),
    "pythons": ((*BUILD, "accountant", "tests"), 900),
    "planted": ((*BUILD, "accountant", "tests", "verifier"), 1800),
    "sweeps": ((*BUILD, "accountant", "tests", "verifier"), 3600),
}
STEPS = {**FRONT_ENDS, **OTHERS}


def git(*words: str) -> str:
    """Return what git prints in the checkout."""
    done = subprocess.run(["git", "-C", ROOT, *words], check=True, capture_output=True, text=True)
    return done.stdout


def inputs(step: str) -> str:
    """Return a hash of the names and contents of the files that a step depends on."""
    names = git("ls-files", "-coz", "--exclude-standard", "--", *STEPS[step][0]).split("\0")
    found = hashlib.sha256()
    for name in sorted({name for name in names if name}):
        if (ROOT / name).is_file():
            found.update(name.encode() + b"\0")
            found.update(hashlib.sha256((ROOT / name).read_bytes()).digest())
    return found.hexdigest()[:16]


def records() -> dict[str, list[str]]:
    """Return hash, date, commits and seconds of every step that passed once."""
    if not RECORD.exists():
        return {}
    lines = RECORD.read_text().splitlines()
    return {row[0]: row[1:] for row in map(str.split, lines) if row and row[0] in STEPS}


def commits() -> int:
    """Return the number of commits up to now."""
    return int(git("rev-list", "--count", "HEAD"))


def why(step: str, row: list[str] | None) -> str:
    """Return why a step is due; nothing where it is not."""
    if row is None:
        return "it never passed"
    digest, date, count, _ = row
    if step in FRONT_ENDS and digest != inputs(step):
        return f"its inputs changed since {date}"
    age = datetime.date.today() - datetime.date.fromisoformat(date)
    behind = commits() - int(count)
    if age.days > DAYS or not 0 <= behind <= COMMITS:
        return f"it last passed on {date}, {behind} commits ago"
    return ""


def due(seconds: int) -> None:
    """Print the steps of this push, front ends first, then those that passed longest ago."""
    known = records()
    for step in [*FRONT_ENDS, *sorted(OTHERS, key=lambda s: known.get(s, ["", ""])[1])]:
        row = known.get(step)
        reason = why(step, row)
        takes = int(row[3]) if row else STEPS[step][1]
        if reason and takes <= seconds:
            seconds -= takes
            print(step)
        elif reason:
            print(f"{step}: no time for its {takes} s; {reason}", file=sys.stderr)
        else:
            print(
                f"{step}: passed on {row[1]}, {commits() - int(row[2])} commits ago",
                file=sys.stderr,
            )


def passed(step: str, seconds: str) -> None:
    """Write down that a step passed just now."""
    today = datetime.date.today().isoformat()
    known = {**records(), step: [inputs(step), today, str(commits()), seconds]}
    rows = [" ".join([name, *known[name]]) + "\n" for name in STEPS if name in known]
    RECORD.write_text(HEADER + "".join(rows))


def main(question: str, *words: str) -> None:
    """Answer one question of the command line."""
    if question == "due":
        due(int(words[0]))
    elif question == "passed":
        passed(*words)
    else:
        known = records()
        for step in words or STEPS:
            if step not in STEPS:
                sys.exit(f"{step}: no step; the full steps are {', '.join(STEPS)}")
            if step in words or step not in known or known[step][0] != inputs(step):
                print(step)


if __name__ == "__main__":
    main(*sys.argv[1:])

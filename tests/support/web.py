"""The built page and module, and Node to ask the module. WEB names their folder."""

import json
import math
import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILT = Path(os.environ.get("WEB") or ROOT / "web" / "build")
PAGE, MODULE = BUILT / "accountant.html", BUILT / "accountant.wasm"
WORDS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def is_missing():
    """Say what the tests of the module lack here."""
    if not MODULE.exists():
        return "the web module is not built (make -C web)"
    return None if shutil.which("node") else "Node is not installed"


def node(*words, given="", seconds=120.0):
    """Run the driver of the module and return what it prints."""
    done = subprocess.run(
        ["node", str(ROOT / "web" / "tests" / "ask.mjs"), str(MODULE), *map(str, words)],
        input=given,
        capture_output=True,
        text=True,
        timeout=seconds,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def ask(*questions, seconds=120.0):
    """Return the answers to questions, each a name and arguments."""
    words = json.dumps([[_plain(word) for word in question] for question in questions])
    return [_number(answer) for answer in node(given=words, seconds=seconds)]


def _plain(word):
    if isinstance(word, list):
        return [_plain(each) for each in word]
    if isinstance(word, dict):
        return {name: _plain(each) for name, each in word.items()}
    if isinstance(word, float) and not math.isfinite(word):
        return {math.inf: "inf", -math.inf: "-inf"}.get(word, "nan")
    return word


def _number(answer):
    if isinstance(answer, list):
        return [_number(each) for each in answer]
    if isinstance(answer, dict):
        return {name: _number(each) for name, each in answer.items()}
    return WORDS.get(answer, answer) if isinstance(answer, str) else answer

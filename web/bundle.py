"""Puts the page together in one file: ``bundle.py MODULE.wasm OUT.html``.

Imports between the scripts are left out and what they would import is written first. The policy of
the page names the hashes of its script and its style, and allows nothing else: no address is asked.
"""

import base64
import hashlib
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
SOURCES = HERE / "src"
WORKER = ("core", "answers", "certificate", "doctor", "worker")
PAGE = ("text", "settings", "charts", "show", "page")
TRUTHS = HERE.parent / "accountant" / "selftest" / "elementary.json"
QUESTIONS = HERE.parent / "libaccountant" / "tests" / "cases.txt"
# Of the stored questions the browser asks so many.
ASKED = 120


def joined(names: tuple[str, ...]) -> str:
    """Return the scripts as one, in which every name stands for itself."""
    parts = []
    for name in names:
        text = (SOURCES / f"{name}.mjs").read_text(encoding="utf-8")
        text = re.sub(r"^import [^;]*;\n", "", text, flags=re.M)
        parts.append(re.sub(r"^export ", "", text, flags=re.M))
    script = '"use strict";\n{\n' + "\n".join(parts) + "}\n"
    if "</script" in script:
        raise ValueError("a script must not hold the end of a script")
    return script


def source_hash(text: str) -> str:
    """Return what a content security policy calls this text."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def page(module: bytes) -> str:
    """Return the page."""
    style = (SOURCES / "page.css").read_text(encoding="utf-8")
    script = joined(PAGE)
    lines = QUESTIONS.read_text(encoding="utf-8").splitlines()
    filled = {
        "STYLE": style,
        "SCRIPT": script,
        "STYLE_HASH": source_hash(style),
        "SCRIPT_HASH": source_hash(script),
        "WORKER": joined(WORKER),
        "MODULE": base64.b64encode(module).decode(),
        "TRUTHS": TRUTHS.read_text(encoding="utf-8"),
        "QUESTIONS": "\n".join([line for line in lines if not line.startswith("#")][:ASKED]),
    }
    text = (SOURCES / "page.html").read_text(encoding="utf-8")
    return re.sub(r"@(\w+)@", lambda found: filled[found[1]], text)


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(page(Path(sys.argv[1]).read_bytes()), encoding="utf-8")

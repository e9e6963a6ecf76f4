"""Puts the page together in one file: ``bundle.py MODULE.wasm OUT.html COMPILER``.

Imports between the scripts are left out and what they would import is written first. The policy of
the page names the hashes of its script and its style, and allows nothing else: no address is asked.
"""

import base64
import hashlib
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
SOURCES = HERE / "src"
WORKER = ("core", "answers", "certificate", "doctor", "worker")
PAGE = ("text", "settings", "charts", "show", "page")
TRUTHS = ROOT / "accountant" / "selftest" / "elementary.json"
QUESTIONS = ROOT / "libaccountant" / "tests" / "cases.txt"
# All that the page is made from; its digest stands in the page, beside the compiler's name.
MADE_FROM = (
    "accountant/_core/src/**/*.[ch]",
    "libaccountant/Makefile",
    "libaccountant/include/*.h",
    "libaccountant/src/*",
    "web/Makefile",
    "web/bundle.py",
    "web/native/*",
    "web/src/*",
)
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


def digest() -> str:
    """Return the digest of the names and contents of all sources of the page."""
    found = hashlib.sha256()
    listed = {path for pattern in MADE_FROM for path in ROOT.glob(pattern)} | {TRUTHS, QUESTIONS}
    for path in sorted(listed):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        found.update(f"{path.relative_to(ROOT).as_posix()} {content}\n".encode())
    return f"sha256:{found.hexdigest()}"


def page(module: bytes, compiler: str) -> str:
    """Return the page."""
    style = (SOURCES / "page.css").read_text(encoding="utf-8")
    script = joined(PAGE)
    lines = QUESTIONS.read_text(encoding="utf-8").splitlines()
    filled = {
        "MADE_FROM": f"{digest()}, {compiler.strip()}",
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
    made = page(Path(sys.argv[1]).read_bytes(), sys.argv[3])
    Path(sys.argv[2]).write_text(made, encoding="utf-8")

"""The page of error messages, so that the site's search finds the text that somebody was shown."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
HEAD = """# Error messages

What the package raises, by the module that does; … stands for what depends on the call. A message
names the argument, what it must be and what it was. Search this page for the words that you were
shown.
"""
LEAST = 20  # letters of a message that says something by itself


def text_of(node):
    """Return the text of a string, an f-string or their concatenation, or None."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) or "…" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return (text_of(node.left) or "…") + (text_of(node.right) or "…")
    return None


def messages(package=ROOT / "accountant"):
    """Return the messages of every module that raises some, in the order of the source."""
    found = {}
    for file in sorted(package.rglob("*.py")):
        module = ".".join(file.relative_to(package.parent).with_suffix("").parts)
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                for argument in node.exc.args[:1]:
                    text = text_of(argument)
                    if text and len(text) >= LEAST:
                        found.setdefault(module, {})[text] = None
    return {module: list(texts) for module, texts in found.items()}


def page():
    """Return the page."""
    lines = [HEAD]
    for module, texts in messages().items():
        lines += [f"## {module}", ""]
        lines += [
            "- " + "".join(f"\\{c}" if c in "\\`*_{}[]<>$#|" else c for c in t) for t in texts
        ]
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    (ROOT / "docs" / "messages.md").write_text(page(), encoding="utf-8")

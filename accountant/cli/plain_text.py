"""Text for terminals that have no ε and no ≤: letters and signs that keep their meaning apart."""

from __future__ import annotations

import codecs

__all__ = ["HANDLER", "plain"]

HANDLER = "accountant-plain"
_SIGNS = {
    "≤": "<=",
    "≥": ">=",
    "ε": "eps",
    "δ": "delta",
    "σ": "sigma",
    "μ": "mu",
    "α": "alpha",
    "ρ": "rho",
    "∞": "inf",
    "×": "x",
    "·": "*",
    "–": "-",
    "−": "-",
    "→": "->",
    "…": "...",
    "√": "sqrt",
    "é": "e",
    "²": "^2",
    "≠": "!=",
    "≈": "~",
    "’": "'",
    "“": '"',
    "”": '"',
}


def plain(text: str, encoding: str | None) -> str:
    """Return ``text`` with signs spelled out that ``encoding`` does not have."""
    try:
        text.encode(encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return "".join(_SIGNS.get(letter, letter) for letter in text)
    return text


def _spell(error: UnicodeError) -> tuple[str, int]:
    """Spell what cannot be encoded, as an error handler of codecs."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lost = error.object[error.start : error.end]
    return "".join(_SIGNS.get(letter, "?") for letter in lost), error.end


codecs.register_error(HANDLER, _spell)

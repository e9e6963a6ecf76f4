"""Text for terminals that have no ε and no ≤: letters and signs that keep their meaning apart."""

from __future__ import annotations

import codecs
import io
from typing import Any

HANDLER = "accountant-plain"
# ASCII by another name: click writes UTF-8 to every stream that calls itself ASCII.
ASCII = "accountant_ascii"
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


def spell_out(stream: Any) -> None:
    """Let a stream spell the signs that its encoding does not have."""
    if isinstance(stream, io.TextIOWrapper):
        ascii_only = codecs.lookup(stream.encoding).name == "ascii"
        stream.reconfigure(encoding=ASCII if ascii_only else None, errors=HANDLER)


def _find(name: str) -> codecs.CodecInfo | None:
    if name != ASCII:
        return None
    real = codecs.lookup("ascii")
    return codecs.CodecInfo(
        real.encode,
        real.decode,
        real.streamreader,
        real.streamwriter,
        real.incrementalencoder,
        real.incrementaldecoder,
        ASCII,
    )


codecs.register(_find)
codecs.register_error(HANDLER, _spell)

"""Text from outside, made safe to show: no control characters, no hidden direction."""

import unicodedata

# Characters that turn the direction of what follows, and so can hide it.
_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
# Controls (escape sequences of a terminal begin with one), lone surrogates, line separators.
_HIDDEN = frozenset(("Cc", "Cs", "Zl", "Zp"))


def shown(text: str, longest: int | None = None) -> str:
    r"""Return ``text`` on one line, with what must not reach a page or a terminal replaced.

    Parameters
    ----------
    text : str
        Anything.
    longest : int, optional
        More characters than this are cut off, and an ellipsis says so.

    Returns
    -------
    str
        Printable, and encodable as UTF-8.

    Examples
    --------
    >>> shown("two\nlines"), shown("abcdef", 4)
    ('two lines', 'abc…')
    """
    if longest is not None and len(text) > longest:
        text = text[: longest - 1] + "…"
    line = " ".join(text.split())
    return "".join(
        "\ufffd" if unicodedata.category(c) in _HIDDEN or c in _TURNING else c for c in line
    )

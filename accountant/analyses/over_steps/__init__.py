"""ε after the releases of a history: after each of them, or brackets after some.

``curve``
    Upper bounds after every release: the least of all that is known.
``brackets``
    Lower and upper bounds after some releases, exact compositions where these are in reach.
``by_renyi``, ``gaussian``, ``mixes``
    What is known: divergences and largest losses added up; Gaussian steps composed exactly along
    one contour; exact compositions where the curve of a mix is widest.
``divergences``, ``prefixes``
    Divergences of many mechanisms at many orders; lengths, and what was released up to there.

A history is a sequence of anything that has a ``mechanism`` and a ``count``. Every bound holds by
itself, for parameters fixed in advance (docs/theorems_ledger.md, Theorem L8).
"""

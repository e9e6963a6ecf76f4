"""ε after the releases of a history: after each of them, or brackets after some.

``curve``
    Upper bounds after every release: the least of all that is known; and brackets after some
    releases, exact compositions where these are in reach.
``by_renyi``, ``history``
    Divergences and largest losses added up; the prefixes of a history, and its divergences.

A history is a sequence of anything that has a ``mechanism`` and a ``count``. Every bound holds by
itself, for parameters fixed in advance (docs/theorems_ledger.md, Theorem L8).
"""

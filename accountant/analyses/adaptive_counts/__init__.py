"""Any number of releases of kinds fixed in advance, chosen as one goes.

``law``
    Upper laws of privacy losses on a lattice.
``game``
    The worst strategy within a capacity, by dynamic programming (Theorem L13).
"""

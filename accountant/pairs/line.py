"""Laws of a loss whose transform F(z) = E_Q e^{zL} is known on a vertical line."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from accountant._basics.arrays import FloatArray

GAUSSIAN, LATTICE, LAPLACE, ATOMS, RESPONSE = range(5)  # as the native core numbers them
SAMPLED = 5

NONE: FloatArray = np.zeros(0)


class LineLaw(NamedTuple):
    """One law of a loss, as :mod:`accountant.analyses.smoothed_line` takes it.

    Attributes
    ----------
    kind : int
        ``GAUSSIAN``: F = e^{v z(z-1)/2}. ``LATTICE``: a discrete Gaussian, F = e^{v z(z-1)/2} times
        a quotient of theta functions. ``LAPLACE``: the loss of Laplace noise, between -v and v.
        ``ATOMS``: finitely many losses. ``RESPONSE``: very many runs of two, v and -v.
        ``SAMPLED``: the Poisson-subsampled Gaussian of the pair's ``gaussian_part``.
    spread : float
        v, to three units of roundoff; of atoms, that of ``RESPONSE`` where it may take their place.
    damping, distance : float
        Of a lattice: 2π²σ², at least 1.7, and how far apart the centres are, an integer.
    loss, p : float64 arrays of shape (m,)
        Of atoms: their losses and their masses under P.
    relative_error, loss_error : float
        As in :class:`~accountant.pairs.base.Masses` and of each loss, in nats.
    unlisted : float
        An upper bound on the mass under P of atoms that are not listed.
    """

    kind: int
    spread: float = 0.0
    damping: float = 0.0
    distance: float = 0.0
    loss: FloatArray = NONE
    p: FloatArray = NONE
    relative_error: float = 0.0
    loss_error: float = 0.0
    unlisted: float = 0.0

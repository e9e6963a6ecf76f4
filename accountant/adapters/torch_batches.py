"""A PyTorch ``batch_sampler`` that draws exactly what its account assumes, and charges for it."""

from __future__ import annotations

from collections.abc import Iterator

from accountant import checks
from accountant.adapters._observer import Run, mark
from accountant.errors import ArgumentTypeError, DomainError
from accountant.ledger import Accountant
from accountant.mechanisms.base import Mechanism
from accountant.sampling import Sampler
from accountant.sampling.sampler import Seed

__all__ = ["BatchSampler"]


class BatchSampler:
    """The batches of one run, for ``DataLoader(data, batch_sampler=...)``.

    Parameters
    ----------
    sampler : Sampler
        Which batches to draw; its :meth:`~accountant.sampling.Sampler.mechanism` accounts for them:
        any of :mod:`accountant.sampling`.
    seed : int or numpy Generator, optional
        For tests only: batches that can be recomputed do not hide who is in them, and the charge
        says so. By default the operating system's entropy.
    ledger : Accountant, optional
        Charged for a whole run when the first batch of an iteration is asked for, before it is
        drawn.
    noise_multiplier : float, optional
        That of the releases, for the ledger: the standard deviation of the noise over the bound on
        one contribution; for :class:`~accountant.sampling.CyclicPoisson`,
        :class:`~accountant.sampling.BallsInBins` and
        :class:`~accountant.sampling.SeparatedPoisson` over the sensitivity of one participation in
        the strategy.
    label : str, keyword only
        Of the charge.

    Raises
    ------
    BudgetExceeded
        When the first batch is asked for of a run that the ledger's budget does not allow.

    Notes
    -----
    One iteration is the *whole* run that the mechanism accounts for, all epochs of it; iterating
    again is another run, and is charged again. A run that is left early has been charged in full.
    Batches may be empty: give the loader a ``collate_fn`` that takes an empty list, and release the
    noise of that step all the same. Clip every record's gradient, add them up, add the noise, and
    divide by a public constant.

    Examples
    --------
    >>> from accountant.ledger import Accountant
    >>> from accountant.sampling import PoissonSampler
    >>> sampler = PoissonSampler(dataset_size=1000, sampling_probability=0.01, steps=3)
    >>> ledger = Accountant()
    >>> batches = BatchSampler(sampler, ledger=ledger, noise_multiplier=1.0)
    >>> len(batches), all(isinstance(batch, list) for batch in batches)
    (3, True)
    >>> ledger.epsilon(1e-6) == sampler.epsilon(1.0, 1e-6)
    True
    """

    def __init__(
        self,
        sampler: Sampler,
        seed: Seed = None,
        *,
        ledger: Accountant | None = None,
        noise_multiplier: float | None = None,
        label: str = "",
    ) -> None:
        if not isinstance(sampler, Sampler):
            raise ArgumentTypeError(
                f"sampler must be one of accountant.sampling's; got {sampler!r}."
                " A loader of your own has no account of its own"
            )
        if (ledger is None) != (noise_multiplier is None):
            raise DomainError("give both of ledger and noise_multiplier, or neither")
        self.sampler = sampler
        self.ledger = ledger
        self.label = label
        self._seed = seed
        self._charge: Mechanism | None = None
        if ledger is not None:
            checks.instance("ledger", ledger, Accountant, "an Accountant")
            assert noise_multiplier is not None
            noise = checks.number(checks.NOISE_MULTIPLIER, noise_multiplier)
            self._charge = sampler.mechanism(noise)

    def __len__(self) -> int:
        return self.sampler.steps

    def begin(self) -> Run:
        """Return what is seen of a run that begins now."""
        return Run(self.sampler, self._seed is not None)

    def __iter__(self) -> Iterator[list[int]]:
        # When the first batch is asked for: a DataLoader with workers makes two iterators.
        if self.ledger is not None and self._charge is not None:
            words = mark(self.begin().why_not_private, label=self.label)
            self.ledger.compose(self._charge, label=words)
        for batch in self.sampler.batches(self._seed):
            yield batch.tolist()

"""Noisy counts of keys that are not known in advance: a key appears if its count is large."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from accountant import checks
from accountant._basics.binding import bound
from accountant._basics.rounding import lift, up
from accountant.errors import ArgumentTypeError, DomainError, UnsupportedError
from accountant.mechanisms.base import Mechanism
from accountant.mechanisms.discrete import DiscreteGaussian, DiscreteLaplace
from accountant.mechanisms.fields import mechanism_of, set_fields
from accountant.mechanisms.gaussian import Gaussian
from accountant.mechanisms.hidden_keys import (
    NOTHING,
    Box,
    hiding,
    joined,
    rows_box,
    turned,
    weighted_box,
)
from accountant.mechanisms.laplace import Laplace
from accountant.pairs.base import DominatingPair, Parts
from accountant.pairs.product import total
from accountant.relations import ADD_OR_REMOVE, REPLACE_ONE, ZERO_OUT, NeighbouringRelation

NOISES = (Gaussian, Laplace, DiscreteGaussian, DiscreteLaplace)
# Beyond it a threshold shows nobody for any noise that is of use, and doubles skip integers.
LARGEST_THRESHOLD = 2.0**52
# Releases with weights or bounded rows whose alternatives are tried together. Only speed, and how
# tight the account of a fixed plan is, depend on it.
MOST_VARIED = 3
THRESHOLD = checks.Argument(
    "threshold",
    "a number in [-2**52, 2**52]",
    lambda x: (x >= -LARGEST_THRESHOLD) & (x <= LARGEST_THRESHOLD),
    "A key is released if its noisy count is at least the threshold",
)


@dataclass(frozen=True, repr=False)
class SparseHistogram(Mechanism):
    """Noisy counts by keys that are not known in advance; a key appears from a threshold on.

    Every key that at least one user has gets independent noise, and is released, with its noisy
    count, if that is at least ``threshold``. Other keys get no noise and never appear.

    Parameters
    ----------
    noise : Gaussian, Laplace, DiscreteGaussian or DiscreteLaplace
        The noise of one count. Its ``sensitivity`` is how far one user moves the count of one key
        (counts are >= 0, and a user's contribution is in [0, sensitivity]); its relation is that of
        the guarantee, between data sets that differ in one user.
    threshold : float, keyword only
        Rounded up to an integer where the noise is an integer, which changes nothing.
    max_partitions : int, keyword only
        The largest number of keys of one user, in [1, 2**40].
    minimum : int, optional, keyword only
        A key also needs this many users, before noise. Raise the threshold by ``minimum - 1``, or
        the minimum makes the guarantee worse.
    beside : Mechanism, optional, keyword only
        What else a released key comes with: the noise on a sum of one user's values under one key.
        Under replace-one it is charged as if the two values could lie at opposite ends.
    max_rows : int, optional, keyword only
        The users are bounded by their number of rows in all, and not by ``max_partitions``; each
        row counts one. For discrete Laplace noise.
    weighted : bool, keyword only
        A user of s keys adds ``sensitivity / sqrt(s)`` to each. For Gaussian noise.
    adaptive : bool, keyword only
        Whether what is counted, or what is composed with it, was chosen by earlier outputs.

    Notes
    -----
    *Guarantee.* The profile is exact for one release, and for a composition of releases that were
    all fixed before the first (docs/theorems_statistics.md, Theorems N1 to N10); with ``adaptive``
    it is bounded (Theorem N11). Wilkins, Kifer, Zhang and Karrer (2022) have N1 for Gaussian noise.

    Examples
    --------
    >>> import accountant as ac
    >>> zips = ac.SparseHistogram(ac.Gaussian(6.0), threshold=36.0)
    >>> zips.delta(1.0)
    2.716543737088226e-09
    """

    theorems = ("N1", "N10", "N11")
    about = "Noisy counts by keys that are not known in advance; keys with few users are left out."

    noise: Mechanism
    threshold: float = field(kw_only=True)
    max_partitions: int = field(default=1, kw_only=True)
    minimum: int | None = field(default=None, kw_only=True)
    beside: Mechanism | None = field(default=None, kw_only=True)
    max_rows: int | None = field(default=None, kw_only=True)
    weighted: bool = field(default=False, kw_only=True)
    adaptive: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.noise, NOISES):
            raise ArgumentTypeError(
                "noise must be Gaussian, Laplace, DiscreteGaussian or DiscreteLaplace, whose laws"
                f" the theorems cover; got {self.noise!r:.80}"
            )
        checks.flag("weighted", self.weighted)
        checks.flag("adaptive", self.adaptive)
        threshold = checks.number(THRESHOLD, self.threshold)
        whole = isinstance(self.noise, (DiscreteGaussian, DiscreteLaplace))
        values: dict[str, object] = {
            "threshold": float(math.ceil(threshold)) if whole else threshold,
            "max_partitions": checks.integer("max_partitions", self.max_partitions, 1, 2**40),
        }
        for name in ("minimum", "max_rows"):
            if (given := getattr(self, name)) is not None:
                values[name] = checks.integer(name, given, 1, 2**20)
        if self.beside is not None and mechanism_of(self.beside, "beside").relation is not (
            self.noise.relation
        ):
            raise UnsupportedError(
                f"beside must have the relation of the noise, {self.noise.relation!r}; got"
                f" {self.beside.relation!r}"
            )
        set_fields(self, **values)
        if self.max_rows is not None or self.weighted:
            self._check_variant()

    def _check_variant(self) -> None:
        """Refuse what the theorems on rows and on weighted users do not cover."""
        name = "max_rows" if self.max_rows is not None else "weighted"
        others = (self.minimum, self.beside, self.max_rows if self.weighted else None)
        if any(other is not None for other in others):
            raise UnsupportedError(f"no theorem has {name} beside another bound; got {self!r}")
        checks.supported_relation(name, self.relation, (ADD_OR_REMOVE, ZERO_OUT))
        if self.weighted:
            if not isinstance(self.noise, Gaussian):
                raise UnsupportedError(f"weighted needs Gaussian noise; got {self.noise!r}")
            return
        if not isinstance(self.noise, DiscreteLaplace) or self.noise.sensitivity != 1:
            raise UnsupportedError(
                f"max_rows needs DiscreteLaplace noise of sensitivity 1; got {self.noise!r}"
            )
        if self.max_partitions != 1:
            raise DomainError(
                "max_rows takes the place of max_partitions, which must be left out; got"
                f" max_partitions={self.max_partitions}"
            )

    @property
    def relation(self) -> NeighbouringRelation:
        """That of the noise, between data sets that differ in one user."""
        return self.noise.relation

    @property
    def covers_removal(self) -> bool:
        """True: a user who is left out changes fewer keys than one who is replaced."""
        return True

    @property
    def attained(self) -> bool:
        """Whether data sets approach the profile, which they do in a plan fixed in advance."""
        return self.from_below() is None and (self.beside is None or self.beside.attained)

    def from_below(self) -> SparseHistogram | None:
        """Return the release of a plan that is fixed in advance, with what its values reach."""
        below = None if self.beside is None else self.beside.from_below()
        if not self.adaptive and below is None:
            return None
        return replace(self, adaptive=False, beside=below or self.beside)

    def adaptively(self) -> SparseHistogram:
        """Return the same release among releases that were chosen by earlier outputs."""
        return self if self.adaptive else replace(self, adaptive=True)

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return the pairs of removal and addition; one for both orders under replace-one."""
        if self.relation is REPLACE_ONE:
            return (HistogramPair(self, 0),)
        return HistogramPair(self, 0), HistogramPair(self, 1)

    def in_words(self) -> str:
        """Say in words whose counts these are, their bounds, and what happens to other keys."""
        unit: float = self.noise.sensitivity  # type: ignore[attr-defined]
        if self.max_rows is not None:
            bound = f"One unit adds at most {self.max_rows:,} rows, under any keys."
        elif self.weighted:
            bound = (
                f"One unit adds {unit:g} over the root of the number of its keys to each of them,"
                f" at most {self.max_partitions:,}."
            )
        else:
            keys = "one key" if self.max_partitions == 1 else f"{self.max_partitions:,} keys"
            bound = f"One unit is under at most {keys} and moves the count of each by at most"
            bound += f" {unit:g}."
        few = "" if self.minimum is None else f" and at least {self.minimum:,} units have it"
        rest = (
            f" A key appears if its noisy count is at least {self.threshold:g}{few}; every other"
            " key, also one that nobody has, is left out without a trace."
        )
        beside = "" if self.beside is None else f" Beside the count of a key: {self.beside!r}."
        plan = " It may depend on earlier outputs." if self.adaptive else ""
        return bound + rest + beside + plan

    def group(self, size: int) -> Mechanism:
        """Return itself for a group of one; a larger one may fill a key by itself."""
        if checks.integer("size", size, 1) == 1:
            return self
        raise UnsupportedError(
            "a group of users may lift one key by all their contributions together; bound the"
            " contributions of each group as one user, and count the groups"
        )

    def under(self, relation: NeighbouringRelation) -> SparseHistogram:
        """Return the same release under another relation between data sets."""
        beside = None if self.beside is None else self.beside.under(relation)
        return replace(self, noise=self.noise.under(relation), beside=beside)

    # The structure that analyses see: boxes of alternatives.

    def axes(self, count: int) -> tuple[tuple[int, int], ...]:
        """Return the least and largest value of each number that an alternative is made of.

        Of ``count`` releases: how many keys of the user are new (removal or addition); how many of
        either user are new and, with values beside the counts, how many they share (replace-one);
        how many new keys there are, and how many rows in them (rows); the number of keys, and of
        new keys (weighted users). The last two list each release, and nothing where they are too
        many: then each release is taken at its worst alternative, as if it were adaptive.
        """
        slots = count * self.max_partitions
        if (self.max_rows is not None or self.weighted) and count > MOST_VARIED:
            return ()
        if self.max_rows is not None:
            return ((0, self.max_rows), (0, self.max_rows)) * count
        if self.weighted:
            return ((1, self.max_partitions), (0, self.max_partitions)) * count
        if self.relation is REPLACE_ONE:
            return ((0, slots), (0, slots), (0, 0 if self.beside is None else slots))
        return ((0, slots),)

    def box(self, direction: int, count: int, ends: Sequence[tuple[int, int]]) -> Box | None:
        """Return what dominates all alternatives between the ends; None where there is none."""
        if self.max_rows is not None or self.weighted:
            boxes = [self._varied(ends[2 * i : 2 * i + 2]) for i in range(count)]
            return joined([turned(box, direction) for box in boxes])
        log = hiding(self.noise, self.threshold, (self.minimum or 1) * self.noise.sensitivity)  # type: ignore[attr-defined]
        slots = count * self.max_partitions
        if self.relation is not REPLACE_ONE:
            ((low, high),) = ends
            hidden = log.times(high)
            return turned(Box(hidden, NOTHING, self._old(slots - low, direction)), direction)
        (u_low, u_high), (v_low, v_high), (s_low, s_high) = ends
        most = slots - s_low  # of keys that only one of the users has, at each
        if u_low > most or v_low > most:
            return None
        u, v = min(u_high, most), min(v_high, most)
        old = self._old(max(2 * most - u_low - v_low, 0), 0) + self._shared(s_high)
        return Box(log.times(u), log.times(v), old)

    def _varied(self, ends: Sequence[tuple[int, int]]) -> Box | None:
        """Return the box of one release with bounded rows or weighted users."""
        if self.max_rows is None:
            assert isinstance(self.noise, Gaussian)
            return weighted_box(self.noise, self.threshold, ends)
        assert isinstance(self.noise, DiscreteLaplace)
        return rows_box(self.noise, self.threshold, self.max_rows, ends)

    def _old(self, count: int, direction: int) -> Parts:
        """Return the parts of keys that other users have, too."""
        found = [(self.noise.under(ADD_OR_REMOVE).pairs()[0], count)]
        if self.beside is not None:
            either = self.relation is REPLACE_ONE
            beside = self.beside.under(ADD_OR_REMOVE) if either else self.beside
            found.append((beside.pairs()[-direction], count))
        return tuple(found) if count else ()

    def _shared(self, count: int) -> Parts:
        """Return the parts of keys that both of two users have, under replace-one."""
        if self.beside is None or not count:
            return ()
        noise = self.noise.under(ADD_OR_REMOVE).pairs()[0]
        return (noise, count), (self.beside.pairs()[0], count)


@dataclass(frozen=True)
class HistogramPair(DominatingPair):
    """The worst alternative of a sparse histogram, in one direction.

    Parameters
    ----------
    mechanism : SparseHistogram
        The release.
    direction : int
        0 for removal, and for replacement in either order; 1 for addition.
    """

    mechanism: SparseHistogram
    direction: int

    def pld_upper_pair(self) -> DominatingPair | None:
        """Return the pair of the largest profile, which composes adaptively (Theorem N11)."""
        alone = replace(self.mechanism, adaptive=False)
        ways = range(len(alone.pairs()))
        found: DominatingPair = bound().joint(
            tuple(((HistogramPair(alone, way), 1),) for way in ways)
        )
        return found

    @property
    def infinite_mass(self) -> float:
        """The probability that a new key is shown, where all keys of the user are new."""
        shown = self.whole.first.largest
        return min(up(lift(-math.expm1(-shown))), 1.0) if shown else 0.0

    @property
    def has_negative_infinite_loss(self) -> bool:
        """Whether the second data set may show a key that the first has not."""
        return self.whole.second.largest > 0.0

    @property
    def support(self) -> tuple[float, float]:
        """The sums of the finite losses, at most."""
        old = self._total(lambda pair: max(pair.support[1], -pair.support[0]))
        whole = self.whole
        return -up(old + whole.first.largest), up(old + whole.second.largest)

    def finite_rdp(self, order: float) -> float:
        """Return a bound on the divergence of the finite losses, rounded up (Theorem N11)."""
        found = self._total(lambda pair: pair.finite_rdp(order))
        return up(found + self.whole.second.largest)

    @property
    def whole(self) -> Box:
        """What dominates all alternatives of one release."""
        whole = self.mechanism.box(self.direction, 1, self.mechanism.axes(1))
        assert whole is not None
        return whole

    def _total(self, measure: Callable[[DominatingPair], float]) -> float:
        return total((measure(pair), n) for pair, n in self.whole.old)

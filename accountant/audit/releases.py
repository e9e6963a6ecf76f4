"""What a run hands its private values to, while it is recorded and while it is replayed."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from accountant import checks
from accountant.audit.recorded import Diverged, Entry, Finding, Script, distance, is_same, shown
from accountant.errors import DomainError
from accountant.mechanisms import Gaussian, Laplace, Mechanism
from accountant.sampling import PoissonSampled

NORMS = (1, 2, math.inf)
STATED = checks.positive("sensitivity", "Give what one record moves the value by at most")
DEVIATION = checks.positive("scale", "Give the scale of the noise")


def composed(mechanisms: Sequence[Mechanism | None]) -> Mechanism | None:
    """Return the composition, or None if there is none or one of them is unknown."""
    known = [mechanism for mechanism in mechanisms if mechanism is not None]
    if not known or len(known) != len(mechanisms):
        return None
    return sum(known[1:], known[0])


class Releases(Script):
    """Records the releases of a run, or hands their outcomes to a replay of it.

    A run gets one as its second argument and gives it every value that it protects by noise. Of
    the recorded run it keeps the values and the outcomes. The replayed run, on a neighbouring data
    set, gets the same outcomes, and its values are compared with those kept.

    Attributes
    ----------
    rng : numpy.random.Generator
        For public randomness: initial weights, dropout. It starts in the same state in both runs.

    Notes
    -----
    The noise comes from a seeded generator and protects nothing: what an audited run returns is not
    to be published.
    """

    def __init__(
        self,
        seed: int,
        recorded: Releases | None = None,
        removed: int | None = None,
        changed: int | None = None,
    ):
        super().__init__(recorded)
        self.seed, self.patches = seed, ExitStack()
        self.rng = np.random.default_rng([seed, 1])
        self._noise = np.random.default_rng([seed, 2])
        self._removed, self._changed = removed, changed
        self._same_sample = False  # the block's sample is without the record that differs
        self.findings: list[Finding] = []
        self.largest_ratio = 0.0
        self.mechanisms: list[Mechanism | None] = []
        self.releases = 0

    def gaussian(
        self, value: Any, *, sensitivity: float, scale: float, name: str = "gaussian"
    ) -> Any:
        """Return ``value`` with Gaussian noise of standard deviation ``scale``.

        Parameters
        ----------
        value : array_like
            The private value.
        sensitivity : float
            What one record moves it by at most in the Euclidean norm; finite, > 0.
        scale : float
            > 0.
        name : str
            Of the release.
        """
        draw = np.random.Generator.standard_normal
        return self._noisy(name, value, draw, Gaussian, sensitivity, scale, 2)

    def laplace(
        self, value: Any, *, sensitivity: float, scale: float, name: str = "laplace"
    ) -> Any:
        """Return ``value`` with Laplace noise, for a sensitivity in the 1-norm."""
        draw = np.random.Generator.laplace
        return self._noisy(name, value, draw, Laplace, sensitivity, scale, 1)

    def _noisy(
        self, name: str, value: Any, draw: Any, law: Any, stated: float, scale: float, norm: float
    ) -> Any:
        checks.number(DEVIATION, scale)
        return self.release(
            name, value, lambda x, rng: x + scale * draw(rng, size=np.shape(x)),
            sensitivity=stated, norm=norm, scale=scale,
            mechanism=law(scale / checks.number(STATED, stated)),
        )  # fmt: skip

    def release(
        self,
        name: str,
        value: Any,
        noise: Callable[[Any, np.random.Generator], Any],
        *,
        sensitivity: float,
        norm: float = 2,
        mechanism: Mechanism | None = None,
        **public: Any,
    ) -> Any:
        """Return the outcome of a release: ``noise(value, rng)``, or what it was when recorded.

        Parameters
        ----------
        name : str
            Of the release; the same in both runs.
        value : array_like
            The private value: a sum, counts, scores.
        noise : callable
            Returns the outcome; it is called while recording only.
        sensitivity : float
            What one record moves ``value`` by at most; > 0.
        norm : {1, 2, inf}
            In which norm.
        mechanism : Mechanism, optional
            What the release costs, for the comparison with a claim.
        **public
            Everything else that the noise depends on; it must be the same in both runs.
        """
        sensitivity = checks.number(STATED, sensitivity)
        if norm not in NORMS:
            raise DomainError(f"norm must be 1, 2 or inf; got {norm!r}")
        public = {"sensitivity": sensitivity, "norm": norm, "mechanism": mechanism, **public}
        # Noise may be added in place, also by a function that does not use what it is given.
        private, public = deepcopy((value, public))
        past = self._event(
            "release", name, private, lambda: noise(deepcopy(value), self._noise), public
        )
        number = self.releases
        self.releases += 1
        self.mechanisms.append(mechanism)
        if past is None:
            return deepcopy(self.entries[-1].outcome)
        self._compare_public(past.public, public, name, number)
        gap, rounding = distance(past.private, value, norm)
        if self._same_sample and gap > rounding:
            self._find(
                "sample", f"{name!r} moved by {gap:.6g} where the record was not sampled", number
            )
        elif gap > sensitivity * (1.0 + 1e-9) + rounding:
            self._find(
                "sensitivity",
                f"{name!r} moved by {gap:.6g}, stated {sensitivity:.6g}"
                if math.isfinite(gap)
                else f"{name!r} changed its shape, its type or became"
                f" infinite: {shown(past.private)} and {shown(value)}",
                number,
            )
        self.largest_ratio = max(self.largest_ratio, gap / sensitivity)
        return deepcopy(past.outcome)

    @contextmanager
    def poisson(self, records: int, q: float) -> Iterator[NDArray[np.intp]]:
        """Draw a Poisson sample of the records; releases inside the block are sampled ones.

        Parameters
        ----------
        records : int
            Of the data set that the run was given.
        q : float
            The sampling probability, in [0, 1].

        Yields
        ------
        ndarray of int
            The rows drawn. The replayed run gets the same records, without the one that it lacks.
            Releases inside the block may depend on these records alone.
        """
        checks.number(checks.Q, q)
        drawn = self.sample(
            "poisson", records, lambda n, rng: np.flatnonzero(rng.random(n) < q), q=q
        )
        outside, self.mechanisms = self.mechanisms, []
        around = self._same_sample
        if self.recorded is not None and self._changed is not None:
            self._same_sample = around or self._changed not in self.entries[-1].outcome
        try:
            yield drawn
        finally:  # what was released before an error was released
            self._same_sample = around
            inside, self.mechanisms = self.mechanisms, outside
            if inside:
                total = composed(inside)
                self.mechanisms.append(None if total is None else PoissonSampled(total, q))

    def sample(
        self,
        name: str,
        records: int,
        draw: Callable[[int, np.random.Generator], Any],
        **public: Any,
    ) -> Any:
        """Return the rows of a batch: ``draw(records, rng)``, or the same records in a replay.

        ``draw`` returns row numbers, or a boolean for each row.
        """

        def drawn() -> Any:
            rows = draw(records, self._noise)
            return None if rows is None else np.array(rows)

        public = deepcopy(public)
        past = self._event("sample", name, records, drawn, public)
        if past is None:
            return deepcopy(self.entries[-1].outcome)
        self._compare_public(past.public, public, name, None)
        expected = past.private - (self._removed is not None)
        if records != expected:
            self._find(
                "sample", f"{name!r} drew from {records} records, the data set has {expected}"
            )
            raise Diverged("another number of records")
        rows = past.outcome
        if rows is None or self._removed is None:
            return deepcopy(rows)
        if rows.dtype == bool:
            return np.delete(rows, self._removed)
        rows = rows[rows != self._removed]
        return rows - (rows > self._removed)

    def patch(
        self,
        owner: Any,
        function: str,
        *,
        value: str,
        sensitivity: Any,
        norm: float = 2,
        mechanism: Any = None,
        ignore: Sequence[str] = (),
    ) -> None:
        """Put :meth:`release` under a function that adds noise, until the run ends.

        Parameters
        ----------
        owner : module or class
            Where the function is looked up when it is called.
        function : str
            Its name. It must return the noisy outcome.
        value : str
            The name of the argument that is private.
        sensitivity : float or callable
            The stated sensitivity, or a function of the call's arguments (by name) that returns it.
        norm, mechanism
            As in :meth:`release`; a mechanism may be a function of the arguments as well.
        ignore : sequence of str
            The arguments that need not be the same in both runs, besides ``self``. Only objects
            without influence on the outcome belong here, and generators of the noise.
        """

        def use(named: dict[str, Any], noise: Callable[..., Any]) -> Any:
            return self.release(
                function,
                named[value],
                noise,
                sensitivity=_at(sensitivity, named),
                norm=norm,
                mechanism=_at(mechanism, named),
                **_public(named, {value, *ignore}),
            )

        self._put_under(owner, function, use)

    def patch_sampler(
        self, owner: Any, function: str, *, records: str, ignore: Sequence[str] = ()
    ) -> None:
        """Put :meth:`sample` under a function that draws a batch, until the run ends.

        ``records`` is the name of the argument that holds the number of records. The function must
        return row numbers, a boolean for each row, or None for all rows.
        """

        def use(named: dict[str, Any], draw: Callable[..., Any]) -> Any:
            public = _public(named, {records, *ignore})
            return self.sample(function, named[records], draw, **public)

        self._put_under(owner, function, use)

    def _put_under(
        self, owner: Any, function: str, use: Callable[[dict[str, Any], Callable[..., Any]], Any]
    ) -> None:
        """Hand the arguments of a function's calls, by name, to ``use`` until the run ends."""
        original = getattr(owner, function)
        signature = inspect.signature(original)

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            given = signature.bind(*args, **kwargs)
            given.apply_defaults()
            return use(dict(given.arguments), lambda *_: original(*args, **kwargs))

        self.patches.enter_context(mock.patch.object(owner, function, call))

    def public(self, name: str, value: Any) -> Any:
        """Return ``value``, which the account treats as public: the same in both runs."""
        past = self._event("public value", name, None, lambda: deepcopy(value), {})
        if past is not None:
            self._compare_public({name: past.outcome}, {name: value}, name, None)
        return value

    def _event(self, *event: Any) -> Entry | None:
        try:
            return self.meet(*event)
        except Diverged as other:
            self._find("control flow", str(other))
            raise

    def finish(self) -> None:
        """Compare the number of events."""
        if self.recorded is not None and len(self.entries) < len(self.recorded.entries):
            past = self.recorded.entries[len(self.entries)]
            self._find("control flow", f"the run ended before the {past.kind} {past.name!r}")

    def _compare_public(
        self, past: dict[str, Any], now: dict[str, Any], name: str, number: int | None
    ) -> None:
        for key in {**past, **now}:
            a, b = past.get(key), now.get(key)
            if not is_same(a, b):
                what = f"{key} of {name!r}" if key != name else repr(name)
                self._find("public value", f"{what} was {shown(a)} and is {shown(b)}", number)

    def _find(self, kind: str, message: str, number: int | None = None) -> None:
        self.findings.append(Finding(kind, message, number, None))


def _at(stated: Any, named: dict[str, Any]) -> Any:
    return stated(**named) if inspect.isroutine(stated) else stated


def _public(named: dict[str, Any], left_out: set[str]) -> dict[str, Any]:
    """Return the arguments that must be the same, under names that a release does not use."""
    return {f"argument {name}": named[name] for name in named if name not in {"self", *left_out}}

"""What reaches the noise, recorded; and a second run that sees the first one's releases.

Privacy of several releases is a statement about one step *given the earlier releases*. So the
second run is handed the releases of the first: whatever it does after them is then a function of
the same public numbers, and has to be the same to the last bit.
"""

import contextlib
import secrets
from functools import partial
from unittest import mock

import numpy as np

import accountant.learn.run as run_module
from accountant.audit.recorded import Diverged, Entry, Script
from accountant.learn import blocks as aggregate
from accountant.learn import local as bounded
from accountant.learn import release as correlated
from accountant.learn.convex import fit as convex_noise
from accountant.learn.generation import pate_gan
from accountant.learn.pate import aggregation, ensemble
from accountant.learn.selection import noisy_max
from accountant.noise import Grid, SecureGenerator

SEED = 20260
GAUSSIAN = Grid.release_gaussian


class Tape(Script):
    """The releases of one run; with ``script`` the outputs come from there.

    An entry's private value is exact, in the units of its public ``scale``: integers for noise on a
    grid, fractions for the exponents of a choice. ``identities`` names the records: every draw *for
    a record* (its place in a Poisson sample, its shard) is a function of its name, so that the
    records that two data sets share fare alike. ``always`` is the record that differs: it is in
    every sample.
    """

    current = None

    def __init__(self, identities, always, script=None, quiet=False):
        super().__init__(script)
        self.identities, self.always, self.quiet = identities, always, quiet
        self.draws = 0
        self.pending = None

    def put(self, kind, value, scale, make, step=1.0):
        """Record a release and return its output: ``make()``, or the first run's."""
        value = list(value)
        public = {"size": len(value), "scale": scale, "step": step}
        past = self.meet("release", kind, value, make, public)
        if past is not None and past.public != public:
            raise Diverged(f"{kind}: {public}, the twin's: {past.public}")
        found = self.entries[-1].outcome
        return found.copy() if isinstance(found, np.ndarray) else found

    def note(self, kind, value, scale, widths=None):
        """Record a release whose output no two runs share; of cells the widths stand there."""
        size = len(value) if widths is None else None
        public = {"size": size, "scale": scale, "step": 1.0}
        self.entries.append(Entry("release", kind, value, widths, public))

    def for_records(self, n):
        """Return one uniform number for each record, the same for a record of either twin."""
        self.draws += 1
        if n != len(self.identities):
            raise AssertionError(f"{n} records are drawn for, of {len(self.identities)}")
        everyone = np.random.default_rng((SEED, self.draws)).random(
            max(self.identities, default=0) + 1
        )
        return everyone[list(self.identities)] if n else np.empty(0)

    @contextlib.contextmanager
    def running(self):
        """Put the tape between the package's releases and its noise."""
        with contextlib.ExitStack() as stack:
            for target, name, stand_in in self._stand_ins():
                stack.enter_context(mock.patch.object(target, name, stand_in))
            stack.enter_context(mock.patch.object(Tape, "current", self))
            yield self

    def _stand_ins(self):
        around = [
            (Grid, "release_gaussian", self._on_grid),
            (Grid, "release_discrete_gaussian", self._on_grid),
            (correlated.CorrelatedPrivatiser, "_noisy", self._correlated),
            (run_module, "release_fraction", self._fraction),
            (convex_noise.NoiseSource, "release_pure", self._pure),
            (convex_noise, "weighted_index", self._weighted),
            (noisy_max, "_softmax_draw", partial(self._choice, "softmax")),
            (noisy_max, "_flip_draw", partial(self._choice, "flip")),
            (noisy_max, "floor_to_grid", self._noted),
            (bounded, "_on_grid", self._noted),
            (aggregation.LNMax, "winner", self._laplace_vote),
            (SecureGenerator, "rounded_normal", self._normal),
        ]
        return [
            *((target, name, make(getattr(target, name))) for target, name, make in around),
            (correlated, "draw_classes", self._classes()),
            (secrets, "token_hex", lambda size: "0" * 2 * size),
            (SecureGenerator, "subset", self._subset()),
            *(
                (place, "assign_shards", self._shards())
                for place in (ensemble, aggregate, pate_gan)
            ),
            *(
                (place, "rounded_laplace", self._laplace)
                for place in (noisy_max, aggregate, bounded)
            ),
        ]

    def _on_grid(self, original):
        def release(grid, value, scale, generator):
            steps = scale / grid.step if original is GAUSSIAN else scale
            return self.put(
                "gaussian", _integers(grid.round(value)), steps,
                lambda: original(grid, value, scale, generator), grid.step,
            )  # fmt: skip

        return release

    def _correlated(self, original):
        def noisy(privatiser, sums, grid, scale, generator):
            # The twin's noise is what makes its sums the same releases (Theorem X5).
            stream = privatiser.stream
            earlier = np.rint(stream._earlier())
            released = self.put(
                "gaussian", _integers(sums + earlier), scale,
                lambda: original(privatiser, sums, grid, scale, generator), grid.step,
            )  # fmt: skip
            if self.recorded is not None:
                stream._remember(released - sums - earlier, released - sums)
                stream.step += 1
            return released

        return noisy

    def _classes(self):
        def draw(records, classes, generator):
            return (self.for_records(records) * classes).astype(np.int64)

        return draw

    def _fraction(self, original):
        def release(clipping, unclipped, records, *rest):
            return self.put(
                "gaussian", [2 * unclipped - records], 2.0 * clipping.count_noise,
                lambda: original(clipping, unclipped, records, *rest),
            )  # fmt: skip

        return release

    def _pure(self, original):
        def release(source, values, *given):
            seen = {}

            def at_most(step):
                seen["step"] = Grid.at_most(step).step
                return Grid(seen["step"])

            def none(scale, below):
                seen["scale"] = scale
                return 0

            with (
                mock.patch.object(convex_noise, "discrete_laplace", none),
                mock.patch.object(convex_noise, "Grid", mock.Mock(at_most=at_most)),
            ):
                bare = original(source, values, *given)
            return self.put(
                "laplace", _integers(np.ravel(bare) / seen["step"]), seen["scale"],
                lambda: original(source, values, *given), seen["step"],
            )  # fmt: skip

        return release

    def _weighted(self, original):
        def draw(generator, scores, rate, widths=None):
            sizes = None if widths is None else widths.tolist()
            if sizes is not None:  # the cells themselves are private: no two runs share an index
                self.note("cells", scores.tolist(), rate, sizes)
                return original(generator, scores, rate, widths)
            return self.put(
                "weights", scores.tolist(), rate, lambda: original(generator, scores, rate)
            )

        return draw

    def _choice(self, kind, original):
        def draw(generator, exponents):
            return self.put(kind, exponents, None, lambda: original(generator, exponents))

        return draw

    def _noted(self, original):
        """Remember the values that the next noise is added to, where a function adds it itself."""

        def on_grid(*given):
            found = original(*given)
            self.pending = _integers(found)
            return found

        return on_grid

    def _laplace_vote(self, original):
        def winner(vote, counts, generator):
            return self.put(
                "vote", _integers(counts), vote.scale, lambda: original(vote, counts, generator)
            )

        return winner

    def _instead(self, kind, n, scale):
        """Leave out noise that a function adds by itself."""
        self.note(kind, self.pending if self.pending is not None else [0] * n, scale)
        self.pending = None
        return np.zeros(n)

    def _laplace(self, generator, n, scale):
        return self._instead("laplace", n, scale)

    def _normal(self, original):
        def normal(generator, n, scale):
            if self.quiet:
                return self._instead("gaussian", n, scale)
            return original(generator, n, scale)

        return normal

    def _subset(self):
        def subset(generator, n, probability):
            chosen = self.for_records(n) < probability
            chosen |= np.array(self.identities, dtype=int) == self.always
            return np.flatnonzero(chosen)

        return subset

    def _shards(self):
        def assign(n, shards, *, rng=None):
            return (self.for_records(n) * shards).astype(np.int64)

        return assign


def _integers(values):
    """Return exact integers; None where there is none (NaN and infinity)."""
    floats = np.asarray(values, dtype=np.float64).ravel().tolist()
    return [int(v) if np.isfinite(v) else None for v in floats]

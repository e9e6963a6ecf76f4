"""Units apart, for the NumPy trainers: what one record adds is a function of that record alone.

The cases and the tape are those of ``support.twins``, with randomness at its default: no generator
is seeded, as far as the trainer can tell, though both runs of a pair draw the same numbers. What
the twins compare is a sum; here it is every record's own part of it, to the last bit, and that the
sum moves by the part of the record that differs and by nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np

from accountant.audit.recorded import Diverged, is_same
from accountant.audit.replay import frozen
from accountant.learn import blocks as aggregate
from accountant.learn import release as correlated
from accountant.learn.convex import fit, statistics
from accountant.learn.generation.domain import Domain
from accountant.learn.models.base import Totals
from accountant.learn.pate import ensemble
from accountant.learn.release import Privatiser
from accountant.learn.run import Run
from accountant.noise import SecureGenerator
from support.twins.comparison import distances
from support.twins.tape import Tape
from support.twins.trace import watch

# What reads records and keeps none by itself: a quantile sorts them, and local reports are made of
# one user's value each, which the tape compares as they are.
WITHOUT_PARTS = ("private_quantile", "randomize_", "KaryResponse", "Rappor")
# Of a sum of clipped gradients, in units of one record's bound: far above the rounding of a sum of
# some hundred terms (Theorem T4), far below what a fault would move.
ROUNDING = 2.0**-36


@dataclass
class Parts:
    """What every record added in one run, by its name and by when it was asked."""

    of_records: dict[tuple[Any, ...], bytes] = field(default_factory=dict)
    gradients: dict[tuple[int, int], Any] = field(default_factory=dict)
    sums: list[tuple[Any, float]] = field(default_factory=list)
    calls: int = 0

    def note(self, kind, rows):
        """Remember one array of rows, one for each record."""
        assert Tape.current is not None
        self.calls += 1
        for name, row in zip(Tape.current.identities, rows, strict=True):
            self.of_records[kind, self.calls, name] = np.asarray(row).tobytes()

    @contextlib.contextmanager
    def noted(self):
        """Put this between the data and the sums."""
        with contextlib.ExitStack() as stack:
            for target, name, stand_in in self._stand_ins():
                stack.enter_context(mock.patch.object(target, name, stand_in))
            yield

    def _stand_ins(self):
        return [
            (Run, "_draw", self._drawn(Run._draw)),
            *((kind, "release", self._released(kind.release)) for kind in PRIVATISERS),
            *((module, "paired", self._rows(module.paired)) for module in (fit, statistics)),
            (statistics, "_centred", self._rows(statistics._centred)),
            *((Domain, name, self._rows(getattr(Domain, name))) for name in ("encode", "features")),
            *(
                (place, "records_at", self._shard(place.records_at))
                for place in (aggregate, ensemble)
            ),
        ]

    def _drawn(self, original):
        def draw(run):
            rows = original(run)
            assert Tape.current is not None
            rule = run.clipping.rule(len(run.model.groups))
            for row in range(len(run.X)) if rows is None else rows.tolist():
                totals, name = Totals(np.zeros(run.model.size)), Tape.current.identities[row]
                run.model.add_rows(run.X, run.y, np.array([row]), rule, totals)
                self.of_records["gradient", run.step, name] = totals.gradient.tobytes()
                self.gradients[run.step, name] = totals.gradient
            return rows

        return draw

    def _released(self, original):
        def release(privatiser, value, rule, generator):
            self.sums.append((value.copy(), rule.sensitivity))
            return original(privatiser, value, rule, generator)

        return release

    def _rows(self, original):
        def call(*given, **named):
            found = original(*given, **named)
            several = found if isinstance(found, tuple) else (found,)
            for rows in several[:1] if original.__name__ == "_centred" else several:
                self.note(original.__name__, rows)
            return found

        return call

    def _shard(self, original):
        def records_at(found, places):
            assert Tape.current is not None
            shard = original(found, places)
            names = tuple(Tape.current.identities[i] for i in places.tolist())
            self.of_records["shard", *names] = shard.tobytes() + str(shard.dtype).encode()
            return shard

        return records_at


PRIVATISERS = (Privatiser, correlated.CorrelatedPrivatiser)


@contextlib.contextmanager
def unseeded(secret):
    """Key every generator from the system, as far as it knows; the same numbers for one secret."""
    made = SecureGenerator.__init__
    keys = iter(range(10**9))

    def without_a_seed(generator, seed=None):
        made(generator, None)

    def key(size):
        return hashlib.sha256(secret + str(next(keys)).encode()).digest()[:size]

    with (
        mock.patch.object(SecureGenerator, "__init__", without_a_seed),
        mock.patch.object(secrets, "token_bytes", key),
    ):
        yield


def units_apart(case, pair):
    """Run a case on both data sets; return what is wrong, and the first run's parts."""
    secret = np.random.default_rng().bytes(32)
    tapes, parts, traces, ends = [], [], [], []
    for data, names in ((pair.left, pair.left_ids), (pair.right, pair.right_ids)):
        script = tapes[0] if tapes and case.replays else None
        tapes.append(Tape(names, pair.differs, script=script, quiet=case.quiet))
        parts.append(Parts())
        try:
            with frozen(1) as end, unseeded(secret), tapes[-1].running(), parts[-1].noted():
                traces.append(watch(case.run, data))
        except Diverged as error:
            return [f"control flow: {error}"], parts[0]
        ends.append(end)
    one, other = traces
    wrong = [f"{a!r} and {b!r}" for a, b in zip(one.outside, other.outside, strict=True) if a != b]
    wrong += [f"global generator {n}" for n, s in ends[0].items() if not is_same(s, ends[1][n])]
    wrong += _apart(*parts, pair.differs)
    wrong += [f"raised: {trace.raised}" for trace in traces if trace.raised is not None]
    if not wrong:
        wrong += distances(tapes[0].entries, tapes[1].entries, case.charges(one.result, pair))
        wrong += _moved_by_one(*parts, pair.differs)
    return wrong, parts[0]


def _apart(one, other, differs):
    shared = set(one.of_records) & set(other.of_records)
    changed = {
        key[0]
        for key in shared
        if differs not in key[1:] and one.of_records[key] != other.of_records[key]
    }
    return [f"{kind}: another record's part changed" for kind in sorted(changed)]


def _moved_by_one(one, other, differs):
    wrong = []
    for step, ((left, bound), (right, _)) in enumerate(zip(one.sums, other.sums, strict=True)):
        alone = [side.gradients.get((step, differs), 0.0) for side in (one, other)]
        rest = np.abs((left - right) - (alone[0] - alone[1])).max(initial=0.0)
        if not rest <= ROUNDING * bound:
            wrong.append(f"step {step}: the sum moved by {rest:g} more than the record's part")
    return wrong

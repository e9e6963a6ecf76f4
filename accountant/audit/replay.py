"""Record and replay: what a run does with its data outside its releases, found without statistics.

A trainer runs on neighbouring data sets with all randomness frozen. ``releases`` is what a run
hands its private values to; ``recorded`` holds its events and compares them.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace as with_changes
from typing import Any

import numpy as np

from accountant import checks
from accountant.audit.recorded import Diverged, Finding, ReplayReport, is_same, shown
from accountant.audit.releases import Releases, composed
from accountant.errors import ArgumentTypeError, DomainError, UnsupportedError
from accountant.mechanisms.base import Mechanism

NEIGHBOURS = 8  # Records that are removed where none are named.


def audit_replay(
    run: Callable[[Any, Releases], Any],
    data: Any,
    *,
    remove: Iterable[int] | None = None,
    replace: Mapping[int, Any] | None = None,
    claimed: Mechanism | float | None = None,
    delta: float | None = None,
    seed: int = 0,
    name: str = "run",
) -> ReplayReport:
    """Find what a run does with its data outside its releases, without statistics.

    The run is recorded on ``data`` and replayed on neighbouring data sets. In a replay every
    release has the outcome that it had when it was recorded, whatever the data are. What a private
    run does is a function of those outcomes and of public values alone, so everything else must be
    equal to the last bit: which releases there are, their sensitivities and noise, sizes,
    normalisers, the result. The released values may differ by the stated sensitivity.

    Parameters
    ----------
    run : callable
        ``run(data, releases)`` hands each private value to ``releases``
        (:class:`~accountant.audit.Releases`) and returns what it would publish.
    data : array_like, list, or tuple of them
        The records along the first axis; tuples hold aligned arrays. Each run gets a copy.
    remove : iterable of int, optional
        The records that are removed, one at a time: the neighbours under add-or-remove. By default
        up to eight, those of the smallest batches first. Name the extreme ones: the largest, the
        only one of its class, one whose features are missing.
    replace : mapping of int to record, optional
        The records that are replaced, and by what: the neighbours under replace-one. Leaves
        ``remove`` out.
    claimed : Mechanism or float, optional
        The claim that the releases' composition is compared with: a mechanism, or ε. Each release
        must have named its mechanism.
    delta : float, optional
        At which; in (0, 1).
    seed : int
        Of all randomness.
    name : str
        For the report.

    Returns
    -------
    ReplayReport
        With one finding for each way in which the runs differed.

    Raises
    ------
    UnsupportedError
        If the run on the same data is not repeatable, so that nothing can be compared.
    DomainError
        Of a record's number outside the data, or a claim without δ, without mechanisms or under
        another relation than theirs.

    Notes
    -----
    *Guarantee.* A finding is a defect for these two data sets: no outcome of the releases explains
    it. The absence of findings proves nothing for other data sets or other outcomes. The noise
    itself is not examined; see :func:`~accountant.audit.audit_mechanism`. Values that moved by less
    than sixteen units of rounding above the sensitivity are not reported. What the run keeps from
    one call to the next (a cache, a model that is fitted on) comes from the recorded data and hides
    what it depends on: begin anew in each.

    *Source.* Cebere, Erb, Desfontaines, Bellet and Fitzsimons (2026), arXiv:2602.17454, describe
    record and replay; Theorem A12 of docs/theorems_audit.md says what it decides.
    """
    records = count_records(data)
    seed = checks.integer("seed", seed, 0, advice="Give a whole number")
    _require_claim(claimed, delta)
    recorded, result, end = _recorded_run(run, data, seed)
    neighbours = _neighbours(data, records, remove, replace, recorded)
    findings: list[Finding] = []
    largest = 0.0
    for index, neighbour in neighbours:
        removed = index if replace is None else None
        replayed = Releases(seed, recorded, removed, index)
        _replay(run, neighbour, replayed, result, end)
        findings += [with_changes(finding, record=index) for finding in replayed.findings]
        largest = max(largest, replayed.largest_ratio)
    total = composed(recorded.mechanisms)
    seen, stated = _compare_claim(total, claimed, delta, findings)
    rows = tuple(index for index, _ in neighbours)
    first: dict[tuple[str, int | None], Finding] = {}
    for finding in findings:
        first.setdefault((finding.kind, finding.release), finding)
    found = tuple(first.values())
    return ReplayReport(name, found, recorded.releases, rows, largest, total, seen, stated)


def _recorded_run(
    run: Callable[[Any, Releases], Any], data: Any, seed: int
) -> tuple[Releases, Any, dict[str, Any]]:
    recorded = Releases(seed)
    with recorded.patches, frozen(seed) as end:
        result = deepcopy(run(deepcopy(data), recorded))
    again = Releases(seed, recorded)
    _replay(run, data, again, result, end)
    if again.findings:
        raise UnsupportedError(
            "run must do the same twice on the same data, or nothing can be compared: draw public"
            f" randomness from releases.rng, and give seeds. It differed: {again.findings[0]}"
        )
    return recorded, result, end


def _replay(
    run: Callable[[Any, Releases], Any],
    data: Any,
    releases: Releases,
    result: Any,
    end: dict[str, Any],
) -> None:
    """Replay a run and note what differed."""
    try:
        with releases.patches, frozen(releases.seed) as own_end:
            own = run(deepcopy(data), releases)
    except Diverged:
        return
    except Exception as error:  # a failure that depends on the data is an output
        releases.findings.append(
            Finding("error", f"only one of the two runs raised {type(error).__name__}: {error}")
        )
        return
    releases.finish()
    if not is_same(result, own):
        releases.findings.append(
            Finding("result", f"{shown(result)} and {shown(own)} were returned")
        )
    for generator, state in own_end.items():
        if not is_same(state, end[generator]):
            what = f"the runs drew differently many numbers of {generator}"
            releases.findings.append(Finding("randomness", what))


def _neighbours(
    data: Any,
    records: int,
    remove: Iterable[int] | None,
    replace: Mapping[int, Any] | None,
    recorded: Releases,
) -> list[tuple[int, Any]]:
    def checked(index: object) -> int:
        return checks.integer("remove", index, 0, records - 1, advice="Give row numbers of data")

    if remove is not None and replace is not None:
        raise DomainError("remove and replace are two relations: give one of them")
    if replace is not None:
        return [
            (row, with_record(data, row, record))
            for row, record in zip(map(checked, replace), replace.values(), strict=True)
        ]
    rows = _rows_seen(recorded, records) if remove is None else list(remove)
    return [(row, without_record(data, row)) for row in map(checked, rows)]


def _rows_seen(recorded: Releases, records: int) -> list[int]:
    """Return up to eight records: of the smallest batches, then evenly spread."""
    batches = [
        np.flatnonzero(entry.outcome) if entry.outcome.dtype == bool else entry.outcome
        for entry in recorded.entries
        if entry.kind == "sample" and entry.outcome is not None
    ]
    spread = np.linspace(0, records - 1, min(NEIGHBOURS, records)).astype(int)
    rows: dict[int, None] = {}
    for batch in [*sorted(batches, key=len), spread]:
        rows.update(dict.fromkeys(map(int, batch)))
    return list(rows)[:NEIGHBOURS]


def _require_claim(claimed: Mechanism | float | None, delta: float | None) -> None:
    if (claimed is None) != (delta is None):
        raise DomainError("claimed and delta belong together: give both or neither")
    if delta is not None:
        checks.number(checks.STATED_DELTA, delta)
    if claimed is not None and not isinstance(claimed, Mechanism):
        checks.number(checks.EPSILON.renamed("claimed"), claimed)


def _compare_claim(
    total: Mechanism | None,
    claimed: Mechanism | float | None,
    delta: float | None,
    findings: list[Finding],
) -> tuple[float | None, float | None]:
    if claimed is None or delta is None:
        return None, None
    if total is None:
        raise DomainError(
            "claimed can be compared if every release names its mechanism: pass mechanism= to each"
        )
    if isinstance(claimed, Mechanism) and claimed.relation is not total.relation:
        raise DomainError(
            f"claimed must be stated under the relation of the releases' mechanisms,"
            f" {total.relation!r}; got {claimed.relation!r}"
        )
    seen = float(total.epsilon_bounds(delta).lower)
    stated = claimed.epsilon(delta) if isinstance(claimed, Mechanism) else float(claimed)
    if not seen <= stated:
        findings.append(
            Finding(
                "claim", f"the releases cost ε ≥ {seen:.6g} at δ = {delta:g}, claimed {stated:.6g}"
            )
        )
    return seen, stated


def count_records(data: object) -> int:
    """Return the number of records of an array, a list, or a tuple of aligned arrays or lists."""
    if isinstance(data, tuple):
        counts = {count_records(part) for part in data}
        if len(counts) != 1:
            raise DomainError(
                f"data must be aligned arrays of one length; got lengths {sorted(counts)}"
            )
        return counts.pop()
    try:
        return len(data)  # type: ignore[arg-type]
    except TypeError:
        raise ArgumentTypeError(
            "data must be an array, a list, or a tuple of aligned arrays or lists;"
            f" got {type(data).__name__}"
        ) from None


def without_record(data: Any, index: int) -> Any:
    """Return the data set without one record."""
    if isinstance(data, tuple):
        return tuple(without_record(part, index) for part in data)
    if isinstance(data, list):
        return data[:index] + data[index + 1 :]
    if hasattr(data, "iloc"):  # a table of pandas
        return data.iloc[np.arange(len(data)) != index]  # labels may occur twice
    keep = np.arange(len(data)) != index
    return data[keep]


def with_record(data: Any, index: int, record: Any) -> Any:
    """Return the data set with another record at ``index``: a tuple for a tuple of arrays."""
    if isinstance(data, tuple):
        if not isinstance(record, tuple) or len(record) != len(data):
            raise ArgumentTypeError(
                f"replace must give a tuple of {len(data)} values for a record of data that is a"
                f" tuple of {len(data)} arrays; got {type(record).__name__}"
            )
        return tuple(with_record(part, index, own) for part, own in zip(data, record, strict=True))
    if isinstance(data, list):
        return [*data[:index], record, *data[index + 1 :]]
    changed = data.copy() if hasattr(data, "copy") else data.clone()
    if hasattr(changed, "iloc"):
        changed.iloc[index] = record
    else:
        changed[index] = record
    return changed


@contextmanager
def frozen(seed: int) -> Iterator[dict[str, Any]]:
    """Seed ``random``, ``numpy.random`` and, where it is loaded, ``torch``; restore them after.

    Yields what will hold the states of these generators, by name, at the end of the block.
    """
    torch = sys.modules.get("torch")
    python, legacy = random.getstate(), np.random.get_state(legacy=False)  # noqa: NPY002
    tensors = torch.get_rng_state() if torch is not None else None
    states: dict[str, Any] = {}
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    if torch is not None:
        torch.manual_seed(seed)
    try:
        yield states
        states["random"] = random.getstate()
        states["numpy.random"] = np.random.get_state(legacy=False)  # noqa: NPY002
        if torch is not None:
            states["torch"] = torch.get_rng_state()
    finally:
        random.setstate(python)
        np.random.set_state(legacy)  # noqa: NPY002
        if torch is not None:
            torch.set_rng_state(tensors)

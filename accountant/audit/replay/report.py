"""What a replay found."""

from __future__ import annotations

from dataclasses import dataclass

from accountant._basics.display import text_down, text_up
from accountant.mechanisms.base import Mechanism


@dataclass(frozen=True)
class Finding:
    """One way in which the data reached what the account does not cover.

    Attributes
    ----------
    kind : str
        ``"sensitivity"``: a released value moved by more than the sensitivity that was stated.
        ``"public value"``: a value that the account treats as public differed. ``"control flow"``:
        other releases, or another number of them. ``"sample"``: batches that were drawn from
        another number of records, or a release inside a Poisson sample that depends on records
        outside of it. ``"result"``: the run returned something else although all
        releases had the same outcome. ``"randomness"``: another number of random numbers was drawn.
        ``"error"``: one of the two runs failed. ``"claim"``: the releases cost more than claimed.
    message : str
        What differed; it may quote the data.
    release : int, optional
        The number of the release at which it was seen, from 0.
    record : int, optional
        The record that was removed or replaced.
    """

    kind: str
    message: str
    release: int | None = None
    record: int | None = None

    def __str__(self) -> str:
        """Return one line."""
        place = "" if self.release is None else f" at release {self.release}"
        whose = "" if self.record is None else f", record {self.record}"
        return f"{self.kind}{place}{whose}: {self.message}"


@dataclass(frozen=True)
class ReplayReport:
    """What a run did differently on neighbouring data sets with all releases' outcomes equal.

    Attributes
    ----------
    name : str
        What was audited.
    findings : tuple of Finding
        Empty if nothing was found. The first of each kind at each release is kept.
    releases : int
        The number of releases of the recorded run.
    records : tuple of int
        The records that were removed or replaced, one replay each.
    largest_ratio : float
        The largest distance of two private values over the stated sensitivity.
    mechanism : Mechanism, optional
        What the releases compose to, where each named its mechanism.
    epsilon_seen, epsilon_claimed : float, optional
        The least ε of that mechanism and the claim's, at the claim's δ.
    """

    name: str
    findings: tuple[Finding, ...]
    releases: int
    records: tuple[int, ...]
    largest_ratio: float
    mechanism: Mechanism | None = None
    epsilon_seen: float | None = None
    epsilon_claimed: float | None = None

    @property
    def flagged(self) -> bool:
        """Whether anything was found."""
        return bool(self.findings)

    def __str__(self) -> str:
        """Return a line for the run and one for each finding."""
        verdict = "FLAGGED" if self.flagged else "nothing found"
        line = (
            f"{self.name}: {self.releases} releases, {len(self.records)} neighbours, values moved"
            f" by at most {text_up(self.largest_ratio, 4)} of their sensitivity: {verdict}"
        )
        if self.epsilon_seen is not None and self.epsilon_claimed is not None:
            line += (
                f" (ε ≥ {text_down(self.epsilon_seen, 4)} seen,"
                f" {text_up(self.epsilon_claimed, 4)} claimed)"
            )
        return "\n  ".join([line, *map(str, self.findings)])

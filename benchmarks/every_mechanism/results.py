"""What was measured, in a file that an interrupted run leaves behind."""

from __future__ import annotations

import json
from pathlib import Path

from every_mechanism.measuring import Line, Peer

__all__ = ["Results"]


class Results:
    """The lines of each row of the table, one row of the file for each."""

    def __init__(self, path: Path, *, fresh: bool) -> None:
        self._path = path
        self._rows: dict[tuple[str, float, int], list[Line]] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        if fresh:
            path.unlink(missing_ok=True)
        if path.exists():
            for text in path.read_text(encoding="utf-8").splitlines():
                self._keep([_line(fields) for fields in json.loads(text)])

    def of(self, name: str, rate: float, releases: int) -> list[Line] | None:
        """Return the lines of a row, one for each δ; None where it was not measured."""
        return self._rows.get((name, rate, releases))

    def add(self, lines: list[Line]) -> None:
        """Keep the lines of a row, in the file too."""
        self._keep(lines)
        row = json.dumps([line._asdict() for line in lines])
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{row}\n")

    def _keep(self, lines: list[Line]) -> None:
        first = lines[0]
        self._rows[first.name, first.rate, first.releases] = lines


def _line(fields: dict[str, object]) -> Line:
    peer = fields["peer"]
    return Line(**{**fields, "peer": peer and Peer(*peer)})  # type: ignore[arg-type, misc]

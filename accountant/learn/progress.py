"""A progress bar on the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bar(total: int, done: int) -> Iterator[Callable[[int], object]]:
    """Show steps made and the time left; yields the function that advances it."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    with Progress(
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as shown:
        task = shown.add_task("steps", total=total, completed=done)
        yield lambda steps: shown.advance(task, steps)

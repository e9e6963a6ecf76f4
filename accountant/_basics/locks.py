"""A lock that is free in a forked child, because its holder is a thread of the parent."""

from __future__ import annotations

import os
import threading


class ModuleLock:
    """For what a module keeps as long as the process lives; used by ``with``."""

    def __init__(self) -> None:
        self._fresh()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._fresh)

    def _fresh(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

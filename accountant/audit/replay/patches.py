"""Puts record and replay under functions that are already written."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accountant.audit.replay.releases import Releases


def patched_release(
    releases: Releases,
    owner: Any,
    function: str,
    value: str,
    sensitivity: Any,
    *,
    norm: float = 2,
    mechanism: Any = None,
    ignore: Sequence[str] = (),
) -> Callable[..., Any]:
    """Return a function that hands one argument of another to a release.

    Every other argument is public, but for ``self`` and those to ignore.
    """
    original = getattr(owner, function)
    signature = inspect.signature(original)

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        named = dict(given.arguments)
        return releases.release(
            function,
            named[value],
            lambda _value, _rng: original(*args, **kwargs),
            sensitivity=_at(sensitivity, named),
            norm=norm,
            mechanism=_at(mechanism, named),
            **_public(named, {value, *ignore}),
        )

    return call


def patched_sampler(
    releases: Releases, owner: Any, function: str, records: str, ignore: Sequence[str]
) -> Callable[..., Any]:
    """Return a function that draws a batch as another does while it is recorded."""
    original = getattr(owner, function)
    signature = inspect.signature(original)

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        named = dict(given.arguments)
        return releases.sample(
            function,
            named[records],
            lambda _records, _rng: original(*args, **kwargs),
            **_public(named, {records, *ignore}),
        )

    return call


def _at(stated: Any, named: dict[str, Any]) -> Any:
    return stated(**named) if inspect.isroutine(stated) else stated


def _public(named: dict[str, Any], left_out: set[str]) -> dict[str, Any]:
    """Return the arguments that must be the same, under names that a release does not use."""
    return {f"argument {name}": named[name] for name in named if name not in {"self", *left_out}}

"""Checkpoints: everything a run needs to continue, and whether one fits the run at hand.

A checkpoint holds the generator's key, and with it all *later* noise (earlier noise cannot be
recomputed from it): keep it as secret as the data until training has ended, then delete it.

The file is a magic line, a JSON header, NumPy arrays, and a message authentication code over all
of it: HMAC-SHA256 under the user's key, or a plain SHA-256 without one. The plain digest detects
damage and careless edits; only a key keeps out somebody who can recompute a digest.

Without a key a header can be written by anybody who can write the file, so it is read as a claim:
settings must be those of the run at hand, and the account is never below what the rest implies.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import json
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from accountant import checks
from accountant._basics import files
from accountant._basics.arrays import Array
from accountant.errors import AccountantError, DomainError
from accountant.learn.clipping import AdaptiveQuantile, Clipping
from accountant.learn.plan import Plan
from accountant.learn.release import ClassBatches
from accountant.matrix import NoiseStream

MAGIC = b"accountant checkpoint 1\n"
CODE_BYTES = 32  # The length of a SHA-256 digest.
# A larger file is not read: no model that trains beside its data in memory has such arrays.
MAX_BYTES = 1 << 34


class CheckpointError(AccountantError):
    """A checkpoint that was changed, cut short, or belongs to another run."""


@dataclass(frozen=True)
class Checkpoint:
    """Where and how often to save.

    Parameters
    ----------
    path : str or Path
        The file; an existing one is resumed from. It is readable by its owner only.
    every : int
        Steps between savings.
    key : bytes, optional
        The secret of the message authentication code, at least 16 bytes.
    """

    path: str | Path
    every: int = 100
    key: bytes | None = None

    def __post_init__(self) -> None:
        checks.integer("every", self.every, 1, advice="It counts steps")
        if self.key is not None and len(self.key) < 16:
            raise DomainError("key must be at least 16 bytes. Use secrets.token_bytes(32)")

    def save(self, saved: Saved) -> None:
        """Write the checkpoint; an interrupted write leaves the previous one."""
        arrays = io.BytesIO()
        np.savez(arrays, allow_pickle=False, **saved.arrays)
        header = json.dumps(saved.header, allow_nan=True).encode()
        body = b"".join(
            [MAGIC, struct.pack("<QQ", len(header), arrays.tell()), header, arrays.getvalue()]
        )
        path = Path(self.path)
        temporary = path.with_name(path.name + ".partial")
        # What a crash left there may be open to others; it is never written into.
        temporary.unlink(missing_ok=True)
        descriptor = files.new(temporary)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(body + self._code(body))
                file.flush()
                os.fsync(file.fileno())
            files.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)  # it holds the key of all later noise
            raise
        files.sync_directory(path.parent)

    def load(self) -> Saved | None:
        """Return what was saved, None without a file; raise when it was changed."""
        path = Path(self.path)
        if not path.exists():
            return None
        content = files.content(path, MAX_BYTES, CheckpointError)
        body, code = content[:-CODE_BYTES], content[-CODE_BYTES:]
        start = len(MAGIC) + 16
        if not content.startswith(MAGIC) or len(body) < start:
            raise CheckpointError(f"{path} is not a checkpoint, or was cut short")
        if not hmac.compare_digest(code, self._code(body)):
            raise CheckpointError(
                f"{path} was changed, cut short, or written under another key; it is not used"
            )
        header_size, arrays_size = struct.unpack("<QQ", body[len(MAGIC) : start])
        if len(body) != start + header_size + arrays_size:
            raise CheckpointError(f"{path} was cut short")
        try:
            header = json.loads(body[start : start + header_size])
            packed = io.BytesIO(body[start + header_size :])
            # ``save`` packs nothing: arrays that grow are not its own.
            files.require_unpacked(packed, path, arrays_size, CheckpointError)
            with np.load(packed, allow_pickle=False) as arrays:
                return Saved(header, {name: arrays[name] for name in arrays.files})
        except Exception as error:
            # The code fits: somebody computed it anew, around contents that are none.
            raise CheckpointError(f"{path} is damaged: {error}") from error

    def _code(self, body: bytes) -> bytes:
        if self.key is None:
            return hashlib.sha256(body).digest()
        return hmac.new(self.key, body, hashlib.sha256).digest()


@dataclass(frozen=True)
class Saved:
    """The content of a checkpoint: JSON values and arrays."""

    header: dict[str, Any]
    arrays: dict[str, Array]


def as_checkpoint(value: object) -> Checkpoint | None:
    """Return a Checkpoint for a path, None for None."""
    if value is None:
        return None
    place = Checkpoint(value) if isinstance(value, (str, Path)) else value
    return checks.instance("checkpoint", place, Checkpoint, "a path or a Checkpoint")


_FIELDS = {
    "identity": dict,
    "data": str,
    "step": int,
    "label": str,
    "optimizer_count": int,
    "clipping": dict,
    "generator": str,
    "ledger": list,
    "history": list,
}
_OWNERS = ("optimizer", "averaging", "noise")
_RELEASE = ("noise", "sampling_probability", "noise_multiplier")


class Claim(NamedTuple):
    """The checked content of a checkpoint.

    Attributes
    ----------
    step : int
        Steps made.
    charged : int
        Steps charged when it was saved, >= ``step``.
    clipping : Clipping
        The rule with its present norm.
    key : bytes
        The generator's.
    parameters : ndarray
        Of the model.
    states : dict
        Arrays of the optimiser and of the averaging, by owner and name.
    history : list of two lists of dict
        Public and private rows.
    """

    step: int
    charged: int
    clipping: Clipping
    key: bytes
    parameters: Array
    states: dict[str, dict[str, Array]]
    history: list[list[dict[str, Any]]]


def own_entry(plan: Plan) -> dict[str, Any]:
    """Return one step of the run as a checkpoint describes it."""
    return {name: getattr(plan, name) for name in _RELEASE}


def label(saved: Saved | None) -> str | None:
    """Return the label of a saved run's charges, as far as one can be read."""
    header = None if saved is None else saved.header
    found = header.get("label") if isinstance(header, dict) else None
    return found if isinstance(found, str) else None


def require_same(
    saved: Saved, path: str | Path, identity: dict[str, Any], fingerprint: str
) -> None:
    """Raise a CheckpointError that names every setting in which the saved run differs."""
    if not isinstance(saved.header, dict):
        raise CheckpointError(f"{path} is damaged: its header must be an object")
    for name, kind in _FIELDS.items():
        if type(saved.header.get(name)) is not kind:
            raise CheckpointError(f"{path} is damaged: {name} must be a {kind.__name__}")
    found, wanted = dict(_flat(saved.header["identity"])), dict(_flat(identity))
    others = [name for name in {**wanted, **found} if found.get(name) != wanted.get(name)]
    if saved.header["data"] != fingerprint:
        others.append("data")
    if others:
        raise CheckpointError(
            f"{path} belongs to a run with other data or settings ({', '.join(others)}); give the"
            " same ones, or another path"
        )


def read(
    saved: Saved, path: str | Path, plan: Plan, clipping: Clipping, parameters: Array
) -> Claim:
    """Return the state in a checkpoint of this run; CheckpointError names what cannot be."""
    header = saved.header
    step = header["step"]
    try:
        _need(0 <= step <= plan.steps, f"step must be in [0, {plan.steps}]; got {step}")
        _need(header["optimizer_count"] == step, f"optimizer_count must be step, {step}")
        return Claim(
            step,
            _charged(header["ledger"], plan, step),
            _clipping(header["clipping"], clipping),
            _key(header["generator"]),
            _parameters(saved.arrays.get("parameters"), parameters),
            _states(saved.arrays),
            _history(header["history"], step),
        )
    except AccountantError as error:
        raise CheckpointError(f"{path} is damaged: {error}") from error


def restore_noise(
    path: str | Path, claim: Claim, stream: NoiseStream, batches: ClassBatches, sampler: str
) -> None:
    """Go on with the correlated noise and the classes of a saved run."""
    held = dict(claim.states["noise"])
    classes = {name: held.pop(name) for name in ("classes",) if name in held}
    try:
        drawn = bool(classes) or claim.step == 0 or sampler == "full"
        _need(drawn, "noise.classes is missing")
        stream.restore(claim.step, held)
        batches.restore(classes)
    except AccountantError as error:
        raise CheckpointError(f"{path} is damaged: {error}") from error


def _need(holds: bool, what: str) -> None:
    if not holds:
        raise CheckpointError(what)


def _flat(value: object, name: str = "") -> Iterator[tuple[str, tuple[type, Any]]]:
    """Yield the leaves of nested settings, with their types, by dotted names."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _flat(item, f"{name}.{key}" if name else str(key))
    else:
        yield name, (type(value), value)  # 1 == 1.0 == True, and they are three settings


def _charged(entries: list[Any], plan: Plan, step: int) -> int:
    """Return the steps that were charged: at least those made, and of this kind alone."""
    charged = entries[0].get("steps") if entries and isinstance(entries[0], dict) else None
    own = own_entry(plan) | {"steps": charged}
    if type(charged) is not int or charged < 0 or entries != [own]:
        raise CheckpointError("ledger must hold the steps of this run, once")
    made = plan.charges(step)
    _need(charged >= made, f"ledger must hold the {step} steps made; it has {charged}")
    return charged


def _clipping(state: dict[str, Any], rule: Clipping) -> Clipping:
    """Return the rule with the saved norm, if that adapts; all else is a setting of the run."""
    mine = rule.describe()
    for name in {**mine, **state}:
        value = state.get(name)
        if name == "clipping_norm" and isinstance(rule, AdaptiveQuantile):
            positive = isinstance(value, (int, float)) and value > 0.0
            _need(positive, f"clipping.{name} must be a number > 0")
        else:
            same = name in mine and name in state and value == mine[name]
            _need(bool(same), f"clipping.{name} must be that of the run")
    return rule.restored(state)


def _key(text: str) -> bytes:
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    _need(len(key) == 32, "generator must be a key of 32 bytes, in hexadecimal")
    return key


def _parameters(value: Array | None, mine: Array) -> Array:
    if value is None or value.shape != mine.shape or value.dtype != mine.dtype:
        raise CheckpointError(f"parameters must be {mine.size} numbers of type {mine.dtype}")
    return value


def _states(arrays: dict[str, Array]) -> dict[str, dict[str, Array]]:
    found: dict[str, dict[str, Array]] = {owner: {} for owner in _OWNERS}
    for name, value in arrays.items():
        owner, _, slot = name.partition(".")
        if name == "parameters":
            continue
        if owner not in found or not slot or not np.issubdtype(value.dtype, np.number):
            raise CheckpointError(f"the array {name:.40} is unknown")
        found[owner][slot] = value
    return found


def _history(value: list[Any], step: int) -> list[list[dict[str, Any]]]:
    lists = len(value) == 2 and all(isinstance(rows, list) for rows in value)
    _need(lists, "history must be two lists")
    for row in (*value[0], *value[1]):
        at = row.get("step") if isinstance(row, dict) else None
        made = type(at) is int and 0 <= at <= step
        _need(made, f"history must be of the {step} steps made")
    return value

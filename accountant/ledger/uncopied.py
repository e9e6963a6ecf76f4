"""Objects that cannot be copied: two copies of a budget would both be spent."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

from accountant.errors import UnsupportedError


class Uncopied:
    """What can be neither copied nor pickled, because it holds what may be spent only once."""

    # What to do instead: of a copy, and of a pickle.
    _COPIED: ClassVar[str]
    _PICKLED: ClassVar[str]

    def __copy__(self) -> NoReturn:
        raise UnsupportedError(self._COPIED)

    def __deepcopy__(self, memo: object) -> NoReturn:
        raise UnsupportedError(self._COPIED)

    def __reduce__(self) -> Any:
        raise UnsupportedError(self._PICKLED)

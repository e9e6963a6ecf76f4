"""Neighbouring relations: which two data sets a guarantee makes hard to tell apart.

An ε means nothing without one. Every mechanism, sampler and guarantee carries its relation, and
guarantees under different relations are never composed.
"""

from enum import Enum

__all__ = ["NeighbouringRelation"]


class NeighbouringRelation(Enum):
    """A neighbouring relation, with its definition as its value."""

    ADD_OR_REMOVE = (
        "Two data sets are neighbours when one is the other with one record added. The relation is"
        " symmetric, so a guarantee covers adding and removing: the larger of the two directions."
    )
    REPLACE_ONE = (
        "Two data sets of one size are neighbours when they differ in one record. Its guarantees"
        " follow from add-or-remove by two steps, and are usually sharper when derived directly."
    )
    ZERO_OUT = (
        "Two data sets of one size are neighbours when one is the other with one record replaced"
        " by a blank that contributes nothing to any query. Unlike add-or-remove, the number of"
        " records is the same and may be public."
    )

    @property
    def definition(self) -> str:
        """The definition, in words."""
        return self.value

    @property
    def words(self) -> str:
        """The name as text shows it, such as add-or-remove."""
        return self.name.lower().replace("_", "-")

    # Each is one object, which an enumeration would hash by its name, in Python.
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"


# The members, by their own names.
ADD_OR_REMOVE = NeighbouringRelation.ADD_OR_REMOVE
REPLACE_ONE = NeighbouringRelation.REPLACE_ONE
ZERO_OUT = NeighbouringRelation.ZERO_OUT

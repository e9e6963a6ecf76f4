"""Layers whose weights are views of one flat vector of parameters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from accountant.learn.models.layers import Layer

Array: TypeAlias = "NDArray[Any]"


class LayerStack:
    """What networks share: layers, and the parameters that the layers' weights are views of."""

    layers: list[Layer]
    parameters: Array
    _slices: list[slice]

    def _stack(
        self, layers: Sequence[Layer], dtype: DTypeLike, generator: np.random.Generator
    ) -> None:
        """Lay out the parameters of the layers one after another, and draw them."""
        self.layers = list(layers)
        ends = np.cumsum([0, *(layer.size for layer in self.layers)])
        self._slices = [slice(int(a), int(b)) for a, b in pairwise(ends)]
        self.parameters = np.zeros(int(ends[-1]), dtype)
        self._bind()
        for layer in self.layers:
            layer.initialise(generator)

    def _bind(self) -> None:
        for layer, part in zip(self.layers, self._slices, strict=True):
            layer.bind(self.parameters[part])

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make the layers' weights views of the parameters again: a pickle holds two copies."""
        self.__dict__.update(state)
        self._bind()

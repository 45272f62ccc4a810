"""A step on records: codes of numbers become cells, and cells or categories become bins. It looks at one record at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from covey.core.arrays import Array, Integers


@dataclass(frozen=True)
class Recode:
    """Codes become cells, between edges, and cells become bins, by maps; without edges codes are cells."""

    edges: tuple[Integers | None, ...] = ()
    maps: tuple[Integers, ...] = ()

    def __call__(self, batch: Array) -> Array:
        """The cells, or bins, of a batch."""
        out = np.empty(batch.shape, dtype=np.int64, order="F")
        for j, edges in enumerate(self.edges or (None,) * batch.shape[1]):
            cells = batch[:, j] if edges is None else np.searchsorted(edges[1:-1], batch[:, j], side="right")
            out[:, j] = self.maps[j][cells] if self.maps else cells
        return out

"""Steps on records: codes of numbers become cells, categories become merged ones. Each looks at one record at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from covey.core.arrays import Array, Integers


@dataclass(frozen=True)
class ToCells:
    """Codes of numbers become cells; categories stay."""

    edges: tuple[Integers | None, ...]

    def __call__(self, batch: Array) -> Array:
        """The cells of a batch."""
        columns = [
            batch[:, j] if e is None else np.searchsorted(e[1:-1], batch[:, j], side="right")
            for j, e in enumerate(self.edges)
        ]
        return np.stack(columns, axis=1).astype(np.int64)


@dataclass(frozen=True)
class Merge:
    """Categories become merged ones."""

    maps: tuple[Integers, ...]

    def __call__(self, batch: Array) -> Array:
        """Merge the categories of a batch."""
        return np.stack([m[batch[:, a]] for a, m in enumerate(self.maps)], axis=1)

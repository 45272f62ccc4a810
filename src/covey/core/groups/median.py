"""The median tree: the one of our groupings with a bound on its covariance loss for every table (docs/proofs/tree.md)."""

from __future__ import annotations

import numpy as np

from covey.core.arrays import Array, Integers
from covey.errors import ParameterError


def median_tree(X: Array, levels: int) -> Integers:
    """Labels of 2^levels groups: each node is cut at the median along the leading principal direction of its rows.

    Sizes differ by one at most where 2^levels does not divide n. Exact eigenvectors at every node: O(np²) a level.
    """
    rows = np.ascontiguousarray(X, dtype=np.float64)
    if rows.ndim != 2 or levels < 0 or len(rows) < 1 << levels:
        raise ParameterError(f"levels must be 0 or more and 2^levels at most the number of rows, {len(rows)}.")
    nodes = [np.arange(len(rows))]
    for _ in range(levels):
        nodes = [half for node in nodes for half in _halves(rows, node)]
    labels = np.empty(len(rows), dtype=np.int64)
    for group, node in enumerate(nodes):
        labels[node] = group
    return labels


def _halves(rows: Array, node: Integers) -> tuple[Integers, Integers]:
    inside = rows[node] - rows[node].mean(axis=0)
    direction = np.linalg.eigh(inside.T @ inside)[1][:, -1]
    order = node[np.argsort(inside @ direction, kind="stable")]
    return order[: len(node) // 2], order[len(node) // 2 :]

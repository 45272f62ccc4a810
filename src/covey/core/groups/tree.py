"""Groups of similar rows: the spectral tree, and MDAV to compare it with.

The tree splits recursively along the leading principal direction at an equal-count cut. Each cut is then sharpened by balanced
2-means, whose best assignment to two given centroids at fixed sizes is a cut along their difference, and finished leaves
exchange rows (`exchange`). All nodes of a level are handled at once, so a level costs a few passes over the rows:
O(np log(n/r)) in all, and nothing of size n × n.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from covey.core.arrays import Array, Integers
from covey.core.groups.exchange import TURNS, exchange
from covey.core.paper.hilbert import covariance_loss, shares
from covey.errors import ParameterError

POWER_STEPS = 4  # of power iteration, each a pass over the rows: the cut that follows is sharpened anyway
SHARPEN_STEPS = 3  # of balanced 2-means, each a pass over the rows
CACHE_ENTRIES = 1_000_000  # beyond it a node's rows leave the processor's cache, and subtrees are finished one by one
MANY_NODES = 64  # up to so many, a matrix product for each node is quicker


@dataclass
class _Nodes:
    """Rows sorted by node: `rows` is the sorted matrix, `order` where each row came from, `sizes` the nodes' sizes."""

    rows: Array
    order: Integers
    sizes: Integers
    weights: Array | None = None

    @property
    def starts(self) -> Integers:
        return np.cumsum(self.sizes) - self.sizes

    @property
    def node(self) -> Integers:
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def arrange(self, order: Integers) -> None:
        """Sort the rows anew."""
        self.rows, self.order = self.rows[order], self.order[order]
        if self.weights is not None:
            self.weights = self.weights[order]

    def part(self, at: slice) -> _Nodes:
        """Some of the rows, as one node."""
        rows = self.rows[at]
        return _Nodes(rows, self.order[at], np.array([len(rows)]), None if self.weights is None else self.weights[at])


def spectral_tree(X: Array, group_size: int, turns: int = TURNS, weights: Array | None = None) -> Integers:
    """Labels of groups with `group_size` rows or a few more (sizes differ by one at most, where n allows).

    Sizes count rows, whatever their weights: anonymity is about records. With weights, directions and centroids are those of
    the weighted table. Exchanges look at rows alone, and are kept where the weighted loss falls.
    """
    n = len(X)
    heavy = None if weights is None else np.asarray(weights, dtype=np.float32) / np.float32(np.mean(weights))
    root = _Nodes(np.ascontiguousarray(X, dtype=np.float32), np.arange(n), np.array([n]), heavy)
    leaves_done: list[_Nodes] = []
    stack = [(root, max(1, n // group_size))]
    while stack:
        nodes, leaves = stack.pop()
        if len(nodes.rows) * nodes.rows.shape[1] > CACHE_ENTRIES and leaves > 1:
            # Large nodes are cut one by one; below that a whole subtree stays in the processor's cache.
            left_leaves = leaves // 2
            left = len(nodes.rows) * left_leaves // leaves
            _cut(nodes, np.array([left]))
            for part, count in ((slice(left), left_leaves), (slice(left, None), leaves - left_leaves)):
                stack.append((nodes.part(part), count))
            continue
        _grow(nodes, leaves)
        leaves_done.append(nodes)
    grown = _Nodes(
        *(np.concatenate([getattr(part, name) for part in leaves_done]) for name in ("rows", "order", "sizes"))
    )
    labels = np.empty(n, dtype=np.int64)
    kept = exchange(grown.rows, grown.sizes, turns)
    labels[grown.order[kept]] = grown.node
    if weights is not None:
        cut, probability = np.empty_like(labels), shares(n, weights)
        cut[grown.order] = grown.node
        if covariance_loss(X, cut, probability) < covariance_loss(X, labels, probability):
            return cut
    return labels


def _grow(nodes: _Nodes, leaves_wanted: int) -> None:
    """Cut a node into leaves, level by level."""
    leaves = np.array([leaves_wanted])
    while leaves.max() > 1:
        left_leaves = np.where(leaves > 1, leaves // 2, leaves)
        left = nodes.sizes * left_leaves // leaves  # all of a node that is a leaf already
        _cut(nodes, left)
        halves = np.column_stack([left, nodes.sizes - left]).ravel()
        counts = np.column_stack([left_leaves, leaves - left_leaves]).ravel()
        nodes.sizes, leaves = halves[counts > 0], counts[counts > 0]


def _cut(nodes: _Nodes, left: Integers) -> None:
    """Arrange the rows of every node so that its first `left` rows are one half of a good balanced cut."""
    direction = np.random.default_rng(0).standard_normal((len(left), nodes.rows.shape[1])).astype(np.float32)
    for _ in range(POWER_STEPS):
        score = _scores(nodes, direction)
        if nodes.weights is None:
            score -= (np.add.reduceat(score, nodes.starts) / nodes.sizes)[nodes.node].astype(np.float32)
        else:
            total = np.add.reduceat(nodes.weights, nodes.starts)
            score -= (np.add.reduceat(score * nodes.weights, nodes.starts) / total)[nodes.node]
            score *= nodes.weights
        direction = _weighted_sums(nodes, score)
        direction /= np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), 1e-30)
    order = _halves(nodes, _scores(nodes, direction), left)
    nodes.arrange(_sharpen(nodes, order, left))


def _sharpen(nodes: _Nodes, order: Integers, left: Integers) -> Integers:
    """Balanced 2-means: cut along the difference of the halves' centroids, a few times. Returns the last order."""
    node = nodes.node
    in_first_half = np.arange(len(node)) - nodes.starts[node] < left[node]  # of places, which hold rows by `order`
    one, other = 1 / np.maximum(left, 1), -1 / np.maximum(nodes.sizes - left, 1)
    weight = np.empty(len(node), dtype=np.float32)
    for _ in range(SHARPEN_STEPS):
        if nodes.weights is not None:
            heavy = nodes.weights[order]
            one, other = (
                sign / np.maximum(np.add.reduceat(np.where(half, heavy, 0), nodes.starts), 1e-30)
                for sign, half in ((1, in_first_half), (-1, ~in_first_half))
            )
        weight[order] = np.where(in_first_half, one[node], other[node])
        if nodes.weights is not None:
            weight *= nodes.weights
        order = _halves(nodes, -_scores(nodes, _weighted_sums(nodes, weight)), left)
    return order


def _scores(nodes: _Nodes, direction: Array) -> Array:
    """⟨row, direction of its node⟩."""
    out = np.empty(len(nodes.rows), dtype=np.float32)
    if len(nodes.sizes) <= MANY_NODES:
        # Some BLAS kernels raise the flag "invalid" on finite numbers, when they load beyond a short row and drop the rest.
        with np.errstate(invalid="ignore"):
            for start, size, v in zip(nodes.starts, nodes.sizes, direction, strict=True):
                out[start : start + size] = nodes.rows[start : start + size] @ v
        return out
    node = nodes.node
    step = max(1, (1 << 22) // nodes.rows.shape[1])
    for start in range(0, len(out), step):
        part = slice(start, start + step)
        out[part] = np.einsum("ij,ij->i", nodes.rows[part], direction[node[part]])
    return out


def _weighted_sums(nodes: _Nodes, weight: Array) -> Array:
    """Σ weight·row over each node."""
    if len(nodes.sizes) <= MANY_NODES:
        with np.errstate(invalid="ignore"):  # see _scores
            parts = [
                weight[start : start + size] @ nodes.rows[start : start + size]
                for start, size in zip(nodes.starts, nodes.sizes, strict=True)
            ]
        return np.array(parts)
    out = np.empty((len(nodes.sizes), nodes.rows.shape[1]), dtype=np.float32)
    ends = np.cumsum(nodes.sizes)
    rows_at_once = max(int(nodes.sizes.max()), (1 << 22) // nodes.rows.shape[1])
    first = 0
    while first < len(ends):
        begin = ends[first] - nodes.sizes[first]
        last = max(first + 1, int(np.searchsorted(ends, begin + rows_at_once, side="right")))
        part = slice(begin, ends[last - 1])
        out[first:last] = np.add.reduceat(
            nodes.rows[part] * weight[part, None], nodes.starts[first:last] - begin, axis=0
        )
        first = last
    return out


def _halves(nodes: _Nodes, score: Array, left: Integers) -> Integers:
    """An order that leaves every row in its node and puts the `left` smallest scores of each node first.

    Nothing is sorted: a selection costs n for all nodes of a level, a sort n log n.
    """
    width = int(nodes.sizes.max())
    table = np.full((len(left), width), np.inf, dtype=np.float32)
    inside = np.arange(width) < nodes.sizes[:, None]
    table[inside] = score
    cuts = np.unique(left[left < nodes.sizes])
    chosen = np.argpartition(table, cuts, axis=1) if len(cuts) else np.tile(np.arange(width), (len(left), 1))
    return np.asarray((chosen + nodes.starts[:, None])[chosen < nodes.sizes[:, None]])


def mdav(X: Array, group_size: int) -> Integers:
    """Maximum distance to average vector, the field's standard: O(n²p/r), for comparison."""
    rows = np.ascontiguousarray(X, dtype=np.float32)
    labels = np.full(len(rows), -1, dtype=np.int64)
    left = np.arange(len(rows))
    group = 0

    def squared(points: Array, centre: Array) -> Array:
        return np.asarray(((points - centre) ** 2).sum(axis=1))

    def take(seed: Array) -> None:
        nonlocal left, group
        nearest = np.argsort(squared(rows[left], seed), kind="stable")[:group_size]
        labels[left[nearest]] = group
        left = np.delete(left, nearest)
        group += 1

    while len(left) >= 3 * group_size:
        far = rows[left[int(np.argmax(squared(rows[left], rows[left].mean(axis=0))))]]
        take(far)
        take(rows[left[int(np.argmax(squared(rows[left], far)))]])
    if len(left) >= 2 * group_size:
        take(rows[left[int(np.argmax(squared(rows[left], rows[left].mean(axis=0))))]])
    labels[left] = group
    return labels


def median_tree(X: Array, levels: int) -> Integers:
    """Labels of 2^levels groups: each node is cut at the median along the leading principal direction of its rows.

    The one of our groupings with a bound on its covariance loss for every table (docs/proofs/tree.md).

    Sizes differ by one at most where 2^levels does not divide n. Exact eigenvectors at every node: O(np²) a level.
    """
    rows = np.ascontiguousarray(X, dtype=np.float64)
    if rows.ndim != 2 or levels < 0 or len(rows) < 1 << levels:
        raise ParameterError(f"levels must be 0 or more and 2^levels at most the number of rows, {len(rows)}.")
    nodes = [np.arange(len(rows))]
    for _ in range(levels):
        nodes = [half for node in nodes for half in _median_halves(rows, node)]
    labels = np.empty(len(rows), dtype=np.int64)
    for group, node in enumerate(nodes):
        labels[node] = group
    return labels


def _median_halves(rows: Array, node: Integers) -> tuple[Integers, Integers]:
    inside = rows[node] - rows[node].mean(axis=0)
    direction = np.linalg.eigh(inside.T @ inside)[1][:, -1]
    order = node[np.argsort(inside @ direction, kind="stable")]
    return order[: len(node) // 2], order[len(node) // 2 :]

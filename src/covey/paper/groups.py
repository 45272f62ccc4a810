"""Groups of similar rows: the spectral tree, and MDAV to compare it with.

The tree splits recursively along the leading principal direction at an equal-count cut. Each cut is then sharpened by balanced
2-means, whose best assignment to two given centroids at fixed sizes is a cut along their difference, and finished leaves
exchange rows (`exchange`). All nodes of a level are handled at once, so a level costs a few passes over the rows:
O(np log(n/r)) in all, and nothing of size n × n.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from covey.engine.arrays import Array, Integers
from covey.errors import ParameterError
from covey.paper.blocks import covariance_loss, shares

POWER_STEPS = 4  # of power iteration, each a pass over the rows: the cut that follows is sharpened anyway
SHARPEN_STEPS = 3  # of balanced 2-means, each a pass over the rows
CACHE_ENTRIES = 1_000_000  # beyond it a node's rows leave the processor's cache, and subtrees are finished one by one
MANY_NODES = 64  # up to so many, a matrix product for each node is quicker
TURNS = 4  # each with the metric and the wishes of rows computed anew
ROUNDS = 8  # of exchanges in a turn; in each a group meets another one
SWAPS = 8  # at most, of a pair in a round
BORDER = 16  # rows of a group that take part
BLOCK = 256  # groups among which a row looks for its second
METRIC_COLUMNS = 512  # beyond, the plain metric: p² per row would be dear
METRIC_ROWS = 50_000  # at most, evenly spaced, that the metric is computed from
ENTRIES = 1 << 22  # of a temporary array: 32 MB in float64
TINY = 1e-5  # a smaller gain is taken for rounding


@dataclass
class _Nodes:
    """Rows sorted by node: the sorted matrix, where each row came from, its weight; and the nodes' sizes."""

    rows: Array
    order: Integers
    weights: Array
    sizes: Integers

    @property
    def starts(self) -> Integers:
        return np.cumsum(self.sizes) - self.sizes

    @property
    def node(self) -> Integers:
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def part(self, at: slice) -> _Nodes:
        """Some of the rows, as one node."""
        rows = self.rows[at]
        return _Nodes(rows, self.order[at], self.weights[at], np.array([len(rows)]))


def spectral_tree(X: Array, group_size: int, turns: int = TURNS, weights: Array | None = None) -> Integers:
    """Labels of groups with `group_size` rows or a few more (sizes differ by one at most, where n allows).

    Sizes count rows, whatever their weights: anonymity is about records. With weights, directions and centroids are those of
    the weighted table. Exchanges look at rows alone, and are kept where the weighted loss falls.
    """
    n = len(X)
    heavy = np.ones(n) if weights is None else np.asarray(weights) / np.mean(weights)
    root = _Nodes(np.ascontiguousarray(X, dtype=np.float32), np.arange(n), heavy.astype(np.float32), np.array([n]))
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
    names = ("rows", "order", "weights", "sizes")
    grown = _Nodes(*(np.concatenate([getattr(part, name) for part in leaves_done]) for name in names))
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
    total = np.add.reduceat(nodes.weights, nodes.starts)
    for _ in range(POWER_STEPS):
        score = _scores(nodes, direction)
        score -= (np.add.reduceat(score * nodes.weights, nodes.starts) / total)[nodes.node]
        score *= nodes.weights
        direction = _weighted_sums(nodes, score)
        direction /= np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), 1e-30)
    order = _sharpen(nodes, _halves(nodes, _scores(nodes, direction), left), left)
    nodes.rows, nodes.order, nodes.weights = nodes.rows[order], nodes.order[order], nodes.weights[order]


def _sharpen(nodes: _Nodes, order: Integers, left: Integers) -> Integers:
    """Balanced 2-means: cut along the difference of the halves' centroids, a few times. Returns the last order."""
    node = nodes.node
    in_first_half = np.arange(len(node)) - nodes.starts[node] < left[node]  # of places, which hold rows by `order`
    weight = np.empty(len(node), dtype=np.float32)
    for _ in range(SHARPEN_STEPS):
        heavy = nodes.weights[order]
        one, other = (
            sign / np.maximum(np.add.reduceat(np.where(half, heavy, 0), nodes.starts), 1e-30)
            for sign, half in ((1, in_first_half), (-1, ~in_first_half))
        )
        weight[order] = np.where(in_first_half, one[node], other[node]) * heavy
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
        heavy = nodes.rows[part] * weight[part, None]
        out[first:last] = np.add.reduceat(heavy, nodes.starts[first:last] - begin, axis=0)
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


# Exchanges between groups: two rows change places wherever that lowers the covariance lost inside groups.
#
# The loss is ‖W‖, W the covariance inside groups, and d‖W‖² = 2⟨W, dW⟩: to first order, what counts is the sum of squares inside
# groups in the metric W. Nine tenths of ‖W‖² is W's diagonal; taken as it is, it sends all effort to the columns that are worst
# now and overshoots, so the metric is W with its diagonal evened out.
#
# Swapping x of group A with y of group B lowers that sum of squares by 2⟨y − x, a − b⟩ + |y − x|²(1/|A| + 1/|B|), a and b the
# centroids. The second term, which a reassignment to fixed centroids does not see, decides most swaps in small groups.
#
# A row looks for its second group in a block of a bounded number of groups, a group is in one pair a round, and only its rows
# nearest to the other group take part, so the cost grows with np. Sizes do not change.


# Some BLAS kernels raise the flag "invalid" on finite numbers, when they load beyond a short row and drop the rest.
@np.errstate(invalid="ignore")
def exchange(rows: Array, sizes: Integers, turns: int = TURNS) -> Integers:
    """Rows sorted by group, and the groups' sizes: which row shall stand at each place. The loss does not rise."""
    order = kept = np.arange(len(rows))
    least = np.inf
    rows = rows - rows.mean(axis=0)
    for turn in range(turns + 1 if len(sizes) > 1 else 0):
        here = rows[order]
        loss, metric = _loss_and_metric(here, sizes)
        if loss >= least:
            break
        kept, least = order, loss
        if turn < turns and loss > 0:
            groups = _Groups(here @ metric if metric.ndim else here * metric, sizes)
            _trade(groups, _wishes(groups, shift=turn % 2 * BLOCK // 2))
            order = order[groups.order]
    return kept


def _loss_and_metric(rows: Array, sizes: Integers) -> tuple[float, Array]:
    """‖W‖, and M with MMᵀ the metric, scaled so that a column's average variance inside groups is 1.

    In large tables both are taken from every second, third, … group. Beyond METRIC_COLUMNS columns the metric is plain, M a
    number, and the loss W's trace.
    """
    every = -(-len(rows) // METRIC_ROWS)
    rows, sizes = rows[np.repeat(np.arange(len(sizes)) % every == 0, sizes)], sizes[::every]
    n, p = rows.shape
    centroids = np.add.reduceat(rows, np.cumsum(sizes) - sizes, axis=0) / sizes[:, None].astype(np.float32)
    inside = rows - np.repeat(centroids, sizes, axis=0)
    if p > METRIC_COLUMNS:
        trace = float(np.einsum("ij,ij->", inside, inside, dtype=np.float64)) / n
        return trace, np.array(np.sqrt(p / max(trace, 1e-30)), dtype=np.float32)
    W = (inside.T @ inside).astype(np.float64) / n
    loss, mean = float(np.linalg.norm(W)), max(W.trace() / p, 1e-30)
    np.fill_diagonal(W, mean)
    values, vectors = np.linalg.eigh(W / mean)
    return loss, np.asarray(vectors * np.sqrt(np.maximum(values, 0)), dtype=np.float32)


def _trade(groups: _Groups, pairs: Integers) -> None:
    """Rounds of swaps, every group in one pair at most in each round."""
    at_once = max(1, ENTRIES // (2 * int(groups.sizes.max()) * groups.points.shape[1]))
    for _ in range(ROUNDS):
        now = _disjoint(pairs, len(groups.sizes))
        chosen, pairs = pairs[now], pairs[~now]
        for start in range(0, len(chosen), at_once):
            groups.swap(*chosen[start : start + at_once].T)


class _Groups:
    """Points sorted by group, where each came from, and the centroids; `swap` changes all three."""

    def __init__(self, points: Array, sizes: Integers) -> None:
        self.points, self.sizes = points, sizes
        self.starts = np.cumsum(sizes) - sizes
        self.order = np.arange(len(points))
        self.share = (1 / sizes).astype(np.float32)
        self.centroids = np.add.reduceat(points, self.starts, axis=0) * self.share[:, None]
        self.border = min(int(sizes.min()), BORDER)

    def swap(self, a: Integers, b: Integers) -> None:
        """Swap rows of groups a[i] and b[i], one after the other, while that pays. No group may occur twice."""
        q, along = self.border, self.centroids[a] - self.centroids[b]
        places = np.concatenate([self._furthest(a, -along), self._furthest(b, along)], axis=1)
        points = self.points[places] - ((self.centroids[a] + self.centroids[b]) / 2)[:, None]
        score = (points @ along[:, :, None])[:, :, 0]
        gram = points @ points.transpose(0, 2, 1)
        weight = self.share[a] + self.share[b]
        seat = np.tile(np.arange(2 * q), (len(a), 1))  # which of a pair's rows sits at each of its places
        open_ = np.arange(len(a))  # pairs that still swap; gram, score and weight are theirs, by seat
        for _ in range(SWAPS):
            square = np.einsum("mii->mi", gram)
            distance = square[:, :q, None] + square[:, None, q:] - 2 * gram[:, :q, q:]
            gain = 2 * (score[:, None, q:] - score[:, :q, None]) + distance * weight[:, None, None]
            gain = gain.reshape(len(gain), -1)
            best = gain.argmax(axis=1)
            pays = gain[np.arange(len(gain)), best] > TINY
            open_, best, gram, score, weight = open_[pays], best[pays], gram[pays], score[pays], weight[pays]
            if not len(open_):
                break
            each, i, j = np.arange(len(open_)), best // q, best % q + q
            score += weight[:, None] * (gram[each, j] - gram[each, i])
            for of_pairs, at in ((seat, open_), (score, each), (gram, each), (gram.transpose(0, 2, 1), each)):
                of_pairs[at, i], of_pairs[at, j] = of_pairs[at, j], of_pairs[at, i]
        moved = seat != np.arange(2 * q)
        gone, come = places[moved], np.take_along_axis(places, seat, axis=1)[moved]
        self.points[gone], self.order[gone] = self.points[come], self.order[come]
        came = np.empty(seat.shape, dtype=np.float32)  # 1 for a row that came to a, −1 for one that went to b
        np.put_along_axis(came, seat, (np.arange(2 * q) < q).astype(np.float32), axis=1)
        came[:, :q] -= 1
        change = (came[:, None] @ points)[:, 0]
        self.centroids[a] += change * self.share[a, None]
        self.centroids[b] -= change * self.share[b, None]

    def _furthest(self, group: Integers, along: Array) -> Integers:
        """Places of the rows of each group that lie furthest in a direction."""
        inner = np.arange(self.sizes.max())
        size = self.sizes[group][:, None]
        places = self.starts[group][:, None] + np.minimum(inner, size - 1)
        if len(inner) == self.border:
            return places
        score = (self.points[places] @ along[:, :, None])[:, :, 0]
        score[inner >= size] = -np.inf
        last = np.argpartition(-score, self.border - 1, axis=1)[:, : self.border]
        return np.take_along_axis(places, last, axis=1)


def _wishes(groups: _Groups, shift: int) -> Integers:
    """Pairs of groups, those first for which some row would gain most by moving from its own group to the nearest other."""
    count = len(groups.sizes)
    node = np.repeat(np.arange(count), groups.sizes)
    gain, other = np.empty(len(node), dtype=np.float32), np.empty(len(node), dtype=np.int64)
    for first, last in _blocks(count, shift):
        centroids = groups.centroids[first:last]
        squares = (centroids**2).sum(axis=1)
        begin, end = int(groups.starts[first]), int(groups.starts[last - 1] + groups.sizes[last - 1])
        step = max(1, ENTRIES // (last - first))
        for start in range(begin, end, step):
            part = slice(start, min(start + step, end))
            distance = squares - 2 * (groups.points[part] @ centroids.T)
            at, own = np.arange(len(distance)), node[part] - first
            mine = distance[at, own]
            distance[at, own] = np.inf
            nearest = distance.argmin(axis=1)
            gain[part], other[part] = mine - distance[at, nearest], nearest + first
    best = np.argsort(-gain, kind="stable")
    low, high = np.minimum(node, other)[best], np.maximum(node, other)[best]
    found = np.sort(np.unique(low * count + high, return_index=True)[1])
    return np.column_stack([low[found], high[found]])


def _blocks(count: int, shift: int) -> Iterator[tuple[int, int]]:
    """Ranges of at least two and about BLOCK groups that cover all of them, the first one shorter by `shift`."""
    edges = [0, *range(BLOCK - shift, count - 1, BLOCK), count]
    if len(edges) > 2 and edges[1] < 2:
        del edges[1]
    yield from pairwise(edges)


def _disjoint(pairs: Integers, count: int) -> Array:
    """Which pairs to take, no group twice: a pair is taken where it comes first for both of its groups; a few times."""
    taken, busy = np.zeros(len(pairs), dtype=bool), np.zeros(count, dtype=bool)
    rest = np.arange(len(pairs))
    for _ in range(4):
        first = np.full(count, len(pairs))
        np.minimum.at(first, pairs[rest].ravel(), np.repeat(rest, 2))
        won = rest[(first[pairs[rest]] == rest[:, None]).all(axis=1)]
        taken[won] = True
        busy[pairs[won]] = True
        rest = rest[~busy[pairs[rest]].any(axis=1)]
    return taken

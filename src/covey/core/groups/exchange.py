"""Exchanges between groups: two rows change places wherever that lowers the covariance lost inside groups.

The loss is ‖W‖, W the covariance inside groups, and d‖W‖² = 2⟨W, dW⟩: to first order, what counts is the sum of squares inside
groups in the metric W. Nine tenths of ‖W‖² is W's diagonal; taken as it is, it sends all effort to the columns that are worst
now and overshoots, so the metric is W with its diagonal evened out.

Swapping x of group A with y of group B lowers that sum of squares by 2⟨y − x, a − b⟩ + |y − x|²(1/|A| + 1/|B|), a and b the
centroids. The second term, which a reassignment to fixed centroids does not see, decides most swaps in small groups.

A row looks for its second group in a block of a bounded number of groups, a group is in one pair a round, and only its rows
nearest to the other group take part, so the cost grows with np. Sizes do not change.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from covey.core.arrays import Array, Integers

TURNS = 4  # each with the metric and the wishes of rows computed anew
ROUNDS = 8  # of exchanges in a turn; in each a group meets another one
SWAPS = 8  # at most, of a pair in a round
BORDER = 16  # rows of a group that take part
BLOCK = 256  # groups among which a row looks for its second
METRIC_COLUMNS = 512  # beyond, the plain metric: p² per row would be dear
METRIC_ROWS = 50_000  # at most, evenly spaced, that the metric is computed from
ENTRIES = 1 << 22  # of a temporary array: 32 MB in float64
TINY = 1e-5  # a smaller gain is taken for rounding


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

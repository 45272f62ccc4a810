"""What swaps between rows keep besides pair tables: covariances of scores, and tables of chosen triples."""

from __future__ import annotations

import numpy as np

from covey.core.arrays import Array, Floats, Integers
from covey.core.fit.triples import Triple, Triples
from covey.core.paper.blocks import WeightedPoints
from covey.core.tables.domain import Domain

TIE = 100.0  # weight of a covariance of scores beside that of a cell, when rows are swapped
THREE = (
    4.0  # weight of a cell of a triple beside that of a pair: triples are few, and pairs pull at them from all sides
)


class Ties:
    """How far rows are from the centres' covariances of scores; a swap of one attribute changes its covariances with all others.

    Scores are scaled to unit variance, so that a covariance of m independent rows has variance m: its square counts
    TIE/m, as that of a cell counts by 1/M.
    """

    def __init__(self, scores: Floats, cloud: WeightedPoints, domain: Domain, codes: Integers) -> None:
        q, m = len(domain.sizes), len(codes)
        p = cloud.weights @ cloud.points
        spread = np.sqrt(np.add.reduceat(p * scores**2, domain.starts[:-1]))
        self.scores = (scores / np.maximum(spread, 1e-12)[domain.block_of]).astype(np.float32)
        each = np.add.reduceat(cloud.points * self.scores, domain.starts[:-1], axis=1)
        own = np.zeros((q, q))
        for begin in range(0, m, 1 << 16):
            part = self.scores[codes[begin : begin + (1 << 16)]].astype(np.float64)
            own += part.T @ part
        self.error = (own - m * (each * cloud.weights[:, None]).T @ each).astype(np.float32)
        self.weight = np.float32(TIE / m)

    def _change(self, a: int, xi: Integers, xj: Integers) -> Array:
        si, sj = self.scores[xi], self.scores[xj]
        change = (sj[:, a] - si[:, a])[:, None] * (si - sj)
        change[:, a] = 0
        return np.asarray(change)

    def cost(self, a: int, xi: Integers, xj: Integers) -> Array:
        """What exchanging attribute a between rows i and j costs."""
        change = self._change(a, xi, xj)
        return np.asarray(self.weight * (2 * change @ self.error[a] + (change**2).sum(axis=1)))

    def room(self, a: int, xi: Integers, xj: Integers) -> int:
        """How many of these exchanges, each good by itself, are good together: more would overshoot the covariances."""
        step = self._change(a, xi, xj).sum(axis=0)
        part = -float(step @ self.error[a]) / max(float(step @ step), 1e-12)
        return int(np.ceil(len(xi) * min(1.0, part))) if part > 0 else len(xi)

    def take(self, a: int, xi: Integers, xj: Integers) -> None:
        """Account for exchanges that are made."""
        self.error[a] += self._change(a, xi, xj).sum(axis=0)
        self.error[:, a] = self.error[a]


class TripleTies:
    """How far rows are from the centres' tables of chosen triples; a swap moves two rows in each that names its attribute."""

    def __init__(self, triples: Triples, cloud: WeightedPoints, domain: Domain, codes: Integers) -> None:
        m = len(codes)
        self.triples = triples
        self.level = np.zeros(domain.total, dtype=np.int64)
        for a, levels in triples.levels.items():
            self.level[domain.block(a)] = levels
        shares = triples.shares(cloud.points, domain)
        self.error: dict[Triple, Array] = {}
        self.weight: dict[Triple, Array] = {}
        for triple in triples.names:
            goal = m * np.einsum("k,ki,kj,kl->ijl", cloud.weights, *(shares[x] for x in triple), optimize=True).ravel()
            there = np.bincount(self._cells(triple, codes), minlength=len(goal))
            self.error[triple] = (there - goal).astype(np.float32)
            self.weight[triple] = (THREE / (goal + 0.5)).astype(np.float32)

    def _cells(self, triple: Triple, codes: Integers) -> Integers:
        """The cells of rows, given by their coordinates in the domain."""
        _, second, third = self.triples.sizes(triple)
        a, b, c = (self.level[codes[:, x]] for x in triple)
        return np.asarray((a * second + b) * third + c)

    def _moves(self, a: int, xi: Integers, xj: Integers) -> list[tuple[Triple, tuple[Integers, ...]]]:
        """By triple that names attribute a: the cells of rows i and j before an exchange, and after it."""
        own = [triple for triple in self.triples.names if a in triple]
        if not own:
            return []
        yi, yj = xi.copy(), xj.copy()
        yi[:, a], yj[:, a] = xj[:, a], xi[:, a]
        return [(triple, tuple(self._cells(triple, x) for x in (xi, xj, yi, yj))) for triple in own]

    def cost(self, a: int, xi: Integers, xj: Integers) -> Array:
        """What exchanging attribute a between rows i and j costs."""
        total = np.zeros(len(xi), dtype=np.float32)
        for triple, (i, j, to_i, to_j) in self._moves(a, xi, xj):
            weight, error = self.weight[triple], self.error[triple]
            down, up = weight * (1 - 2 * error), weight * (1 + 2 * error)
            change = down[i] + down[j] + up[to_i] + up[to_j]
            same = ((i == to_i) & (j == to_j)) | ((i == to_j) & (j == to_i))  # nothing moves
            total += np.where(same, 0, change)
        return total

    def take(self, a: int, xi: Integers, xj: Integers) -> None:
        """Account for exchanges that are made."""
        for triple, (i, j, to_i, to_j) in self._moves(a, xi, xj):
            length = len(self.error[triple])
            came = np.bincount(np.concatenate([to_i, to_j]), minlength=length)
            gone = np.bincount(np.concatenate([i, j]), minlength=length)
            self.error[triple] += (came - gone).astype(np.float32)

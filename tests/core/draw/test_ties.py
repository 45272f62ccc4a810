"""What swaps keep: the cost of an exchange is what it changes, for covariances of scores and for tables of triples."""

import numpy as np
import pytest

from covey.core.draw.balanced import THREE, TIE, Ties, TripleTies
from covey.core.fit.triples import Triples
from covey.core.paper.blocks import WeightedPoints
from covey.core.tables.domain import Domain

DOMAIN = Domain((2, 3, 2, 2), (True,) * 4)
CHOSEN = Triples(((0, 1, 2), (1, 2, 3)), {0: np.arange(2), 1: np.array([0, 1, 1]), 2: np.arange(2), 3: np.arange(2)})
CLOUD = WeightedPoints(np.ones(1), np.concatenate([np.full(c, 1 / c) for c in DOMAIN.sizes])[None])


def rows(m=40, seed=0):
    g = np.random.default_rng(seed)
    return np.stack([g.integers(0, c, m) for c in DOMAIN.sizes], axis=1) + DOMAIN.starts[:-1]


def swapped(codes, a, i, j):
    out = codes.copy()
    out[i, a], out[j, a] = codes[j, a], codes[i, a]
    return out


@pytest.mark.parametrize("a", range(4))
def test_an_exchange_costs_what_it_changes_in_the_triples(a):
    codes = rows()
    ties = TripleTies(CHOSEN, CLOUD, DOMAIN, codes)

    def loss(own):
        return sum((own.weight[t].astype(float) * own.error[t].astype(float) ** 2).sum() for t in CHOSEN.names)

    for i, j in [(0, 1), (2, 9), (5, 30)]:
        xi, xj = codes[[i]], codes[[j]]
        after = TripleTies(CHOSEN, CLOUD, DOMAIN, swapped(codes, a, i, j))
        cells = [set(ties._cells(t, x).tolist()) for t in CHOSEN.names if a in t for x in (xi, xj)]
        if all(one.isdisjoint(two) for one, two in zip(cells[::2], cells[1::2], strict=True)):
            assert ties.cost(a, xi, xj)[0] == pytest.approx(loss(after) - loss(ties), abs=2 * THREE)
        own = TripleTies(CHOSEN, CLOUD, DOMAIN, codes)
        own.take(a, xi, xj)
        for t in CHOSEN.names:
            assert own.error[t] == pytest.approx(after.error[t], abs=1e-4)


def test_an_exchange_costs_what_it_changes_in_the_covariances_of_scores():
    codes, scores = rows(), np.concatenate([np.arange(c) - (c - 1) / 2 for c in DOMAIN.sizes])
    ties = Ties(scores, CLOUD, DOMAIN, codes)

    def loss(own):
        return TIE / len(codes) * float((np.triu(own.error, 1) ** 2).sum())

    for a, i, j in [(0, 0, 1), (1, 2, 9), (3, 5, 30)]:
        after = Ties(scores, CLOUD, DOMAIN, swapped(codes, a, i, j))
        assert ties.cost(a, codes[[i]], codes[[j]])[0] == pytest.approx(loss(after) - loss(ties), rel=1e-3, abs=1e-2)
        own = Ties(scores, CLOUD, DOMAIN, codes)
        own.take(a, codes[[i]], codes[[j]])
        off = ~np.eye(4, dtype=bool)
        assert own.error[off] == pytest.approx(after.error[off], abs=1e-3)

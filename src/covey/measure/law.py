"""A law answers the queries that units are asked; a certificate says how far the two answers are apart.

Whatever the query, one replaced unit moves each of its tables by 2/n in ℓ1: its total variation distance from a fixed table by
1/n at most, and so the mean over tables (docs/proofs/certificate.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from covey.core.arrays import Floats, Integers
from covey.core.paper.blocks import WeightedPoints
from covey.measure.query import Query


@dataclass(frozen=True)
class Mixture:
    """Centres of independent columns: closed forms for queries of rows. `codes` has a code of each category of a column."""

    cloud: WeightedPoints
    codes: Sequence[Integers]

    def table(self, query: Query) -> Floats:
        """Shares of every cell, table after table."""
        ends = np.cumsum([len(codes) for codes in self.codes])
        shares = {}
        for a, factor in query.factors.items():
            shares[a] = np.zeros((len(self.cloud), factor.size))
            own = self.cloud.points[:, ends[a] - len(self.codes[a]) : ends[a]]
            np.add.at(shares[a].T, factor.at(self.codes[a]), own.T)
        out = []
        for before, group in groupby(query.sets, key=lambda own: own[:-1]):
            product = self.cloud.weights[:, None]
            for a in before:
                product = (product[:, :, None] * shares[a][:, None, :]).reshape(len(product), -1)
            out += [(product.T @ shares[own[-1]]).ravel() for own in group]
        return np.concatenate(out)


def mean_variation(counts: Integers, shares: Floats, starts: Integers, total: int) -> float:
    """The mean, over tables that lie side by side, of the total variation distance between counts of a total and shares."""
    return float(np.mean(np.add.reduceat(np.abs(counts / total - shares), starts[:-1])) / 2)

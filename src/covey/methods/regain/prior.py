"""Public information of the same kind: rows that were released before under the same schema, beside this year's measurements.

They cost nothing, because whoever made them has paid for them. They are no measurement either: people change. So they enter as
one more candidate wherever noisy tables are denoised, and the candidates' weights come from this year's noisy tables alone: what
was true last year and is not true now stands out of the noise and is given up, table by table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from covey.core.arrays import Array, Floats, Integers
from covey.core.tables.crosstabs import pair_matrix
from covey.core.tables.domain import Domain
from covey.core.tables.events import Histories


@dataclass(frozen=True)
class Prior:
    """Rows of codes that are public, and the fingerprint of the bundle that they come from.

    Of persons with events there is a row for each event, with the codes of its person: together a person weighs 1. Who has none
    has a row with codes of −1 in place of an event's.
    """

    codes: Array
    digest: str
    weights: Floats | None = None

    @classmethod
    def of_persons(cls, linked: Histories, digest: str) -> Prior:
        """Of public persons with their events."""
        none = np.flatnonzero(linked.counts == 0)
        rows = np.concatenate([linked.owner, none])
        events = np.concatenate([linked.events, np.full((len(none), linked.events.shape[1]), -1)])
        weights = 1 / np.maximum(linked.counts, 1)[rows]
        return cls(np.column_stack([linked.persons[rows], events]), digest, weights)

    def shares(self, attribute: int, size: int) -> Floats:
        """Shares of the codes of an attribute."""
        codes = self.codes[:, attribute].astype(np.int64)
        if self.weights is None:
            return np.asarray(np.bincount(codes, minlength=size) / len(codes))
        there = codes >= 0
        counts = np.bincount(codes[there], self.weights[there], minlength=size)
        return np.asarray(counts / counts.sum())


def prior_covariances(cells: Array, maps: list[Integers], merged: Domain) -> Floats:
    """Covariances of all pairs of bins among public rows, given by their categories and cells."""
    bins = np.stack([m[cells[:, a].astype(np.int64)] for a, m in enumerate(maps)], axis=1)
    joint = pair_matrix(bins, merged.sizes) / len(bins)
    shares = joint.diagonal()
    return merged.off_blocks(joint - np.outer(shares, shares))

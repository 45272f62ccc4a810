"""Public rows of the same kind, such as an earlier release under the same schema.

They cost nothing, because whoever made them has paid for them. They are no measurement either: people change. So they enter as
one more candidate wherever noisy tables are denoised, and the candidates' weights come from this year's noisy tables alone: what
was true last year and is not true now stands out of the noise and is given up, table by table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from covey.engine.arrays import Array, Floats
from covey.engine.codes.domain import pair_matrix
from covey.engine.codes.events import Histories
from covey.engine.models.tables.discretize import Discretization
from covey.engine.query import to_bins


@dataclass(frozen=True)
class Prior:
    """Rows of codes that are public.

    Attributes:
        codes: a column per attribute. Of persons with events there is a row for each event, with the codes of its person; who has
            no event has a row with codes of −1 in place of an event's.
        digest: the fingerprint of the bundle that the rows come from.
        weights: of the rows; those of a person sum to 1. None where each row is somebody.
    """

    codes: Array
    digest: str
    weights: Floats | None = None

    @classmethod
    def of_persons(cls, linked: Histories, digest: str) -> Prior:
        """Of public persons with their events."""
        without_events = np.flatnonzero(linked.counts == 0)
        owners = np.concatenate([linked.owner, without_events])
        no_event = np.full((len(without_events), linked.events.shape[1]), -1)
        events = np.concatenate([linked.events, no_event])
        weights = 1 / np.maximum(linked.counts, 1)[owners]
        return cls(np.column_stack([linked.persons[owners], events]), digest, weights)

    def shares(self, attribute: int, size: int) -> Floats:
        """Shares of the codes of an attribute."""
        codes = self.codes[:, attribute].astype(np.int64)
        if self.weights is None:
            return np.asarray(np.bincount(codes, minlength=size) / len(codes))
        present = codes >= 0
        counts = np.bincount(codes[present], self.weights[present], minlength=size)
        return np.asarray(counts / counts.sum())

    def covariances(self, discretization: Discretization) -> Floats:
        """Covariances of all pairs of bins."""
        cells = to_bins(discretization.cell_factors, self.codes).astype(np.int64)
        bins = [bin_of[cells[:, a]] for a, bin_of in enumerate(discretization.bin_of)]
        domain = discretization.bin_domain
        joint = pair_matrix(np.stack(bins, axis=1), domain.sizes) / len(self.codes)
        shares = joint.diagonal()
        return domain.off_blocks(joint - np.outer(shares, shares))

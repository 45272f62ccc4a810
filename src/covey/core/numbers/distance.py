"""How far a number's released distribution function is from the records': for the certificate.

For fixed released shares the Kolmogorov distance moves by at most 1/n when one record is replaced (docs/proofs/trees.md).
"""

from __future__ import annotations

import numpy as np

from covey.core.arrays import Floats, Integers
from covey.core.numbers.cells import Cells

FINE = 1024  # ranges of at most this part of the mass are told apart


def released_below(cells: Cells, share: Floats, codes: Integers) -> Floats:
    """The released distribution function: shares of cells as given, and inside cells the private measure, as rows are drawn."""
    inside = cells.measure.below(cells.edges)
    at = np.clip(np.searchsorted(cells.edges, codes, side="right") - 1, 0, len(share) - 1)
    mass = inside[at + 1] - inside[at]
    step = codes > cells.nearest[at]
    part = np.where(mass > 0, (cells.measure.below(codes) - inside[at]) / np.where(mass > 0, mass, 1.0), step)
    start = np.concatenate([[0.0], np.cumsum(share)])[at]
    return np.asarray(start + share[at] * np.clip(part, 0.0, 1.0))


def comparison_edges(cells: Cells) -> Integers:
    """Public ranges at which records are counted: those of cells and measure, the heavy ones cut into even pieces."""
    edges = np.unique(np.concatenate([cells.edges, cells.measure.start, cells.measure.stop]))
    width, mass = np.diff(edges), cells.measure.mass(edges)
    count = np.clip(np.ceil(mass * FINE).astype(np.int64), 1, width)
    place = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    return np.append(np.repeat(edges[:-1], count) + place * np.repeat(width // count, count), edges[-1])


def kolmogorov_bound(counts: Integers, edges: Integers, released: Floats, whole: int | None = None) -> float:
    """At least the sup distance between records, counted between these edges, and the released function at the edges.

    Inside a range both functions rise, so they differ by no more than the one's end and the other's start do. Ranges of a
    single code have no inside: with those alone the bound is the distance itself. The records are parts of `whole`, if that is
    not their sum.
    """
    true = np.concatenate([[0], np.cumsum(counts)]) / (counts.sum() if whole is None else whole)
    wide = np.diff(edges) > 1
    inside = np.maximum(true[1:] - released[:-1], released[1:] - true[:-1])[wide]
    return float(max(np.abs(true - released).max(), inside.max(initial=0.0)))

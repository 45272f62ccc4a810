"""Records as rows of integers: what every method measures.

Boolean records are 0/1 already. Real records in K are projected onto K one by one, divided by K's radius and cut
off (toward zero, so that no record leaves the unit ball) to multiples of 2^-20. Sums of integers do not depend on
the order of rows, and the cell of a record depends on that record alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from covey.engine.arrays import Array, Floats
from covey.engine.bodies import Body, bounding_box, l1_radius
from covey.engine.codes.counts import Batch, RealGrid, dense, is_sparse
from covey.engine.units.local import BATCH_ENTRIES, ArrayRows
from covey.errors import ParameterError

REAL_BITS = 20  # of a coordinate: `integer_squares` sums products of such entries exactly
NOT_EXTENDED = "body must be bounded and not a single point. Intersect it with a Box or a Ball."
FAR = 16.0  # radii of K: farther records are pulled in first, which keeps projections quick and finite


@dataclass(frozen=True)
class Records:
    """Rows of integers; one integer step is `unit`, and ‖row‖ ≤ `radius` in such steps."""

    rows: ArrayRows
    unit: float
    radius: float


def boolean_records(X: Batch) -> Records:
    """Records of 0 and 1."""
    return Records(ArrayRows(X), unit=1.0, radius=float(np.sqrt(X.shape[1])))


def _inside(batch: Array, body: Body) -> Floats:
    """The records, projected onto K one by one.

    Records beyond FAR radii are pulled in along their ray first: no record may overflow, warn, fail or take long.
    """
    most = np.float64(1e150)  # wider floats are cut off first: cast, they would overflow
    x = np.ascontiguousarray(np.clip(batch, -most, most), dtype=np.float64)
    length = np.sqrt((x * x).sum(axis=1, keepdims=True))
    return body.project(x * np.minimum(1.0, FAR * body.radius / np.maximum(length, 1e-300)))


def plain_records(X: Array, body: Body) -> Records:
    """Records in K as they are, for anonymous averages, where no privacy rests on a grid."""
    return Records(ArrayRows(X, lambda batch: _inside(batch, body)), unit=1.0, radius=body.radius)


def real_records(X: Array, body: Body) -> Records:
    """Records in K, in fixed point: coordinates far smaller than K's radius lose digits, so give columns of one scale."""
    grid, longest = 1 << REAL_BITS, l1_radius(body) / body.radius

    def prepare(batch: Array) -> Array:
        inside = _inside(batch, body) / body.radius
        # An iterative projection is accurate to its tolerance: make sure of the two norm bounds that privacy rests on.
        inside = np.nan_to_num(inside, posinf=1.0, neginf=-1.0)
        inside /= np.maximum(np.sqrt((inside * inside).sum(axis=1, keepdims=True)), 1.0)
        inside *= np.minimum(1.0, longest / np.maximum(np.abs(inside).sum(axis=1, keepdims=True), 1e-300))
        return np.asarray(np.trunc(inside * grid))

    return Records(ArrayRows(X, prepare), unit=body.radius / grid, radius=float(grid))


def require_extended(body: Body) -> None:
    """Refuse a body without bounds, and one that is the point 0."""
    if not 0 < body.radius < np.inf:
        raise ParameterError(NOT_EXTENDED)


def body_grid(body: Body) -> RealGrid:
    """The public grid of a body that `regain` counts on, or a refusal."""
    grid = RealGrid.of(*bounding_box(body))
    if not np.isfinite(grid.width).all() or not len(grid.live):
        raise ParameterError(NOT_EXTENDED)
    return grid


def code_records(X: Array, body: Body, grid: RealGrid) -> ArrayRows:
    """Records in K as codes on its grid, each from its own row alone. They are coded once: projections may take long."""
    step = max(1, BATCH_ENTRIES // X.shape[1])
    return ArrayRows(np.concatenate([grid.codes(_inside(X[i : i + step], body)) for i in range(0, len(X), step)]))


def trimmed(batch: Batch, limits: tuple[tuple[tuple[int, ...], int], ...]) -> Batch:
    """Records of bits: of the ones in a declared set the first L stay, in the order of the declared columns."""
    out = np.array(dense(batch))
    for columns, most in limits:
        part = out[:, columns]
        out[:, columns] = part * (np.cumsum(part, axis=1) <= most)
    return csr_array(out) if is_sparse(batch) else out

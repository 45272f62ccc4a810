"""The paper, with its own names: "Covariance's Loss is Privacy's Gain" by Boedihardjo, Strohmer and Vershynin.

Every function is one of the paper's objects, on plain arrays with a record in each row, so that each numbered statement can be
tried in a minute. Partitions are labels, a number for each row. `bounds` has every theorem as a function; docs/paper-map.md says
where each item lives. Except for `private_measure` nothing here is private: it is for understanding, not for release.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, log
from typing import Any

import numpy as np

from covey.engine.arrays import Array, Bits, Floats, Integers, is_bits
from covey.engine.bodies import Body, Cube
from covey.engine.budget import make_budget
from covey.engine.codes.distance import marginal_error
from covey.engine.entropy import Streams
from covey.engine.gate import Gate
from covey.engine.noise.directions import principal_directions, private_directions, sample_bingham
from covey.engine.points import WeightedPoints, agreeing, bootstrap, round_bits
from covey.errors import ParameterError, whole_number
from covey.paper import blocks, bounds
from covey.paper.blocks import project_weights
from covey.paper.covering import LatticeCovering, equipartition, nearest_point_partition
from covey.paper.groups import mdav, median_tree, spectral_tree
from covey.paper.private import PaperParameters, anonymous_parameters, paper_parameters, private_centres
from covey.paper.records import boolean_records, real_records

__all__ = [
    "GramPartition",
    "LatticeCovering",
    "PrivateMeasure",
    "SpectralPartition",
    "WeightedPoints",
    "algorithm_1",
    "algorithm_4",
    "bootstrap",
    "bounds",
    "covariance_loss",
    "damped_means",
    "equipartition",
    "gram_microaggregate",
    "gram_partition",
    "marginal_error",
    "mdav",
    "median_tree",
    "microaggregate",
    "moment_loss",
    "nearest_point_partition",
    "private_measure",
    "proj",
    "project_weights",
    "pvec",
    "round_bits",
    "separated_subset",
    "spectral_partition",
    "spectral_tree",
]


def covariance_loss(X: Array, partition: Array, *, radius: float = 1.0, weights: Array | None = None) -> float:
    """‖Σ_X − Σ_Y‖₂ for Y = E[X | partition] (Lemma 3.1).

    The paper's records have norm at most 1. With `radius`, records are divided by it first: √p for bits.
    """
    X, labels = _rows(X), _labels(partition, len(X))
    return blocks.covariance_loss(X, labels, blocks.shares(len(X), weights)) / radius**2


def moment_loss(X: Array, partition: Array, degree: int, *, radius: float = 1.0, weights: Array | None = None) -> float:
    """‖E X^{⊗d} − E Y^{⊗d}‖₂, through inner products: ⟨x^{⊗d}, y^{⊗d}⟩ = ⟨x, y⟩ᵈ, so no tensor is built."""
    X, labels = _rows(X) / radius, _labels(partition, len(X))
    d, probability = whole_number(degree, "degree", 1), blocks.shares(len(X), weights)
    means = blocks.group_means(X, labels, probability)
    points, signed = np.vstack([X, means.points]), np.r_[probability, -means.weights]
    parts = (slice(i, i + 512) for i in range(0, len(points), 512))
    square = sum(float(signed[part] @ (points[part] @ points.T) ** d @ signed) for part in parts)
    return float(np.sqrt(max(square, 0.0)))


def microaggregate(X: Array, partition: Array, *, weights: Array | None = None) -> WeightedPoints:
    """(4.1): every group's share of the records, and its mean."""
    X, labels = _rows(X), _labels(partition, len(X))
    return blocks.group_means(X, labels, blocks.shares(len(X), weights))


def gram_microaggregate(G: Array, partition: Array, *, weights: Array | None = None) -> GramPartition:
    """(4.1) in a Hilbert space (Remark 1.5): of records known by inner products, the groups' shares and means, and the loss."""
    G = np.asarray(G, dtype=np.float64)
    _ = blocks.coordinates(G)  # refuses what is no Gram matrix
    labels, probability = _labels(partition, len(G)), blocks.shares(len(G), weights)
    return GramPartition(labels, *blocks.gram_means(G, labels, probability))


def damped_means(X: Array, partition: Array, b: float) -> Floats:
    """(5.4): Σ_{i∈F_j} x_i / max(|F_j|, b). Small groups are pulled toward 0, so that one record moves them by 2/b at most."""
    X, labels = _rows(X), _labels(partition, len(X))
    if not b > 0:
        raise ParameterError(f"b must be positive, got {b}.")
    return blocks.damped_means(blocks.block_sums(X, labels, int(labels.max()) + 1), b)


def pvec(A: Array, generator: np.random.Generator, size: int | None = None) -> Floats:
    """Algorithm 2: a unit vector with density ∝ exp(⟨Ax, x⟩), drawn exactly; `size` of them as rows."""
    drawn = sample_bingham(np.asarray(A, dtype=np.float64), generator, 1 if size is None else size)
    return np.asarray(drawn[0] if size is None else drawn)


def proj(A: Array, t: int, generator: np.random.Generator) -> Floats:
    """Algorithm 3: t orthonormal columns, a private version of the leading eigenvectors. The projection is V Vᵀ."""
    A = np.asarray(A, dtype=np.float64)
    if not 0 <= t <= len(A):
        raise ParameterError(f"t must lie between 0 and {len(A)}, got {t}.")
    return private_directions(A, t, generator)


@dataclass(frozen=True)
class SpectralPartition:
    """A partition by Theorem 1.2 or Algorithm 1, with what its proof speaks of. Numbers are for records in the unit ball."""

    labels: Integers
    cells: Integers
    t: int
    alpha: float
    directions: Floats
    eigenvalues: Floats
    radius: float
    within: float
    tail: float
    mixed: float
    loss: float

    @property
    def bound(self) -> bounds.Bound:
        """Lemma 3.2 after the fact: within cells, outside the subspace, and the weight of the residuals (Lemma 3.9)."""
        return bounds.Bound(self.within + self.tail + self.mixed, "‖Σ_X − Σ_Y‖₂, from what this run measured")


def spectral_partition(  # the symbols of Theorem 1.2 and Algorithm 1
    X: Array,
    k: int,
    *,
    equal: bool = True,
    t: int | None = None,
    alpha: float | None = None,
    radius: float | None = None,
    weights: Array | None = None,
) -> SpectralPartition:
    """The paper's partition into at most k sets: lattice cells of the leading principal directions (Theorem 1.2).

    With `equal`, Algorithm 1 and the second half of Theorem 1.2: cells for ⌊√k⌋, divided and merged into k groups of ⌊n/k⌋ or
    ⌈n/k⌉ records. Groups of records with weights differ from 1/k by at most the weight of one record. The paper's choice of t and
    α is replaced by yours where you give one. `radius` is √p for bits and the longest record's norm otherwise.
    """
    rows = _rows(X)
    k = whole_number(k, "k", 1, "It counts the groups.")
    if k > len(rows):
        raise ParameterError(f"k must be at most the number of records, {len(rows)}, got {k}.")
    if radius is None:
        bits = is_bits(np.asarray(X))
        radius = float(np.sqrt(rows.shape[1]) if bits else np.linalg.norm(rows, axis=1).max()) or 1.0
    rows, probability = rows / radius, blocks.shares(len(rows), weights)
    t, alpha = anonymous_parameters(isqrt(k) if equal else k, rows.shape[1], t, alpha)
    S = (rows * probability[:, None]).T @ rows
    V = principal_directions(S, t)
    cells = _labels(LatticeCovering(t, alpha).assign(rows @ V), len(rows))
    labels = _labels(equipartition(cells, k, None if weights is None else probability), len(rows)) if equal else cells
    away = rows @ V - blocks.group_means(rows @ V, cells, probability).points[cells]
    rest = np.eye(len(S)) - V @ V.T
    mixed = ~agreeing(labels, cells)[labels]  # records that share a group with one of another cell
    return SpectralPartition(
        labels=labels,
        cells=cells,
        t=t,
        alpha=alpha,
        directions=V,
        eigenvalues=np.asarray(np.linalg.eigvalsh(S)[::-1], dtype=np.float64),
        radius=radius,
        within=float(probability @ (away**2).sum(axis=1)),
        tail=float(np.linalg.norm(rest @ S @ rest)),
        mixed=float(probability[mixed].sum()),
        loss=blocks.covariance_loss(rows, labels, probability),
    )


@dataclass(frozen=True)
class GramPartition:
    """Groups of records of a Hilbert space: labels, each group's share, inner products of the centres, covariance loss."""

    labels: Integers
    weights: Floats
    centres: Floats
    loss: float


def gram_partition(G: Array, group_size: int, *, weights: Array | None = None) -> GramPartition:
    """Remark 1.5: anonymous microaggregation of records that are known by their inner products, such as a kernel's values.

    Groups of at least `group_size` records by the spectral tree, in the coordinates that G itself defines. O(n³).
    """
    G = np.asarray(G, dtype=np.float64)
    rows = blocks.coordinates(G)
    r = whole_number(group_size, "group_size", 1)
    if r > len(G):
        raise ParameterError(f"group_size must be at most the number of records, {len(G)}, got {r}.")
    labels = spectral_tree(rows if rows.shape[1] else np.zeros((len(G), 1)), r, weights=weights)
    return gram_microaggregate(G, labels, weights=weights)


@dataclass(frozen=True)
class PrivateMeasure:
    """The weighted points of Algorithm 4, its directions and its public parameters: t, α, b, κ and the charges."""

    weights: Floats
    points: Floats
    directions: Floats
    parameters: PaperParameters

    def sample(self, m: int, generator: np.random.Generator) -> Floats:
        """m points, drawn with the weights as probabilities (section 5.8). No further privacy is spent."""
        return np.asarray(self.points[bootstrap(WeightedPoints(self.weights, self.points), m, generator)])


def private_measure(
    X: Array, epsilon: float | Fraction, body: Body | None = None, *, seed: int | None = None, **choices: Any
) -> PrivateMeasure:
    """Algorithm 4 up to bootstrapping (Theorems 5.12 and 5.13): ε-differentially private, for replaced records.

    Records of bits, or of numbers in `body`. `choices` replaces any of kappa, t, alpha, b, shares and constants: they are public.
    A seed makes a run repeatable, and not private.
    """
    rows = _bits(X, "For other records give the convex set they lie in, body=….") if body is None else _rows(X)
    if body is not None and rows.shape[1] != body.dimension:
        raise ParameterError(f"X must be a matrix with a column for each dimension of K, got shape {rows.shape}.")
    K = Cube(rows.shape[1]) if body is None else body
    records = boolean_records(rows) if body is None else real_records(rows, K)
    budget = make_budget(epsilon, 0)
    parameters = paper_parameters(len(rows), K, budget.amount, **choices)
    streams = Streams.from_system() if seed is None else Streams.from_seed(seed)
    cloud, directions = private_centres(records, K, parameters, Gate(budget, parameters.shares, streams))
    return PrivateMeasure(cloud.weights, cloud.points, directions, parameters)


def algorithm_1(X: Array, k: int, m: int, generator: np.random.Generator) -> Bits:
    """Algorithm 1 in one call: m Boolean rows from the means of k groups of bits of equal size. Anonymous, not private."""
    rows = _bits(X, "Algorithm 1 rounds the groups' means to bits.")
    cloud = microaggregate(rows, spectral_partition(rows, k).labels)
    return round_bits(cloud.points, bootstrap(cloud, whole_number(m, "m", 1), generator), generator)


def algorithm_4(X: Array, epsilon: float | Fraction, m: int, *, seed: int | None = None, **choices: Any) -> Bits:
    """Algorithm 4 in one call: m Boolean rows under ε-differential privacy; arguments as for `private_measure`."""
    rows = _bits(X, "For other records in a convex set call private_measure.")
    m = whole_number(m, "m", 1)
    measure = private_measure(rows, epsilon, seed=seed, **choices)
    streams = Streams.from_system() if seed is None else Streams.from_seed(seed).child("rows")
    generator = streams.postprocessing("rows")
    chosen = bootstrap(WeightedPoints(measure.weights, measure.points), m, generator)
    return round_bits(measure.points, chosen, generator)


def separated_subset(n: int, p: int, generator: np.random.Generator) -> Floats:
    """Lemma 3.15: n points of p^{−1/2}{0, 1}ᵖ, any two further apart than 1/2. Proposition 3.14's example for k = n/2."""
    if n < 1 or p <= 16 * log(n):
        raise ParameterError(f"need p > 16·ln(n), got n = {n}, p = {p}.")
    while True:
        x = generator.integers(0, 2, (n, p))
        agree = x @ x.T + (1 - x) @ (1 - x).T
        np.fill_diagonal(agree, 0)
        if (p - agree > p / 4).all():
            return np.asarray(x / np.sqrt(p))


def _rows(X: Array) -> Floats:
    rows = np.asarray(X, dtype=np.float64)
    if rows.ndim != 2 or not rows.size or not np.isfinite(rows).all():
        raise ParameterError(f"X must be a matrix of finite numbers with a row per record, got shape {rows.shape}.")
    return rows


def _bits(X: Array, way_out: str) -> Bits:
    rows = _rows(X)
    if not ((rows == 0) | (rows == 1)).all():
        raise ParameterError(f"X must hold only 0 and 1. {way_out}")
    return rows.astype(np.uint8)


def _labels(partition: Array, n: int) -> Integers:
    """Labels of any kind as 0, …, k − 1."""
    labels = np.asarray(partition)
    if labels.shape != (n,):
        raise ParameterError(f"a partition gives one label per record: {n} of them, got shape {labels.shape}.")
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)

"""Weighted centres in K whose moments match given ones: the microaggregates of `regain`, found after the measurement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from covey.core.arrays import Array, Floats, Integers
from covey.core.fit.lowrank import (
    BASIS,
    LOW_RANK_CATEGORIES,
    SWEEPS,
    core,
    imputed_directions,
    leading_eigenvectors,
    moment_gap,
)
from covey.core.tables.domain import Domain

Tick = Callable[[float], None]


@dataclass(frozen=True)
class Directions:
    """Directions of the pair tables that matter more than a single cell: unit vectors, each inside one attribute's block."""

    vectors: Floats
    attribute: Integers
    weight: Floats  # for each pair of vectors; those of one attribute are never compared


def fit_category_centres(  # targets, their domain, four settings of the fit, and what matters more
    shares: Floats,
    covariances: Floats,
    domain: Domain,
    k: int,
    steps: int,
    public: np.random.Generator,
    tick: Tick,
    directions: Directions | None = None,
) -> Floats:
    """k equally weighted products of categorical laws whose one-way and pair tables match.

    With `directions`, the tables' covariances along these count in addition.

    Adam on softmax logits with a cosine step, in float32: a step costs k·D², or k²·D where there are many categories. Without
    covariances one centre says it all.
    """
    if not np.any(covariances):
        return shares[None].copy()
    starts, block_of, q = domain.starts[:-1], domain.block_of, len(domain.sizes)
    f4 = np.float32
    along = None if directions is None else _pull_along(directions, covariances, q)
    logits: Array = np.log(_starting_points(shares, covariances, k, public)).astype(f4)
    pull = _pull(shares, covariances, domain, k, public)
    mean = shares.astype(f4)
    first, second = np.zeros_like(logits), np.zeros_like(logits)
    for t in range(1, steps + 1):
        y = _softmax(logits, starts, block_of)
        g = pull(y) + f4(4 / q) * (y.mean(axis=0) - mean)
        if along is not None:
            g += along(y)
        g *= y
        g -= y * np.add.reduceat(g, starts, axis=1)[:, block_of]
        first += f4(0.1) * (g - first)
        second += f4(0.01) * (g * g - second)
        rate = 0.08 * (0.5 * (1 + np.cos(np.pi * t / steps)) + 0.02) / (1 - 0.9**t)
        logits -= f4(rate) * first / (np.sqrt(second / f4(1 - 0.99**t)) + f4(1e-12))
        if t % 50 == 0:
            tick(t / steps)
    y = _softmax(logits.astype(np.float64), starts, block_of)
    return np.asarray(y)


def _pull(
    shares: Floats, covariances: Floats, domain: Domain, k: int, public: np.random.Generator
) -> Callable[[Array], Array]:
    """y times four times the gap between the centres' pair tables and their targets, by entry of a pair of attributes.

    For many categories the target is summarised by its leading directions first; attributes' own blocks are imputed.
    """
    f4, q, D = np.float32, len(domain.sizes), domain.total
    target = np.maximum(covariances + np.outer(shares, shares), 0).astype(f4)
    if D > LOW_RANK_CATEGORIES:
        start = public.standard_normal((D, BASIS))
        values, basis = imputed_directions(target, domain.inside_blocks, start, lambda found: np.maximum(found, 0))
        goal = core(np, basis, np.diag(values))
        return lambda y: f4(4 / q**2) * moment_gap(np, y, goal)[1]
    off = (~domain.same_block / q**2).astype(f4)
    target *= off
    return lambda y: y @ (4 * ((y.T @ y) * (off / f4(k)) - target))


def _pull_along(directions: Directions, covariances: Floats, q: int) -> Callable[[Array], Array]:
    """The same along some vectors R: four times y·R·(W∘(Rᵀ·gap·R))·Rᵀ, in float32."""
    f4 = np.float32
    R = directions.vectors.astype(f4)
    W = (directions.weight * (directions.attribute[:, None] != directions.attribute) * (4 / q**2)).astype(f4)
    goal = (directions.vectors.T @ covariances @ directions.vectors).astype(f4)

    def pull(y: Array) -> Array:
        z = y @ R
        centred = z - z.mean(axis=0)
        return np.asarray((centred @ (W * (centred.T @ centred / f4(len(y)) - goal))) @ R.T)

    return pull


def _softmax(logits: Array, starts: Array, block_of: Array) -> Array:
    e = np.exp(logits - np.maximum.reduceat(logits, starts, axis=1)[:, block_of])
    return np.asarray(e / np.add.reduceat(e, starts, axis=1)[:, block_of])


def _starting_points(shares: Floats, covariances: Floats, k: int, public: np.random.Generator) -> Floats:
    """Points shares + V√λ·g from the positive part of the covariances, kept inside the simplex."""
    if len(shares) > LOW_RANK_CATEGORIES:
        start = public.standard_normal((len(shares), BASIS)).astype(np.float32)
        none = np.zeros(len(shares), np.float32)
        w, vectors = leading_eigenvectors(np, covariances.astype(np.float32), none, start, SWEEPS)
    else:
        w, vectors = np.linalg.eigh(covariances)
    keep = w > 0.02 * w.max()
    cloud = (public.standard_normal((k, int(keep.sum()))) * np.sqrt(w[keep])) @ vectors[:, keep].T
    return np.asarray(np.maximum(shares + cloud, 0.002 * np.maximum(shares, 1e-6)))

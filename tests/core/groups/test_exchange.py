"""Exchanges between groups: whole, never for the worse, and as good as looking at every swap."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covey.core.groups import tree as module
from covey.core.groups.tree import _disjoint, _Groups, exchange
from covey.core.tables.distance import covariance_loss


def inside(points, labels):
    """Sum of squares inside groups."""
    return sum(((points[labels == g] - points[labels == g].mean(axis=0)) ** 2).sum() for g in np.unique(labels))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.integers(2, 40), st.integers(1, 5), st.integers(0, 2**32 - 1), st.booleans())
def test_every_row_keeps_one_place_and_the_loss_never_rises(groups, r, p, seed, bits):
    generator = np.random.default_rng(seed)
    sizes = r + generator.integers(0, 2, groups)
    X = generator.random((sizes.sum(), p)).astype(np.float32)
    X = (X < 0.3).astype(np.float32) if bits else X * generator.random(p).astype(np.float32)
    labels = np.repeat(np.arange(groups), sizes)
    order = exchange(X, sizes)
    assert (np.sort(order) == np.arange(len(X))).all()
    assert covariance_loss(X[order], labels) <= covariance_loss(X, labels) * (1 + 1e-5) + 1e-12


@pytest.mark.parametrize("size", [2, 5, 12])
def test_a_pair_of_groups_ends_where_no_single_swap_helps(size, monkeypatch):
    monkeypatch.setattr(module, "SWAPS", 1000)
    generator = np.random.default_rng(size)
    points = generator.standard_normal((2 * size + 1, 3)).astype(np.float32)
    sizes = np.array([size, size + 1])
    groups = _Groups(points.copy(), sizes)
    for _ in range(20):  # the larger group leaves one row out at a time
        groups.swap(np.array([0]), np.array([1]))
    assert (groups.points == points[groups.order]).all()
    labels = np.repeat([0, 1], sizes)
    np.testing.assert_allclose(groups.centroids[0], groups.points[:size].mean(axis=0), atol=1e-5)
    np.testing.assert_allclose(groups.centroids[1], groups.points[size:].mean(axis=0), atol=1e-5)
    least = inside(groups.points, labels)
    assert least < inside(points, labels)
    for i in range(size):
        for j in range(size, 2 * size + 1):
            other = groups.points.copy()
            other[[i, j]] = other[[j, i]]
            assert inside(other, labels) > least - 1e-4


def test_two_mixed_clusters_are_told_apart():
    """Sorting by fixed centroids cannot start here: both centroids are the same. Swaps can."""
    clusters = np.repeat([0.0, 1.0], 10)[:, None] * np.ones(4)
    mixed = clusters.reshape(2, 10, 4).transpose(1, 0, 2).reshape(20, 4)
    order = exchange(mixed.astype(np.float32), np.array([10, 10]))
    assert covariance_loss(mixed[order], np.repeat([0, 1], 10)) == pytest.approx(0, abs=1e-6)


def test_many_columns_use_the_plain_metric(monkeypatch):
    generator = np.random.default_rng(1)
    X = (generator.standard_normal((600, 3)) @ generator.standard_normal((3, 20))).astype(np.float32)
    sizes, labels = np.full(60, 10), np.repeat(np.arange(60), 10)
    monkeypatch.setattr(module, "METRIC_COLUMNS", 8)
    order = exchange(X, sizes)
    assert inside(X[order], labels) < 0.6 * inside(X, labels)


@given(st.integers(2, 30), st.integers(0, 2**32 - 1))
def test_no_group_is_paired_twice_in_a_round(count, seed):
    pairs = np.random.default_rng(seed).integers(0, count, (60, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    taken = _disjoint(pairs, count)
    assert (np.bincount(pairs[taken].ravel(), minlength=count) <= 1).all()
    assert taken.any() == (len(pairs) > 0)


def test_blocks_cover_all_groups(monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 8)
    for count in range(2, 40):
        for shift in (0, 4, 7):
            blocks = list(module._blocks(count, shift))
            assert [b for first, last in blocks for b in range(first, last)] == list(range(count))
            assert min(last - first for first, last in blocks) >= 2

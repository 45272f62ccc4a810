"""The spectral tree: sizes, determinism, the theorem's rate, and MDAV beside it."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covey.paper import blocks, bounds, covariance_loss
from covey.paper import groups as groups
from covey.paper import groups as module
from covey.paper.bounds import proposition_3_14, theorem_1_2_equal
from covey.paper.groups import _disjoint, _Groups, exchange, mdav, median_tree, spectral_tree
from tests.paper.test_covariance_loss import conditional_expectation, in_unit_ball, separated_subset


@settings(max_examples=60)
@given(st.integers(2, 400), st.integers(2, 60), st.integers(1, 6), st.integers(0, 2**32 - 1), st.booleans())
def test_groups_have_r_rows_or_a_few_more(n, r, p, seed, repeated):
    X = np.random.default_rng(seed).integers(0, 2, (n, p), dtype=np.uint8)
    if repeated:
        X[:] = X[0]  # no direction to cut along
    r = min(r, n)
    sizes = np.bincount(spectral_tree(X, r))
    assert len(sizes) == n // r
    assert sizes.sum() == n
    assert sizes.min() >= r
    assert sizes.max() <= max(2 * r - 1, r + 1)


@given(st.integers(2, 120), st.integers(2, 20), st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_mdav_groups_have_r_to_2r_minus_1_rows(n, r, seed):
    X = np.random.default_rng(seed).random((n, 3))
    r = min(r, n)
    sizes = np.bincount(mdav(X, r))
    assert sizes.min() >= r
    assert sizes.max() <= max(2 * r - 1, r)


def test_many_nodes_are_cut_as_few_are(monkeypatch):
    """The two ways of handling a level, node by node and all at once, agree."""
    X = np.random.default_rng(2).random((3000, 4))
    few = spectral_tree(X, 10, turns=0)
    monkeypatch.setattr(module, "MANY_NODES", 0)
    assert covariance_loss(X, spectral_tree(X, 10, turns=0)) == pytest.approx(covariance_loss(X, few), rel=0.02)


def test_theorem_1_2_rate_on_separated_sets_and_random_data():
    generator = np.random.default_rng(5)
    for k in (10, 40):
        x = separated_subset(2 * k, int(16 * np.log(2 * k)) + 1, generator)
        loss = covariance_loss(x, spectral_tree(x, 2))
        assert proposition_3_14(k).value <= loss <= theorem_1_2_equal(k).value
    for n, p, r in ((500, 3, 5), (2000, 20, 10)):
        x = in_unit_ball(generator, n, p)
        loss = covariance_loss(x, spectral_tree(x, r))
        assert loss <= theorem_1_2_equal(n // r).value
        assert loss < 0.7 * np.linalg.norm(np.cov(x.T))  # far from idle


def weighted_loss(X, labels, weights):
    return blocks.covariance_loss(X, labels, blocks.shares(len(X), weights))


def test_weights_move_the_cuts_and_not_the_sizes():
    """Heavy rows spread along two axes, light ones along six others: directions that ignore weights cut the wrong ones."""
    generator = np.random.default_rng(6)
    X = np.vstack([generator.standard_normal((800, 8)) * np.repeat(scale, [2, 6]) for scale in ([1, 0.1], [0.1, 3])])
    weights = np.repeat([200.0, 1.0], 800)
    for r in (200, 400):
        aware, blind = spectral_tree(X, r, weights=weights), spectral_tree(X, r)
        assert np.bincount(aware).tolist() == np.bincount(blind).tolist()
        assert weighted_loss(X, aware, weights) < 0.8 * weighted_loss(X, blind, weights)
    equal = spectral_tree(X, 20), spectral_tree(X, 20, weights=np.full(1600, 7.0))
    assert weighted_loss(X, equal[1], None) == pytest.approx(weighted_loss(X, equal[0], None), rel=0.02)


def test_weights_survive_the_cuts_of_large_nodes(monkeypatch):
    generator = np.random.default_rng(7)
    X, weights = generator.standard_normal((900, 3)), generator.gamma(0.5, 1, 900) + 0.01
    whole = spectral_tree(X, 30, weights=weights)
    monkeypatch.setattr(module, "CACHE_ENTRIES", 500)
    parts = spectral_tree(X, 30, weights=weights)
    assert np.bincount(parts).min() >= 30
    assert weighted_loss(X, parts, weights) == pytest.approx(weighted_loss(X, whole, weights), rel=0.1)


# docs/proofs/tree.md: what median cuts along principal directions are sure to gain, and cuts that do not gain it.


def inner(x, labels):
    """E(X − Y)(X − Y)ᵀ, the covariance that is left inside the groups."""
    away = x - conditional_expectation(x, labels)
    return away.T @ away / len(x)


def rows_of(kind, generator, n=512, p=4):
    if kind == "far corners":  # rare and far: a median cut gains least
        x = 0.02 * generator.standard_normal((n, p))
        far = generator.random(n) < 0.1
        x[far] = np.eye(p)[generator.integers(0, p, far.sum())] * generator.choice([-1, 1], (far.sum(), 1))
    elif kind == "bits":
        x = generator.integers(0, 2, (n, p)) / np.sqrt(p)
    else:
        x = generator.standard_normal((n, p)) * generator.random(p)
    return x / max(1.0, np.linalg.norm(x, axis=1).max())


def each_level_gains(x, levels):
    """The inequality of the proof at every level: the trace falls by at least λ₁²/4."""
    W = [inner(x, median_tree(x, level)) for level in range(levels + 1)]
    return all(
        before.trace() - after.trace() >= np.linalg.eigvalsh(before)[-1] ** 2 / 4 - 1e-12
        for before, after in pairwise(W)
    )


@pytest.mark.parametrize("kind", ["far corners", "bits", "cloud"])
def test_each_level_gains_what_the_proof_says_and_the_loss_keeps_its_bound(kind):
    x = rows_of(kind, np.random.default_rng(1))
    assert each_level_gains(x, 6)
    for levels in (1, 3, 6):
        labels = median_tree(x, levels)
        assert np.bincount(labels).tolist() == [len(x) >> levels] * (1 << levels)
        assert covariance_loss(x, labels) <= bounds.median_tree(1 << levels).value


def random_halves(rows, node):
    order = np.random.default_rng(len(node)).permutation(node)
    return order[: len(node) // 2], order[len(node) // 2 :]


def last_direction(rows, node):
    away = rows[node] - rows[node].mean(axis=0)
    order = node[np.argsort(away @ np.linalg.eigh(away.T @ away)[1][:, 0], kind="stable")]
    return order[: len(node) // 2], order[len(node) // 2 :]


@pytest.mark.parametrize("wrong", [random_halves, last_direction])
def test_other_cuts_do_not_gain_it(wrong, monkeypatch):
    monkeypatch.setattr(groups, "_median_halves", wrong)
    x = np.repeat([[0.9, 0.0], [-0.9, 0.0]], 256, axis=0) + [0, 1e-3] * np.random.default_rng(2).standard_normal(
        (512, 2)
    )
    x = np.random.default_rng(3).permutation(x)
    assert not each_level_gains(x, 3)
    assert covariance_loss(x, median_tree(x, 3)) > bounds.median_tree(8).value


def inside(points, labels):
    """Sum of squares inside groups."""
    return sum(((points[labels == g] - points[labels == g].mean(axis=0)) ** 2).sum() for g in np.unique(labels))


@settings(max_examples=60)
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

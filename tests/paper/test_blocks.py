from itertools import combinations, combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.engine.bodies import ProductOfSimplices, l1_radius
from covey.engine.points import WeightedPoints, bootstrap, one_hot, round_bits, round_categories, spread_copies
from covey.paper import blocks
from covey.paper.blocks import BlockSums, block_sums, damped_means, project_weights


def damped(rows, labels, count, b):
    return damped_means(block_sums(rows, labels, count), b)


@pytest.mark.parametrize("b", [0.4, 1.0, 1.5, 2.0, 2.5, 3.7, 6.0])
def test_lemmas_5_10_and_5_11_by_exhaustive_neighbours(b):
    """Every Boolean table of up to 4 rows × 2 columns in 2 cells, every replaced row, non-integer b included."""
    values = [(0, 0), (0, 1), (1, 0), (1, 1)]
    records = [(value, label) for value in values for label in range(2)]
    worst = 0.0
    for n in (1, 2, 3, 4):
        for others in combinations_with_replacement(records, n - 1):
            means = []
            for record in records:
                rows, labels = zip(record, *others, strict=True)
                means.append(damped(np.array(rows), np.array(labels), 2, b))
            for one in means:
                for other in means:
                    change = np.abs(one - other).sum(axis=1)
                    assert change.max() <= 2 / b * 2 + 1e-12  # Lemma 5.10 in ℓ1: (2/b)·max‖x‖₁, ‖x‖₁ ≤ p = 2
                    worst = max(worst, change.sum())
    assert worst <= 2 * 2 / b + 1e-12  # docs/proofs/damping.md: the cube needs only 2p/b in all
    if b <= 1:
        assert worst == pytest.approx(2 * 2 / max(b, 1))  # attained: the bound cannot be lowered there


@pytest.mark.parametrize("b", [0.7, 1.5, 3.0])
def test_one_hot_rows_move_by_their_own_l1_norm(b):
    """q = 2 attributes of 2 categories: all damped means move by 4q/b at most, where the paper has 4√p·√q/b."""
    body = ProductOfSimplices([2, 2])
    allowed = 4 * l1_radius(body) / b
    assert allowed < 4 * np.sqrt(body.dimension) * body.radius / b
    records = [(a, c, label) for a in range(2) for c in range(2) for label in range(2)]
    eye = np.eye(2)

    def means(chosen):
        rows = np.array([np.r_[eye[a], eye[c]] for a, c, _ in chosen])
        return damped(rows, np.array([label for *_, label in chosen]), 2, b)

    for others in combinations_with_replacement(records, 2):
        all_means = [means([record, *others]) for record in records]
        for one in all_means:
            for other in all_means:
                assert np.abs(one - other).sum() <= allowed
    # Half of that, which suffices in a box, is too little here: a row leaves three of another kind for three of another kind.
    crowd = [(0, 0, 0)] * 3 + [(0, 0, 1)] * 3
    moved = np.abs(means([(1, 1, 0), *crowd]) - means([(1, 1, 1), *crowd])).sum()
    assert moved <= allowed
    assert b < 3 or moved > allowed / 2


@given(st.integers(0, 2**32 - 1), st.integers(1, 40))
def test_block_sums_count_every_row_once_and_merge(seed, n):
    generator = np.random.default_rng(seed)
    X, labels = generator.integers(0, 2, (n, 3), dtype=np.uint8), generator.integers(0, 4, n)
    whole = block_sums(X, labels, 6)
    assert whole.sizes.tolist() == np.bincount(labels, minlength=6).tolist()
    assert (whole.sums.sum(axis=0) == X.sum(axis=0)).all()
    cut = n // 2
    parts = block_sums(X[:cut], labels[:cut], 6) + block_sums(X[cut:], labels[cut:], 6)
    assert (parts.sums == whole.sums).all()
    assert (parts.sizes == whole.sizes).all()


def test_integer_rows_beyond_bits_are_summed_exactly():
    X = np.full((3, 2), (1 << 20) + 1, dtype=np.int64)
    assert block_sums(X.astype(float), np.zeros(3, dtype=int), 1).sums.tolist() == [[3 * ((1 << 20) + 1)] * 2]


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=8), st.integers(0, 2**32 - 1))
def test_project_weights_is_a_nearest_point_of_the_simplex_in_l1(w, seed):
    w = np.array(w)
    projected = project_weights(w)
    assert projected.min() >= 0
    assert projected.sum() == pytest.approx(1)
    if (w > 0).any():
        others = np.random.default_rng(seed).dirichlet(np.full(len(w), 0.3), 200)
        assert np.abs(projected - w).sum() <= np.abs(others - w).sum(axis=1).min() + 1e-9


@pytest.mark.parametrize("w", [[0.0, 0.0], [-1.0, 0.0, -2.0], [-5.0]])
def test_without_a_positive_weight_the_answer_is_uniform(w):
    assert project_weights(np.array(w)).tolist() == [1 / len(w)] * len(w)


def test_empty_blocks_have_zero_damped_mean():
    blocks = BlockSums(np.array([0, 5]), np.array([[0.0], [5.0]]))
    assert damped_means(blocks, 2.0).tolist() == [[0.0], [1.0]]


def test_lemma_4_7_rounding_is_unbiased_off_the_diagonal():
    generator = np.random.default_rng(0)
    y = np.array([[0.0, 1.0, 0.5, 0.123, 0.9995, 1 / 512]])
    m = 400_000
    z = round_bits(y, np.zeros(m, dtype=np.int64), generator).astype(float)
    for d in (1, 2, 3):
        for subset in combinations(range(6), d):
            expected = y[0, list(subset)].prod()
            error = np.sqrt(max(expected * (1 - expected), 1e-12) / m)
            assert abs(z[:, subset].prod(axis=1).mean() - expected) < 5 * error + 1e-12
    chosen = round_bits(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([0, 1, 1, 0]), generator)
    assert chosen.tolist() == [[0, 1], [1, 0], [1, 0], [0, 1]]
    # Cutting a probability to its first binary digit instead would be noticed.
    assert abs(z[:, 3].mean() - np.floor(0.123 * 256) / 256) > 4 * np.sqrt(0.123 * 0.877 / m)


def test_lemma_4_3_bootstrapping_error_is_at_most_one_over_m():
    generator = np.random.default_rng(1)
    points = generator.standard_normal((9, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    weights = generator.dirichlet(np.ones(9)) * (np.arange(9) % 4 > 0)
    weights /= weights.sum()
    cloud = WeightedPoints(weights, points)
    assert set(bootstrap(cloud, 10_000, generator)) == set(np.flatnonzero(weights))  # no point without weight is drawn
    for d in (1, 2, 3):
        tensor = points
        for _ in range(d - 1):
            tensor = (tensor[:, :, None] * points[:, None, :]).reshape(9, -1)
        exact = weights @ tensor
        for m in (1, 10, 100):
            errors = [np.sum((tensor[bootstrap(cloud, m, generator)].mean(axis=0) - exact) ** 2) for _ in range(2000)]
            # For points on the sphere the lemma is an equality: (1 − ‖E Y^{⊗d}‖²)/m.
            assert np.mean(errors) == pytest.approx((1 - exact @ exact) / m, rel=0.15)
            assert (1 - exact @ exact) / m <= 1 / m


def test_one_category_per_block_with_the_right_law():
    generator = np.random.default_rng(3)
    points = np.array([[0.2, 0.5, 0.3, 1.0, 0.25, 0.75], [1.0, 0.0, 0.0, 1.0, 1.0, 0.0]])
    sizes = [3, 1, 2]
    chosen = generator.integers(0, 2, 60_000)
    codes = round_categories(points, chosen, sizes, generator)
    rows = one_hot(codes, sizes)
    assert (rows[:, :3].sum(axis=1) == 1).all()
    assert (rows[:, 3] == 1).all()
    for j in range(2):
        np.testing.assert_allclose(rows[chosen == j].mean(axis=0), points[j], atol=0.012)
    first = rows[chosen == 0]
    assert np.mean(first[:, 0] * first[:, 5]) == pytest.approx(0.2 * 0.75, abs=0.01)  # blocks are independent


def test_copies_are_spread_and_common_values_stay():
    generator = np.random.default_rng(2)
    points = np.column_stack([generator.standard_normal(200), generator.integers(0, 3, 200).astype(float)])
    rows = np.repeat(points, 20, axis=0)
    spread = spread_copies(rows, generator)
    assert len(np.unique(spread[:, 0])) > 3900 > 200
    assert np.array_equal(spread[:, 1], rows[:, 1])
    assert np.abs(np.sort(spread[:, 0]) - np.sort(rows[:, 0])).max() < np.diff(np.sort(points[:, 0])).max()
    assert abs(np.corrcoef(spread.T)[0, 1] - np.corrcoef(rows.T)[0, 1]) < 0.01
    shuffled = generator.permuted(rows, axis=0)  # spreads copies as well, and loses what columns share
    tied = np.column_stack([points[:, 0], points[:, 0] ** 3])
    wide = spread_copies(np.repeat(tied, 20, axis=0), generator)
    assert np.corrcoef(wide.T)[0, 1] > 0.7 > abs(np.corrcoef(shuffled.T)[0, 1])


def test_coordinates_have_the_inner_products_and_the_spectrum():
    X = np.random.default_rng(1).standard_normal((60, 4)) * [2, 1, 0.5, 0.1]
    Z = blocks.coordinates(X @ X.T)
    assert Z.shape == (60, 4)
    np.testing.assert_allclose(Z @ Z.T, X @ X.T, atol=1e-10)
    np.testing.assert_allclose(np.diag(Z.T @ Z), np.sort(np.linalg.eigvalsh(X.T @ X))[::-1])

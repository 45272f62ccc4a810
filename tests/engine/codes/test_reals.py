import numpy as np
import pytest

from covey.engine.codes.counts import (
    CODE_BITS,
    UNIT,
    RealGrid,
    Spread,
    length_counts,
    moment_sums,
    moments,
    scale_sums,
    scaled_moments,
    squares_of,
)
from covey.engine.codes.distance import moment_distances
from covey.engine.noise.sensitivity import ball_sensitivity
from covey.engine.points import WeightedPoints

TOP = (1 << CODE_BITS) - 1
GRID = RealGrid.of(np.array([-1.0, 5.0, 0.0]), np.array([3.0, 5.0, 1.0]))  # the second column cannot differ


def rough(n, p, seed=0):
    """Codes of all sizes, bounds included."""
    codes = np.random.default_rng(seed).integers(0, TOP + 1, (n, p))
    codes[0], codes[1] = 0, TOP
    return codes.astype(np.int32)


def test_codes_come_from_their_own_number_and_find_back():
    x = np.random.default_rng(0).uniform([-1, 5, 0], [3, 5, 1], (200, 3))
    codes = GRID.codes(x)
    assert codes.shape == (200, 2)
    assert (codes == np.concatenate([GRID.codes(row[None]) for row in x])).all()
    np.testing.assert_allclose(GRID.points(codes / 2**CODE_BITS), x, atol=4 / 2**CODE_BITS)
    np.testing.assert_allclose(GRID.points(GRID.scaled(x)), x)
    wild = GRID.codes(np.array([[-1e300, 5, np.inf], [3, 5, np.nan]]))
    assert wild.min() >= 0
    assert wild.max() <= TOP


@pytest.mark.parametrize("p", [1, 3, 40])
def test_no_row_leaves_the_ball_and_rows_inside_are_not_touched(p):
    spread = Spread(np.full(p, 3000), np.full(p, 1 << 9), int(2.5 * p * UNIT**2))
    codes = rough(500, p)
    codes[2:60] = 3000 + np.arange(58)[:, None]
    u = spread.encode(codes)
    assert (u == np.trunc(u)).all()
    exact = (u.astype(object) ** 2).sum(axis=1)
    assert max(exact) <= spread.radius_squared < ((spread.rows(codes).astype(object) ** 2).sum(axis=1)).max()
    assert (u[2:60] == spread.rows(codes)[2:60]).all()
    assert min(exact[100:]) > 0.9 * spread.radius_squared  # cut rows are not shorter than they need be


def test_sums_are_exact_and_the_same_in_any_batch():
    spread = Spread(np.array([7, 500_000]), np.array([1 << 8, 1 << 18]), 9 * UNIT**2)
    codes = rough(40_000, 2, seed=1)
    u = spread.encode(codes).astype(np.int64)
    whole = moment_sums(codes, spread)
    parts = moment_sums(codes[:123], spread) + moment_sums(codes[123:], spread)
    assert (squares_of(whole) == u.T @ u).all()
    assert (squares_of(parts) == u.T @ u).all()
    assert (whole.integers()[0] == u.sum(axis=0)).all()
    wide = codes.astype(object)
    assert (squares_of(moment_sums(codes)) == (wide.T @ wide).astype(np.int64)).all()


def test_lengths_are_counted_once_each():
    spread, edges = Spread(np.array([0, 0]), np.array([1 << 18] * 2), 0), np.array([UNIT**2, 4 * UNIT**2])
    codes = np.array([[0, 0], [1 << 18, 0], [1 << 19, 0], [TOP, TOP]], dtype=np.int32)
    assert length_counts(codes, spread, edges).integers()[0].tolist() == [2, 1, 1]


def test_how_far_one_row_moves_the_moments():
    """½‖uuᵀ − vvᵀ‖² + w‖u − v‖² ≤ (R² + w)² and the trace by 2(R² + a²): both nearly attained, so that half is rejected."""
    generator = np.random.default_rng(2)
    p, R2, w = 3, 1.0, 0.22
    worst = [0.0, 0.0]
    for _ in range(4000):
        u, v = generator.standard_normal((2, p))
        u, v = u / np.linalg.norm(u), v / np.linalg.norm(v)
        D = np.outer(u, u) - np.outer(v, v)
        worst[0] = max(worst[0], (D**2).sum() / 2 + w * ((u - v) ** 2).sum())
        a = np.sqrt(1 / 3)
        h, k = np.r_[a, u], np.r_[a, v]
        worst[1] = max(worst[1], np.abs(np.linalg.eigvalsh(np.outer(h, h) - np.outer(k, k))).sum())
    assert 0.95 < worst[0] / float(ball_sensitivity(R2, w)) <= 1
    assert 0.95 < worst[1] / (2 * (R2 + 1 / 3)) <= 1


def test_scales_add_less_than_1024_each():
    codes = rough(2000, 4, seed=3)
    each = np.array([scale_sums(row[None]).integers()[0] for row in codes])
    assert each.min() == 0
    assert each.max() == UNIT - 1
    assert (scale_sums(codes).integers()[0] == each.sum(axis=0)).all()
    x = codes / 2**CODE_BITS
    np.testing.assert_allclose(each.sum(axis=0) / UNIT, np.r_[x.sum(axis=0), (x * x).sum(axis=0)], atol=2.0)


def test_distances_move_by_at_most_1_over_n_and_numbers_of_two_signs_would_not():
    generator = np.random.default_rng(4)
    cloud = WeightedPoints(np.full(7, 1 / 7), generator.random((7, 3)))
    codes = rough(30, 3, seed=5)
    first = moment_distances(scaled_moments(moment_sums(codes), 30), cloud)
    scaled = codes / 2**CODE_BITS
    for d, value in moment_distances(moments(scaled), cloud).items():
        assert value == pytest.approx(first[d], abs=1e-9)
    largest = 0.0
    for row in rough(40, 3, seed=6):
        other = codes.copy()
        other[3] = row
        second = moment_distances(scaled_moments(moment_sums(other), 30), cloud)
        largest = max(largest, *(abs(second[d] - first[d]) for d in first))
    assert largest <= 1 / 30
    # Between −1 and 1 one row can move a product, and so its distance, by twice that.
    one, two = np.zeros((30, 2)), np.zeros((30, 2))
    one[0], two[0] = [1, 1], [1, -1]
    far = WeightedPoints(np.ones(1), np.array([[0.9, -0.9]]))
    gaps = [moment_distances(moments(z), far)[2] for z in (one, two)]
    assert abs(gaps[0] - gaps[1]) > 1.9 / 30

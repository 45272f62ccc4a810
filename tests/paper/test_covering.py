import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covey.paper import covariance_loss
from covey.paper.bounds import proposition_3_7
from covey.paper.covering import LatticeCovering, equipartition, nearest_point_partition

GRID = [(t, alpha) for t in (1, 2, 3, 4, 5) for alpha in (0.35, 0.5, 0.52, 0.75, 0.99, 1.0, 1.7)]


def ball(generator, n, t):
    x = generator.standard_normal((n, t))
    return x / np.linalg.norm(x, axis=1, keepdims=True) * generator.random((n, 1)) ** (1 / t)


@pytest.mark.parametrize(("t", "alpha"), GRID)
def test_proposition_3_7_count_and_covering_radius(t, alpha):
    covering = LatticeCovering(t, alpha)
    points = covering.points()
    assert len(points) == covering.size <= proposition_3_7(t, alpha).value
    if alpha < 1:
        assert covering.size <= (7 / alpha) ** t
    assert np.linalg.norm(points, axis=1).max() <= 1 + 1e-12
    z = np.rint(points / covering.step).astype(np.int64)
    assert ((z**2).sum(axis=1) <= covering.budget).all()
    assert (covering.number(z) == np.arange(covering.size)).all()
    # The worst places are on the sphere: random directions and the diagonals.
    generator = np.random.default_rng(t)
    x = ball(generator, 2000, t)
    x = np.vstack([x, x / np.linalg.norm(x, axis=1, keepdims=True), np.ones((1, t)) / np.sqrt(t)])
    assert np.linalg.norm(x - points[covering.assign(x)], axis=1).max() < alpha


@pytest.mark.parametrize(("t", "alpha"), [(t, a) for t, a in GRID if LatticeCovering(t, a).size < 5000])
def test_assignment_is_the_nearest_point(t, alpha):
    covering = LatticeCovering(t, alpha)
    generator = np.random.default_rng(t + 10)
    x = np.vstack([ball(generator, 1500, t), 1.05 * ball(generator, 500, t)])
    points = covering.points()
    brute = nearest_point_partition(x, points)
    fast = covering.assign(x)
    distance = np.linalg.norm(x - points[fast], axis=1) - np.linalg.norm(x - points[brute], axis=1)
    assert distance.max() < 1e-12
    assert (fast == brute).mean() > 0.999


def test_nearest_point_in_the_ball_may_lie_two_steps_below_the_rounded_one():
    # y = (4, 0.8 × 19): giving up one step of the long coordinate pays for nineteen short ones.
    t, budget = 20, 28.16
    covering = LatticeCovering.__new__(LatticeCovering)
    vars(covering).update(t=t, budget=int(budget), reach=5)
    assert covering._nearest_inside(np.array([[4.0] + [0.8] * 19])).tolist() == [[3] + [1] * 19]


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_a_record_keeps_its_cell_in_any_batch(seed):
    generator = np.random.default_rng(seed)
    covering = LatticeCovering(3, 0.6)
    x = np.round(ball(generator, 40, 3) * 8) / 8  # many ties
    whole = covering.assign(x)
    order = generator.permutation(len(x))
    assert (covering.assign(x[order]) == whole[order]).all()
    assert (np.concatenate([covering.assign(row[None]) for row in x]) == whole).all()


def test_no_dimension_means_one_cell():
    covering = LatticeCovering(0, 1.0)
    assert covering.size == 1
    assert covering.assign(np.zeros((5, 0))).tolist() == [0] * 5
    assert covering.points().shape == (1, 0)


@given(st.integers(1, 200), st.integers(1, 60), st.integers(1, 30), st.integers(0, 2**32 - 1))
def test_no_group_is_below_the_size(n, r, cells, seed):
    labels = np.random.default_rng(seed).integers(0, cells, n)
    k = n // min(r, n)
    sizes = np.bincount(equipartition(labels, k))
    assert len(sizes) == k
    assert sizes.sum() == n
    assert set(sizes) <= {n // k, -(-n // k)}


@given(st.integers(2, 200), st.integers(1, 40), st.integers(1, 30), st.integers(0, 2**32 - 1))
def test_groups_of_weighted_records_have_equal_mass_up_to_one_record(n, k, cells, seed):
    """Groups of equal numbers of records, which ignore the weights, are further off than one record's weight."""
    generator = np.random.default_rng(seed)
    labels, weights = generator.integers(0, cells, n), generator.random(n) + 0.01
    weights /= weights.sum()
    mass = np.bincount(equipartition(labels, min(k, n), weights), weights, minlength=min(k, n))
    assert np.abs(mass - 1 / min(k, n)).max() <= weights.max() + 1e-12


@given(st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_whole_groups_stay_within_their_cell(r, seed):
    labels = np.random.default_rng(seed).integers(0, 5, 120)
    k = 120 // r
    groups = equipartition(labels, k)
    whole = sum(int(size) // -(-120 // k) for size in np.bincount(labels))
    pure = sum(len(set(labels[groups == g])) == 1 for g in range(k))
    assert pure >= whole


def test_section_3_6_costs_at_most_the_residual_probability():
    generator = np.random.default_rng(0)
    for _ in range(30):
        x = generator.random((240, 3)) / np.sqrt(3)
        labels = generator.integers(0, 6, 240)
        residual = sum(int(size) % 8 for size in np.bincount(labels)) / 240
        assert covariance_loss(x, equipartition(labels, 30)) <= covariance_loss(x, labels) + residual


def test_section_5_4_one_record_can_move_every_equal_group_but_only_two_cells():
    """The footnote on why Algorithm 4 does not use equal groups."""
    cells = np.zeros(60, dtype=np.int64)
    changed = cells.copy()
    changed[0] = 1
    before, after = equipartition(cells, 6), equipartition(changed, 6)
    members = [frozenset(np.flatnonzero(before == g)) for g in range(6)]
    assert not set(members) & {frozenset(np.flatnonzero(after == g)) for g in range(6)}
    assert (np.bincount(cells, minlength=2) != np.bincount(changed, minlength=2)).sum() == 2


def test_ties_go_to_the_lowest_number():
    points = np.array([[1.0], [0.0], [2.0]])
    assert nearest_point_partition(np.array([[0.5], [1.5], [9.0]]), points).tolist() == [0, 0, 2]

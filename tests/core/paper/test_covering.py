import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covey.core.paper.covering import LatticeCovering, nearest_point_partition
from covey.errors import ParameterError
from covey.privacy.bounds import proposition_3_7

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
    assert len(np.unique(np.rint(points / covering.step), axis=0)) == covering.size
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


@given(st.sampled_from([(1, 0.2), (2, 0.3), (3, 0.5), (6, 0.9)]), st.integers(0, 2**32 - 1))
def test_numbering_is_a_bijection(shape, seed):
    covering = LatticeCovering(*shape)
    numbers = np.random.default_rng(seed).integers(0, covering.size, 20)
    z = covering.lattice_points(numbers)
    assert ((z**2).sum(axis=1) <= covering.budget).all()
    assert (covering.number(z) == numbers).all()


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


@pytest.mark.parametrize(("t", "alpha"), [(-1, 0.5), (2, 0.0), (2, -1.0), (2, float("nan")), (2, float("inf"))])
def test_wrong_parameters_are_refused(t, alpha):
    with pytest.raises(ParameterError):
        LatticeCovering(t, alpha)


@pytest.mark.parametrize(("t", "alpha"), [(60, 0.3), (2, 1e-7), (1, 1e-9), (300, 0.9)])
def test_too_many_cells_are_refused_before_anything_is_allocated(t, alpha):
    with pytest.raises(ParameterError, match=r"larger alpha"):
        LatticeCovering(t, alpha)

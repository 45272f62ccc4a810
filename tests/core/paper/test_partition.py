import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from covey.core.paper.partition import equipartition, nearest_point_partition
from covey.core.tables.marginals import covariance_loss


@given(st.integers(1, 200), st.integers(1, 60), st.integers(1, 30), st.integers(0, 2**32 - 1))
def test_no_group_is_below_the_size(n, r, cells, seed):
    labels = np.random.default_rng(seed).integers(0, cells, n)
    r = min(r, n)
    sizes = np.bincount(equipartition(labels, r))
    assert len(sizes) == n // r
    assert sizes.sum() == n
    assert sizes.min() >= r
    assert (sizes[:-1] == r).all()  # only one set is larger than the others
    if n % r == 0:
        assert (sizes == r).all()


@given(st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_whole_groups_stay_within_their_cell(r, seed):
    labels = np.random.default_rng(seed).integers(0, 5, 120)
    groups = equipartition(labels, r)
    whole = sum(int(size) // r for size in np.bincount(labels))
    pure = sum(len(set(labels[groups == g])) == 1 for g in np.unique(groups))
    assert pure >= whole - 1  # the last whole group may have taken the leftover rows


def test_section_3_6_costs_at_most_the_residual_probability():
    generator = np.random.default_rng(0)
    for _ in range(30):
        x = generator.random((240, 3)) / np.sqrt(3)
        labels = generator.integers(0, 6, 240)
        residual = sum(int(size) % 8 for size in np.bincount(labels)) / 240
        assert covariance_loss(x, equipartition(labels, 8)) <= covariance_loss(x, labels) + residual


def test_ties_go_to_the_lowest_number():
    points = np.array([[1.0], [0.0], [2.0]])
    assert nearest_point_partition(np.array([[0.5], [1.5], [9.0]]), points).tolist() == [0, 0, 2]

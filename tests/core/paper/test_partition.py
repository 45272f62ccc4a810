import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from covey.core.paper.covering import equipartition, nearest_point_partition
from covey.core.tables.distance import covariance_loss


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


def test_groups_that_ignore_weights_have_unequal_mass():
    labels, weights = np.repeat([0, 1], 50), np.r_[np.full(50, 0.018), np.full(50, 0.002)]
    for given_weights, fair in ((weights, True), (None, False)):
        mass = np.bincount(equipartition(labels, 5, given_weights), weights, minlength=5)
        assert (np.abs(mass - 0.2).max() <= weights.max() + 1e-12) == fair


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

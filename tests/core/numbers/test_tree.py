import numpy as np
import pytest

from covey.core.numbers.grid import FINEST, NumberGrid
from covey.core.numbers.tree import Tree, upward
from tests.core.numbers.growing import grown, incomes


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    "grid", [NumberGrid(1), NumberGrid(3, 2), NumberGrid(1000, 1, (1, 500)), NumberGrid(10**6), NumberGrid(FINEST, 1)]
)
def test_every_frontier_is_a_partition_of_all_codes(grid, seed):
    generator = np.random.default_rng(seed)
    codes = np.minimum(generator.geometric(0.001, 500), grid.size) - 1
    tree = Tree(grid, 500)
    for _ in range(grid.rounds + 1):
        edges = tree.edges
        assert edges[0] == 0
        assert edges[-1] == grid.size
        assert (np.diff(edges) > 0).all()
        assert (tree.stop[tree.frontier] == edges[1:]).all()  # nothing overlaps: a joined run never spans a split one
        assert np.isin(grid.single, edges[:-1]).all()
        counts = np.diff(np.searchsorted(np.sort(codes), edges))
        assert counts.sum() == 500
        tree.see(counts + generator.integers(-4, 5, len(counts)), 4.0)
        tree.grow()


def test_parents_contain_their_children_and_children_tile_their_parents():
    tree = grown(incomes(5000, 1), NumberGrid(10**7), 15.0, np.random.default_rng(2))
    nodes = upward(tree)
    for parent, children in enumerate(nodes.children):
        if len(children):
            assert nodes.start[children[0]] == nodes.start[parent]
            assert nodes.stop[children[-1]] == nodes.stop[parent]
            assert (nodes.start[children[1:]] == nodes.stop[children[:-1]]).all()


def test_a_tree_stays_small_however_small_the_noise():
    codes = np.random.default_rng(3).integers(0, 10**9, 50_000)
    tree = grown(codes, NumberGrid(10**9), 1e-3, np.random.default_rng(4))
    assert len(tree.frontier) < 16 * 2000


def test_special_and_declared_values_are_measured_in_every_round():
    grid = NumberGrid(10**6, 2, (2, 1000))
    tree = grown(np.zeros(100, np.int64), grid, 5.0, np.random.default_rng(5))
    own = np.isin(tree.start, grid.single) & (tree.stop == tree.start + 1)
    assert tree.times[own].tolist() == [grid.rounds] * 4


def test_upward_counts_are_least_squares_on_the_tree():
    codes = incomes(20_000, 6)
    tree = grown(codes, NumberGrid(10**7), 30.0, np.random.default_rng(7))
    nodes = upward(tree)
    leaves = np.array([j for j, c in enumerate(nodes.children) if not len(c)])
    seen = np.flatnonzero(tree.times > 0)
    inside = (nodes.start[leaves] >= nodes.start[seen][:, None]) & (nodes.stop[leaves] <= nodes.stop[seen][:, None])
    weight = np.sqrt(tree.times[seen])
    best = np.linalg.lstsq(inside * weight[:, None], tree.total[seen] / tree.times[seen] * weight, rcond=None)[0]
    assert nodes.count[0] == pytest.approx(best.sum(), abs=1e-6 * len(codes))
    top = nodes.children[0]
    summed = [best[(nodes.start[leaves] >= nodes.start[j]) & (nodes.stop[leaves] <= nodes.stop[j])].sum() for j in top]
    np.testing.assert_allclose(nodes.count[top], summed, atol=1e-3)


def test_counts_from_below_have_the_variance_they_say():
    """A node's own count alone, which a wrong program would use, has several times that variance."""
    codes, grid = incomes(20_000, 8), NumberGrid(10**7)
    z, own = [], []
    for seed in range(40):
        tree = grown(codes, grid, 25.0, np.random.default_rng(seed))
        nodes = upward(tree)
        true = np.searchsorted(np.sort(codes), nodes.stop) - np.searchsorted(np.sort(codes), nodes.start)
        top = nodes.children[0][0]
        z.append((nodes.count[top] - true[top]) / np.sqrt(nodes.variance[top]))
        own.append((tree.total[top] / tree.times[top] - true[top]) / np.sqrt(nodes.variance[top]))
    assert 0.6 < np.std(z) < 1.4
    assert np.std(own) > np.std(z)

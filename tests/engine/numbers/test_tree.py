import numpy as np
import pytest

from covey.engine.numbers import tree as consistency
from covey.engine.numbers.grid import FINEST, Measure, NumberGrid
from covey.engine.numbers.tree import Family, Tree, even_measure, slopes, tree_measure, upward
from tests.engine.numbers.growing import grown, incomes


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


def mean(measure: Measure):
    return float(measure.share @ (measure.start + measure.stop - 1)) / 2


def measured(codes, grid, sd, seed, laplace=False):
    generator = np.random.default_rng(seed)
    return tree_measure(grown(codes, grid, sd, generator, laplace), laplace, generator)


def test_without_noise_the_measure_is_the_table():
    codes = np.random.default_rng(0).choice([0, 3, 17, 18, 900], 5000, p=[0.1, 0.2, 0.3, 0.3, 0.1])
    found = measured(codes, NumberGrid(1000), 0.0, 1)
    assert found.start.tolist() == [0, 3, 17, 18, 900]
    np.testing.assert_allclose(found.share, np.bincount(codes)[[0, 3, 17, 18, 900]] / 5000, atol=1e-9)


@pytest.mark.parametrize("laplace", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_shares_are_a_measure_whatever_the_noise(seed, laplace):
    for sd in (0.0, 3.0, 300.0, 1e5, 1e15):
        found = measured(incomes(3000, seed), NumberGrid(10**7, 1, (1,)), sd, seed, laplace)
        assert found.share.min() >= 0
        assert found.share.sum() == pytest.approx(1)
        assert (found.start[1:] >= found.stop[:-1]).all()
        assert found.start[0] >= 0
        assert found.stop[-1] <= found.grid.size


def test_generous_bounds_cost_next_to_nothing():
    """Bounds of ten million or of the largest income: the same mean. A program that keeps false tails is far off."""
    codes = incomes(20_000, 3)
    true, spread = codes.mean(), codes.std()
    errors = {}
    for top in (int(codes.max()) + 1, 10**7, 10**12):
        found = [mean(measured(codes, NumberGrid(top), 60.0, seed)) for seed in range(12)]
        errors[top] = np.sqrt(np.mean((np.array(found) - true) ** 2)) / spread
    assert max(errors.values()) < 0.06
    far = consistency.FAR
    try:
        consistency.FAR = {False: 0.0, True: 0.0}
        wrong = [mean(measured(codes, NumberGrid(10**12), 60.0, seed)) for seed in range(12)]
    finally:
        consistency.FAR = far
    assert np.sqrt(np.mean((np.array(wrong) - true) ** 2)) / spread > 0.5


def test_point_masses_come_back_and_an_even_prior_alone_loses_them():
    codes = np.random.default_rng(4).choice([0, 392_202, 450_000, 461_512], 20_000, p=[0.4, 0.3, 0.2, 0.1])
    grid = NumberGrid(500_001)

    def lost(**options):
        errors = []
        for seed in range(5):
            generator = np.random.default_rng(seed)
            tree = grown(codes, grid, 50.0, generator)
            nodes = consistency.upward(tree)
            measure = consistency._downward(
                tree, *consistency.empty_ends(tree, nodes, 3.1, 500_001), generator, **options
            )
            there = [measure.mass(np.array([v, v + 1]))[0] for v in (0, 392_202, 450_000, 461_512)]
            errors.append(np.abs(np.array(there) - [0.4, 0.3, 0.2, 0.1]).sum())
        return np.mean(errors)

    assert lost(draws=8) < 0.02
    assert lost(draws=0) > 1.3 * lost(draws=8)


def test_tails_fall_as_the_body_before_them_and_even_ones_spoil_the_mean(monkeypatch):
    """A lognormal tail lies in one wide range whose parts drown in noise."""
    codes = np.exp(np.random.default_rng(9).normal(11, 1.3, 20_000)).astype(np.int64)
    codes[np.random.default_rng(10).random(20_000) < 0.8] = 0
    grid = NumberGrid(10**9, 0, (0,))

    def off():
        found = [mean(measured(codes, grid, 90.0, seed)) for seed in range(8)]
        return np.sqrt(np.mean((np.array(found) - codes.mean()) ** 2)) / codes.std()

    assert off() < 0.06
    monkeypatch.setattr(consistency, "slopes", lambda start, stop, mass: np.zeros(len(mass)))
    assert off() > 0.09


def test_slopes_are_those_of_the_density():
    """Exponential: its rate, also beside a single value; even at a mode; where the only neighbour is empty; far codes."""
    edges = np.array([0, 10, 20, 40, 41, 60]) + 2**53 - 100
    start, stop = edges[[0, 1, 2, 4]], edges[[1, 2, 3, 5]]
    below = np.exp(-0.05 * (edges - edges[0]))
    found = slopes(start, stop, -np.diff(below)[[0, 1, 2, 4]])
    np.testing.assert_allclose(found[:3], -0.05, rtol=0.06)
    assert -0.07 < found[3] < -0.05  # as if the tail went on
    three = np.array([0, 10, 20]), np.array([10, 20, 30])
    assert slopes(*three, np.array([1.0, 5.0, 2.0]))[1] == 0
    assert slopes(*three, np.array([1.0, 0.0, 2.0])).tolist() == [0, 0, 0]
    up = slopes(*three, np.array([40.0, 8.0, 2.0]))
    np.testing.assert_allclose(up[2], -np.sqrt(np.log(4) / 10 * np.log(5) / 10))
    np.testing.assert_allclose(slopes(*three, np.array([2.0, 8.0, 40.0])), -up[::-1])
    assert np.abs(slopes(*three, np.array([1e-300, 1.0, 1e300])) * 10).max() == consistency.STEEPEST
    assert slopes(np.array([0]), np.array([1]), np.array([4.0])).tolist() == [0]


def test_siblings_share_out_exactly_what_their_parents_have():
    generator = np.random.default_rng(6)
    first = np.array([0, 5, 6, 20])
    family = Family(
        generator.uniform(1, 9, 30),
        np.array([10.0, 3.0, 500.0, 0.5]),
        generator.integers(1, 9, 30).astype(float),
        first,
        np.array([False, False, False, True]),
    )
    for draws in (0, 8):
        found = family.share_out(generator.normal(5, 10, 30), generator, draws)
        assert found.min() >= 0
        np.testing.assert_allclose(np.add.reduceat(found, first), family.total)


def test_projection_is_the_nearest_point():
    from scipy.optimize import minimize

    generator = np.random.default_rng(7)
    y, v = generator.normal(0, 5, 6), generator.uniform(1, 4, 6)
    family = Family(v, np.array([7.0]), np.ones(6), np.array([0]), np.array([False]))
    found = family.projected(y, v, np.ones(6, bool))
    best = minimize(
        lambda x: np.sum((x - y) ** 2 / v),
        np.full(6, 7 / 6),
        bounds=[(0, None)] * 6,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 7},
        options={"ftol": 1e-12},
    ).x
    np.testing.assert_allclose(found, best, atol=1e-4)


def test_where_noise_exceeds_the_table_a_number_is_even():
    found, even = measured(np.full(100, 7), NumberGrid(1000, 1), 1e4, 8), even_measure(NumberGrid(1000, 1))
    assert found.share.tolist() == even.share.tolist()
    assert found.stop.tolist() == [1, 1001]


def test_tails_of_counts_stay_near_the_body_and_leave_the_maximum_and_holes_alone(monkeypatch):
    def off(top):
        """Over seeds: the mean's error, the largest share of one value of the tail, shares at the maximum and missing."""
        found = []
        for seed in range(8):
            codes = np.random.default_rng(seed).negative_binomial(0.6, 0.15, 4000).clip(0, top - 1) + 1
            measure = measured(codes, NumberGrid(top, 1, (1, top)), 45.0, seed)
            share = measure.mass(np.arange(top + 2))
            found.append([mean(measure) - codes.mean(), share[6:].max(), share[-1], share[0]])
        return np.abs(found)

    now = off(200)
    assert now[:, 0].max() < 1.0
    assert now[:, 1].max() < 0.08
    assert now[:, 2].max() == 0
    assert (now[:, 3] > 0).sum() <= 1
    # A wrong program that empties the reach of the body too piles the tail up on one value; another keeps false holes.
    monkeypatch.setattr(consistency, "_near", lambda nodes, line, *_: len(line) - 1)
    assert off(200)[:, 1].max() > 0.15
    monkeypatch.setattr(consistency, "NONE", 0.0)
    assert (off(200)[:, 3] > 0).sum() > 1


def test_beside_a_value_that_most_have_a_range_is_its_tail():
    codes = np.repeat([1, 2, 3, 4], [920, 55, 20, 5])
    means = [mean(measured(codes, NumberGrid(61, 1, (1, 61)), 26.0, seed)) for seed in range(12)]
    assert max(means) - codes.mean() < 0.5  # evenly spread over the range, as it was, one mean in twelve is 2 too large

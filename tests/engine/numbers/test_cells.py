import numpy as np
import pytest

from covey.engine.numbers.grid import (
    CELLS,
    HEAVY,
    Measure,
    NumberGrid,
    category_bins,
    cell_bins,
    comparison_edges,
    kolmogorov_bound,
    make_cells,
    released_below,
    without_light,
)
from tests.engine.numbers.growing import incomes
from tests.engine.numbers.test_tree import measured


@pytest.fixture(params=[0, 1])
def measure(request):
    return measured(incomes(20_000, request.param) + 1, NumberGrid(10**7, 1, (1,)), 25.0, request.param)


def test_cells_tile_all_codes_and_have_about_equal_mass(measure):
    cells = make_cells(measure, cuts=(5000, 77_777))
    assert cells.edges[0] == 0
    assert cells.edges[-1] == measure.grid.size
    assert cells.share.sum() == pytest.approx(1)
    assert np.isin([5000, 77_777], cells.edges).all()
    assert len(cells.share) < 2.5 * CELLS
    assert (cells.share[~cells.alone] <= 1.5 / CELLS + 1e-9).all()
    zero = cells.of(np.array([1]))[0]
    assert cells.alone[zero]
    assert cells.share[zero] > HEAVY


def test_bins_respect_cuts_and_keep_heavy_values_and_specials_alone(measure):
    cells = make_cells(measure, cuts=(5000, 77_777))
    bins = cell_bins(cells, 0.1, cuts=(5000, 77_777))
    assert (np.diff(bins) >= 0).all()
    for cut in (5000, 77_777):
        at = int(np.searchsorted(cells.edges, cut))
        assert bins[at - 1] != bins[at]
    zero = cells.of(np.array([1]))[0]
    assert (bins == bins[zero]).sum() == 1
    assert (bins == bins[0]).sum() == 1
    assert cell_bins(cells, 0.1).max() < bins.max() + 1


def test_categories_that_rules_tell_apart_are_never_merged():
    share = np.full(40, 1 / 40)
    signature = np.arange(40) % 2
    for ordered in (True, False):
        bins = category_bins(share, ordered, 0.3, 0.05, 50, signature)
        for b in np.unique(bins):
            assert len(np.unique(signature[bins == b])) == 1
    assert len(np.unique(category_bins(share, False, 0.3, 0.05, 50, 0 * signature))) == 1


def test_values_follow_the_measure_inside_every_cell_better_than_chance():
    measure = Measure(NumberGrid(1000), np.array([0, 100, 500]), np.array([1, 110, 1000]), np.array([0.3, 0.3, 0.4]))
    cells = make_cells(measure)
    generator = np.random.default_rng(1)
    drawn = cells.of(measure.at((np.arange(5000) + 0.5) / 5000, np.zeros(5000, np.int64), np.full(5000, 1000)))
    codes = cells.values(drawn, generator)
    assert (cells.of(codes) == drawn).all()
    grid = np.arange(1001)

    def far(values):
        return np.abs(np.searchsorted(np.sort(values), grid) / len(values) - measure.below(grid)).max()

    assert far(codes) < 0.003
    uniform = cells.edges[drawn] + np.floor(generator.random(5000) * np.diff(cells.edges)[drawn])
    independent = measure.at(generator.random(5000), np.zeros(5000, np.int64), np.full(5000, 1000))
    assert far(independent) > 0.003
    assert (cells.of(uniform.astype(np.int64)) == drawn).all()


def test_a_cell_without_mass_gives_the_value_next_to_the_mass_and_never_the_maximum():
    measure = Measure(NumberGrid(100), np.array([20]), np.array([50]), np.array([1.0]))
    cells = make_cells(measure)
    above, below = cells.of(np.array([99, 0]))
    assert cells.share[[above, below]].tolist() == [0, 0]
    drawn = cells.values(np.repeat([above, below], 25), np.random.default_rng(2))
    assert np.unique(drawn).tolist() == [19, 50]  # drawn evenly, as it was, one of them was 99
    # The certificate's distribution function is that of these rows.
    share = np.zeros(len(cells.share))
    share[above] = 1.0
    assert released_below(cells, share, np.array([50, 51, 100])).tolist() == [0, 1, 1]


def test_light_runs_join_the_bins_beside_them_unless_a_wall_is_between():
    bins, share = np.array([0, 1, 1, 2, 3, 4]), np.array([0.0, 0.4, 0.1, 0.0, 0.5, 0.01])
    walls = np.array([True, True, False, False, False, False])
    assert without_light(bins, share, 0.02, walls).tolist() == [0, 1, 1, 1, 2, 2]  # the first is special: it stays
    assert without_light(bins, share, 0.02, np.zeros(6, dtype=bool)).tolist() == [0, 0, 0, 0, 1, 1]
    assert without_light(bins, share, 0.0, walls).tolist() == bins.tolist()
    assert without_light(np.array([0, 1]), np.array([1.0, 0.0]), 0.02, walls[1:3]).tolist() == [0, 1]


def counted(codes, edges):
    return np.diff(np.searchsorted(np.sort(codes), edges))


@pytest.mark.parametrize("seed", range(4))
def test_the_bound_is_never_below_the_distance_and_hardly_above_it(seed):
    codes = incomes(4000, seed)
    cells = make_cells(measured(codes, NumberGrid(10**7), 40.0, seed))
    edges = comparison_edges(cells)
    released = released_below(cells, cells.share, edges)
    fine = np.unique(np.concatenate([codes, codes + 1, edges]))
    true = np.searchsorted(np.sort(codes), fine) / len(codes)
    exact = np.abs(true - released_below(cells, cells.share, fine)).max()
    bound = kolmogorov_bound(counted(codes, edges), edges, released)
    assert exact <= bound + 1e-12
    assert bound < exact + 0.006


def test_one_replaced_record_moves_the_bound_by_at_most_one_nth():
    """And attains it: a certificate with half of that noise would not be private."""
    generator, n = np.random.default_rng(1), 60
    cells = make_cells(Measure(NumberGrid(1000), np.array([0, 400]), np.array([400, 1000]), np.array([0.7, 0.3])))
    edges = np.array([0, 1, 100, 400, 700, 701, 1000])
    moved = []
    for _ in range(2000):
        codes = generator.choice([0, 50, 300, 700, 900], n)
        other = codes.copy()
        other[0] = generator.integers(0, 1000)
        released = released_below(cells, generator.dirichlet(np.ones(len(cells.share))), edges)
        one, two = (kolmogorov_bound(counted(own, edges), edges, released) for own in (codes, other))
        moved.append(abs(one - two))
    assert max(moved) <= 1 / n + 1e-12
    assert max(moved) == pytest.approx(1 / n)

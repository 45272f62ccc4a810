import numpy as np
import pytest

from covey.core.numbers.cells import comparison_edges, kolmogorov_bound, make_cells, released_below
from covey.core.numbers.grid import Measure, NumberGrid
from tests.core.numbers.growing import incomes
from tests.core.numbers.test_consistency import measured


def counted(codes, edges):
    return np.diff(np.searchsorted(np.sort(codes), edges))


def test_the_bound_is_the_distance_at_full_resolution():
    generator = np.random.default_rng(0)
    codes = generator.integers(0, 40, 300)
    cells = make_cells(Measure(NumberGrid(40), np.array([0, 10]), np.array([10, 40]), np.array([0.5, 0.5])))
    share = generator.dirichlet(np.ones(len(cells.share)))
    edges = np.arange(41)
    released = released_below(cells, share, edges)
    assert released[0] == 0
    assert released[-1] == pytest.approx(1)
    assert (np.diff(released) >= -1e-12).all()
    exact = np.abs(np.cumsum(np.bincount(codes, minlength=40)) / 300 - released[1:]).max()
    assert kolmogorov_bound(counted(codes, edges), edges, released) == pytest.approx(exact)


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
        moved.append(
            abs(
                kolmogorov_bound(counted(codes, edges), edges, released)
                - kolmogorov_bound(counted(other, edges), edges, released)
            )
        )
    assert max(moved) <= 1 / n + 1e-12
    assert max(moved) == pytest.approx(1 / n)

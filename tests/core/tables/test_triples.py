"""Tables of three attributes: counted rightly, of records and of centres, on levels that hold what they should."""

import numpy as np

from covey.core.fit.triples import Levels, Triples, level_map


def test_levels_are_few_even_where_ordered_and_keep_what_is_common_apart_where_not():
    share = np.array([0.4, 0.05, 0.05, 0.3, 0.1, 0.1])
    assert level_map(share, False, 3).tolist() == [0, 2, 2, 1, 2, 2]
    assert level_map(share, False, 6).tolist() == list(range(6))
    ordered = level_map(np.full(12, 1 / 12), True, 4)
    assert ordered.tolist() == sorted(ordered.tolist())
    assert np.bincount(ordered).tolist() == [3] * 4
    assert level_map(np.array([0.97, 0.01, 0.01, 0.01]), True, 2).max() == 1  # no level is empty
    assert level_map(np.zeros(5), True, 2).max() == 1


def test_candidates_vary_and_name_the_target():
    levels = Levels((np.array([0, 1]), np.array([0, 0]), np.array([0, 1, 1]), np.array([0, 1]), np.array([0, 1])))
    assert levels.triples() == ((0, 2, 3), (0, 2, 4), (0, 3, 4), (2, 3, 4))
    assert levels.triples(4) == ((0, 2, 4), (0, 3, 4), (2, 3, 4))


def test_levels_of_bins_become_levels_of_categories():
    chosen = Triples(((0, 1, 2),), {a: np.array([0, 1, 1]) for a in range(3)})
    fine = chosen.of([np.array([0, 0, 1, 2]), np.array([2, 1, 0]), np.array([0, 1, 2])])
    assert fine.levels[0].tolist() == [0, 0, 1, 1]
    assert fine.levels[1].tolist() == [1, 1, 0]
    assert fine.sizes((0, 1, 2)) == (2, 2, 2)

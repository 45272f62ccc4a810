from itertools import pairwise

import numpy as np
import pytest

from covey.core.numbers.grid import FINEST, Category, Measure, NumberGrid
from covey.errors import ParameterError


@pytest.mark.parametrize("steps", [1, 2, 16, 17, 100, 4097, 10**7, FINEST])
def test_levels_cover_the_grid_with_at_most_sixteen_children(steps):
    widths = NumberGrid(steps).widths
    assert widths[-1] == 1
    assert -(-steps // widths[0]) <= 16
    assert all(a % b == 0 and a // b <= 16 for a, b in pairwise(widths))


@pytest.mark.parametrize("bad", [{"steps": 0}, {"steps": FINEST + 1}, {"steps": 5, "specials": -1}])
def test_a_grid_without_values_or_beyond_floats_is_refused(bad):
    with pytest.raises(ParameterError):
        NumberGrid(**bad)
    with pytest.raises(ParameterError, match="outside the bounds"):
        NumberGrid(10, 1, (0,))


def test_single_codes_are_specials_and_declared_values():
    grid = NumberGrid(10, 2, (11, 2))
    assert grid.size == 12
    assert grid.single.tolist() == [0, 1, 2, 11]
    assert Category(3).size == 3


MEASURE = Measure(NumberGrid(100), np.array([0, 10, 40]), np.array([1, 20, 90]), np.array([0.2, 0.3, 0.5]))


def test_distribution_functions_and_their_inverse_agree():
    codes = np.array([0, 1, 10, 15, 20, 30, 40, 90, 100])
    np.testing.assert_allclose(MEASURE.below(codes), [0, 0.2, 0.2, 0.35, 0.5, 0.5, 0.5, 1, 1])
    np.testing.assert_allclose(MEASURE.mass(codes), np.diff(MEASURE.below(codes)))
    level = np.array([0.1, 0.25, 0.45, 0.75])
    assert MEASURE.at(level, np.zeros(4, np.int64), np.full(4, 100)).tolist() == [0, 11, 18, 65]
    assert MEASURE.at(level, np.full(4, 12), np.full(4, 50)).tolist() == [12, 12, 18, 49]


def test_quantiles_are_those_of_values_without_specials():
    assert [MEASURE.quantile(q) for q in (0.1, 0.4, 0.9)] == [0, 10, 40]
    special = Measure(NumberGrid(100, 1), np.array([0, 51]), np.array([1, 61]), np.array([0.9, 0.1]))
    assert special.quantile(0.05) == 51
    nothing = Measure(NumberGrid(100, 1), np.array([0]), np.array([1]), np.array([1.0]))
    assert nothing.quantile(0.5) == 1

from itertools import pairwise

import pytest

from covey.core.numbers.grid import FINEST, Category, NumberGrid
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

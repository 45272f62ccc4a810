from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covey.engine.numbers.grid import FINEST, Category, Difference, Measure, NumberGrid


@pytest.mark.parametrize("steps", [1, 2, 16, 17, 100, 4097, 10**7, FINEST])
def test_levels_cover_the_grid_with_at_most_sixteen_children(steps):
    widths = NumberGrid(steps).widths
    assert widths[-1] == 1
    assert -(-steps // widths[0]) <= 16
    assert all(a % b == 0 and a // b <= 16 for a, b in pairwise(widths))


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


YEAR = Difference(0, 365, 1000, 9000)


@given(*(st.integers(0, 10**k) for k in (3, 6, 12, 3, 3)), st.integers(-(2**52), 2**52), st.integers(0, 2**32))
@settings(max_examples=60)
def test_ends_come_back_and_keep_order_and_bounds_whatever_the_codes(low, more, wide, before, after, first, seed):
    """Ends drawn by themselves, as without differences, come before their bases half of the time."""
    generator, low = np.random.default_rng(seed), low - 500
    own = Difference(low, low + more, first + low + more - before, max(first, first + wide + low) + after + more)
    own.check_base(first, first + wide)
    base, there = first + generator.integers(0, wide + 1, 300), generator.random(300) < 0.8
    apart = generator.integers(low, low + more + 1, 300)
    end = np.clip(base + apart, own.end_low, own.end_high)
    codes = own.encode(base, end, there)
    assert ((codes >= there) & (codes <= there * own.steps)).all()
    assert (own.decode(codes, base, there, generator)[there] == end[there]).all()
    found = own.decode(generator.integers(0, own.steps + 1, 300), base, there, generator)
    assert ((found >= own.end_low) & (found <= own.end_high)).all()
    # Also where a distance is missing and the end is another row's.
    assert ((found - base >= low) & (found - base <= low + more))[there].all()


def test_what_a_record_becomes_depends_on_that_record_alone():
    base, end = np.array([5000, 5000, 5000, 0]), np.array([5100, 4000, 9000, 7000])
    has = np.array([True, True, True, False])
    codes = YEAR.encode(base, end, has)
    assert codes.tolist() == [101, 1, 366, 0]
    assert [int(YEAR.encode(base[[i]], end[[i]], has[[i]])[0]) for i in range(4)] == codes.tolist()


def test_ends_without_bases_are_like_other_ends():
    generator = np.random.default_rng(3)
    base = np.full(1000, 3000)
    has = np.arange(1000) % 2 == 0
    end = YEAR.decode(np.where(has, 11, 0), base, has, generator)
    assert (end == 3010).all()
    alone = YEAR.decode(np.zeros(5, np.int64), np.zeros(5, np.int64), np.zeros(5, bool), generator)
    assert (alone == 1000).all()

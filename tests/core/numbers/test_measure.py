import numpy as np

from covey.core.numbers.grid import Measure, NumberGrid

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

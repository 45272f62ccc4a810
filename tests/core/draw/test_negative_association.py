"""docs/proofs/rounding.md: balanced places vary no more than coins, and one common order of places does."""

from itertools import combinations

import numpy as np
import pytest

from covey.core.draw.balanced import sample_bits
from covey.core.paper.blocks import WeightedPoints


@pytest.mark.parametrize("n", [2, 3, 5, 12])
def test_two_rows_of_a_centre_are_negatively_correlated(n):
    for y in np.linspace(0, 1, 101):
        low, f = np.floor(n * y), n * y - np.floor(n * y)
        together = ((1 - f) * low * (low - 1) + f * (low + 1) * low) / (n * (n - 1))
        assert -1e-15 <= together <= y**2 + 1e-12
        assert together == pytest.approx(y**2 + (f * (1 - f) - n * y * (1 - y)) / (n * (n - 1)))


def balanced(y, n, generator, common_places):
    """n rows of one centre, its counts rounded at random; every column at places of its own, or all at the same ones."""
    ones = np.floor(n * y) + (generator.random(len(y)) < n * y - np.floor(n * y))
    first = generator.permutation(n)
    places = [first if common_places else generator.permutation(n) for _ in y]
    return np.array([place < count for place, count in zip(places, ones, strict=True)]).T


@pytest.mark.parametrize("d", [2, 3])
def test_shares_of_balanced_rows_vary_no_more_than_those_of_coins(d):
    generator = np.random.default_rng(d)
    y, n, runs = np.array([0.5, 0.31, 0.77, 0.12]), 40, 1500
    subsets = list(combinations(range(4), d))
    expected = np.array([y[list(s)].prod() for s in subsets])

    def squares(draw):
        shares = np.array([[rows[:, s].prod(axis=1).mean() for s in map(list, subsets)] for rows in draw])
        error = ((shares - expected) ** 2).mean(axis=1)
        return error.mean(), error.std() / np.sqrt(runs)

    coins, slack = squares([generator.random((n, 4)) < y for _ in range(runs)])
    right, _ = squares([balanced(y, n, generator, common_places=False) for _ in range(runs)])
    wrong, _ = squares([balanced(y, n, generator, common_places=True) for _ in range(runs)])
    assert right < coins
    assert wrong > coins + 10 * slack


def test_column_totals_are_off_by_less_than_a_row():
    generator = np.random.default_rng(5)
    points = generator.random((40, 6))
    m = 400  # ten rows for each centre
    rows = sample_bits(WeightedPoints(np.full(40, 1 / 40), points), m, generator)
    assert np.abs(rows.sum(axis=0) - m * points.mean(axis=0)).max() < 1
    coins = (generator.random((m, 6)) < np.repeat(points, 10, axis=0)).sum(axis=0)
    assert np.abs(coins - m * points.mean(axis=0)).max() > 1

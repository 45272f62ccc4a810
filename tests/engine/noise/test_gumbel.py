"""The exponential mechanism by Gumbel noise: exact chances, also where the first digits do not decide."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

from covey.engine.noise.integers import largest_with_gumbel

SCORES = np.array([0, 3, 5, 4, -7])
SCALE = Fraction(5, 2)


def chances(scores, scale):
    weights = np.exp(np.asarray(scores) / float(scale))
    return weights / weights.sum()


@pytest.mark.parametrize(("digits", "draws"), [(64, 20_000), (3, 4000), (1, 1500)])
def test_candidates_win_in_proportion_to_the_exponential_of_their_scores(digits, draws):
    generator = np.random.default_rng(5)
    won = [largest_with_gumbel(SCORES, SCALE, generator, digits) for _ in range(draws)]
    counts = np.bincount(won, minlength=len(SCORES))
    assert chisquare(counts, draws * chances(SCORES, SCALE)).pvalue > 1e-3
    # The test has power: half the scale, or geometric noise of the same scale, is told apart.
    assert chisquare(counts, draws * chances(SCORES, SCALE / 2)).pvalue < 1e-6


def test_a_common_shift_of_all_scores_changes_nothing_and_a_score_far_behind_never_wins():
    one, two = (np.random.default_rng(3) for _ in range(2))
    for _ in range(50):
        assert largest_with_gumbel(SCORES, SCALE, one) == largest_with_gumbel(SCORES + 10**12, SCALE, two)
    assert {largest_with_gumbel(np.array([0, 10**9]), Fraction(7), one) for _ in range(200)} == {1}
    assert largest_with_gumbel(np.array([-4]), Fraction(7), one) == 0


def test_few_digits_and_many_give_the_same_choice_where_they_begin_alike():
    class Fixed:
        """Deals out fixed digits, as many at a time as are asked for."""

        def __init__(self, rows):
            self.rows = [list(row) for row in rows]
            self.turn = 0

        def integers(self, low, high, size=None, dtype=None):
            if size is not None:
                return np.array([row.pop(0) for row in self.rows], dtype=np.uint64)
            waiting = [row for row in self.rows if len(row) == max(map(len, self.rows))]
            return waiting[0].pop(0)

    # Both begin with 0.1 in binary; the second goes on with 0s, which makes its number smaller and its noise larger.
    alike = Fixed([[1, 1, 1, 1, 1, 1, 1, 1], [1, 0, 0, 0, 0, 0, 0, 0]])
    assert largest_with_gumbel(np.array([0, 0]), Fraction(1), alike, digits=1) == 1

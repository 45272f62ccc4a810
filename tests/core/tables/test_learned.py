"""Public grids, counts that add up, and limits read off noisy counts."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from covey.core.tables.learned import (
    FALSE_ALARM,
    Coded,
    Counting,
    kept_bins,
    kept_counts,
    kept_whole_numbers,
    number_bins,
    number_edges,
    tail_quantile,
    year_edges,
)


def floats(edges):
    return [float(edge) for edge in edges]


def test_edges_are_what_a_person_would_write():
    whole = floats(number_edges(0))
    assert whole[whole.index(0) - 12 :][:26] == [-50, -20, *range(-10, 11), 20, 50, 100]
    assert (whole[0], whole[-1], len(whole)) == (-1e15, 1e15, 105)
    cents = floats(number_edges(2))
    assert cents[cents.index(0) + 1] == 0.01
    assert cents[-1] == 1e13
    assert len(number_edges(None)) == 183
    for edges in (whole, cents, floats(number_edges(None)), list(year_edges())):
        assert edges == sorted(set(edges))


def test_counts_do_not_depend_on_how_records_are_batched():
    g = np.random.default_rng(0)
    words = tuple(f"w{j}" for j in range(5))
    codes = np.stack([g.integers(-1, 4, 300), g.integers(-1, 5, 300)], axis=1)
    kernel = Counting((4, 0))
    whole = kernel(Coded(codes, ((), words)))
    parts = [kernel(Coded(codes[at : at + 70], ((), words))) for at in range(0, 300, 70)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    assert np.array_equal(total.histograms, whole.histograms)
    assert total.words == whole.words
    assert whole.words[0] == {}
    assert whole.words[1] == {w: int((codes[:, 1] == j).sum()) for j, w in enumerate(words)}
    assert whole.histograms[0].tolist() == [(codes[:, 0] == b).sum() for b in range(4)]


def test_a_replaced_record_moves_a_column_by_two_at_most():
    kernel = Counting((3,))
    one = Coded(np.array([[0], [2], [3]]), (("a", "b"),))
    for code in (-1, 0, 1, 2, 3, 4):
        other = Coded(np.array([[code], [2], [3]]), (("a", "b"),))
        a, b = kernel(one), kernel(other)
        words = {*a.words[0], *b.words[0]}
        moved = np.abs(a.histograms - b.histograms).sum() + sum(
            abs(a.words[0].get(w, 0) - b.words[0].get(w, 0)) for w in words
        )
        assert moved <= 2


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_empty_columns_seldom_show_a_limit_and_a_lower_threshold_often_would(law):
    g = np.random.default_rng(1)
    noise = g.normal(0, 30, (600, 92)) if law == "gaussian" else g.laplace(0, 30 / np.sqrt(2), (600, 92))
    least = kept_counts(30.0, law, 92)
    alarms = np.mean([kept_bins(row, least, 16) is not None for row in noise])
    assert alarms <= 2 * FALSE_ALARM
    assert np.mean([kept_bins(row, 0.7 * least, 16) is not None for row in noise]) > 0.05


def test_limits_are_the_outer_edges_of_what_stands_out():
    counts = np.zeros(30)
    counts[[7, 11]] = 100
    counts[20:24] = 40  # no single one stands out, together they do
    least = np.array([50.0, 80.0, 90.0, 100.0])
    assert kept_bins(counts, least, 1) == (7, 11)
    assert kept_bins(counts, least, 4) == (7, 23)
    assert kept_bins(counts[12:20], least, 4) is None


def test_bins_are_finer_where_there_is_more_and_their_edges_are_round():
    edges = number_edges(0)
    counts = np.zeros(len(edges) - 1)
    at = edges.index(Fraction(10))
    counts[at : at + 3] = [100, 1000, 900]  # 10 to 20, 20 to 50, 50 to 100
    found = number_bins(counts, (at, at + 2), 10.0, edges, 20, Fraction(1))
    assert floats(found) == [10, 20, 25, 30, 35, 40, 45, 50, *range(60, 101, 10)]
    # Within a twentieth of zero, zero is meant; what is too fine to be told apart is joined.
    wide = number_edges(None)
    counts = np.full(len(wide) - 1, 5.0)
    low, high = wide.index(Fraction(1, 10**12)), wide.index(Fraction(10**9))
    found = number_bins(counts, (low, high - 1), 1.0, wide, 20, None)
    assert found[0] == 0
    assert found[-1] == 10**9
    assert min(b - a for a, b in pairwise(found)) >= 1
    assert found == sorted(found)


def test_whole_numbers_are_not_cut_between_two_of_them():
    edges = number_edges(0)
    counts = np.zeros(len(edges) - 1)
    at = edges.index(Fraction(1))
    counts[at : at + 9] = 1000
    found = number_bins(counts, (at, at + 8), 10.0, edges, 60, Fraction(1))
    assert floats(found) == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]


def test_quantiles_hold_far_beyond_the_floats():
    assert tail_quantile(np.log(0.025)) == pytest.approx(1.959964)
    assert tail_quantile(-2000 * np.log(10)) == pytest.approx(95.9, rel=0.01)


def test_small_whole_numbers_are_kept_together_where_none_stands_out_and_large_ones_never():
    edges = number_edges(0)
    zero, least = edges.index(0), kept_counts(10.0, "gaussian", len(edges) - 1)
    counts = np.zeros(len(edges) - 1)
    counts[zero : zero + 10] = 0.8 * least[0]
    assert kept_bins(counts, least, 1) is None
    assert kept_whole_numbers(counts, least, zero, 16) == (zero, zero + 9)
    counts = counts[::-1]  # the bin of −1 stands where that of 0 did
    assert kept_whole_numbers(counts, least, zero, 16) == (zero - 10, zero - 1)
    counts = np.zeros(len(edges) - 1)
    counts[zero + 12 : zero + 20] = 0.8 * least[0]
    assert kept_whole_numbers(counts, least, zero, 16) is None

"""Public grids, counts that add up, and limits read off noisy counts."""

from fractions import Fraction

import numpy as np
import pytest

from covey.engine.codes.learned import (
    FALSE_ALARM,
    Coded,
    Counting,
    Noise,
    from_zero,
    kept_bins,
    kept_counts,
    number_edges,
    tail_quantile,
    with_margins,
    year_edges,
)
from covey.engine.noise.law import GAUSSIAN, LAWS


def floats(edges):
    return [float(edge) for edge in edges]


def test_edges_are_what_a_person_would_write():
    whole = floats(number_edges(0))
    assert whole[whole.index(0) - 15 :][:32] == [-50, -20, *range(-13, 14), 20, 50, 100]
    assert (whole[0], whole[-1], len(whole)) == (-1e15, 1e15, 111)
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


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_empty_columns_seldom_show_a_limit_and_a_lower_threshold_often_would(law):
    g = np.random.default_rng(1)
    noise = g.normal(0, 30, (600, 92)) if law == "gaussian" else g.laplace(0, 30 / np.sqrt(2), (600, 92))
    least = kept_counts(30.0, LAWS[law], 92)
    narrow = np.zeros(92, dtype=bool)
    alarms = np.mean([kept_bins(row, least, narrow) is not None for row in noise])
    assert alarms <= 2 * FALSE_ALARM
    assert np.mean([kept_bins(row, 0.65 * least, narrow) is not None for row in noise]) > 0.05


def test_limits_are_the_outer_edges_of_what_stands_out():
    counts = np.zeros(30)
    counts[[7, 11]] = 100
    counts[20:24] = 40  # no single one stands out, together they do
    least, narrow = np.array([50.0, 90.0, 110.0, 200.0, 300.0]), np.zeros(30, dtype=bool)
    assert kept_bins(counts, least, narrow) == (7, 23)
    assert kept_bins(counts, least, ~narrow) == (7, 11)  # of wide bins none is kept for its neighbours
    assert kept_bins(counts[12:20], least, narrow[12:20]) is None


def test_limits_within_a_twentieth_of_zero_reach_to_it():
    assert from_zero(Fraction(5), Fraction(100)) == (0, 100)
    assert from_zero(Fraction(10), Fraction(100)) == (10, 100)
    assert from_zero(Fraction(-100), Fraction(-5)) == (-100, 0)
    assert from_zero(Fraction(-1), Fraction(100)) == (-1, 100)


def test_quantiles_hold_far_beyond_the_floats():
    assert tail_quantile(np.log(0.025)) == pytest.approx(1.959964)
    assert tail_quantile(-2000 * np.log(10)) == pytest.approx(95.9, rel=0.01)


def whole_numbers(**counts):
    """Counts on the grid of whole numbers, by number or by the lower edge of a bin, and which bins are wide."""
    edges = floats(number_edges(0))
    out = np.zeros(len(edges) - 1)
    for number, count in counts.items():
        out[edges.index(float(number.replace("_", "-").lstrip("n")))] = count
    return out, np.diff(edges) > 1, edges.index(0)


def limits(counts, wide, zero, noise):
    """The first and last number of the kept bins."""
    kept = with_margins(counts, kept_bins(counts, noise.least, wide), wide, noise, zero)
    return number_edges(0)[kept[0]], number_edges(0)[kept[1] + 1]


def test_limits_follow_the_mass_beside_what_stands_out_and_stay_where_nothing_can_hide():
    """Tails of which no bin stands out alone: a program without margins cuts a quarter of these rows off."""
    least = kept_counts(100.0, GAUSSIAN, 110)
    quiet, loud = Noise(100.0, least, 100_000), Noise(100.0, least, 10_000)
    scores = whole_numbers(**{f"n{j}": 2000 for j in range(1, 6)}, **{f"n{j}": 250 for j in range(6, 11)})
    assert kept_bins(scores[0], least, scores[1]) == (scores[2] + 1, scores[2] + 9)  # four together stand out
    assert limits(*scores, quiet) == (1, 10)
    assert limits(*scores, loud) == (0, 20)
    tail = whole_numbers(n0=6000, n1=3000, n2=260, n3=240, n4=230)
    assert kept_bins(tail[0], least, tail[1]) == (tail[2], tail[2] + 1)
    assert limits(*tail, loud) == (0, 6)
    assert limits(*tail, quiet) == (0, 2)  # in 100,000 rows they are little


def test_margins_do_not_change_the_sign_but_for_never():
    least = kept_counts(100.0, GAUSSIAN, 110)
    loud = Noise(100.0, least, 10_000)
    assert limits(*whole_numbers(n0=9000), loud) == (0, 2)
    assert limits(*whole_numbers(n0=9000, n_1=400), loud) == (-1, 2)
    assert limits(*whole_numbers(n0=9000, n_1=300, n_2=250), loud) == (-1, 2)
    assert limits(*whole_numbers(n_3=9000), loud) == (-4, -1)
    assert limits(*whole_numbers(n50=9000), loud) == (20, 200)


def test_small_whole_numbers_are_kept_together_where_none_stands_out_and_large_ones_never():
    edges = number_edges(0)
    zero, least = edges.index(0), kept_counts(10.0, GAUSSIAN, len(edges) - 1)
    wide = np.diff(floats(edges)) > 1
    counts = np.zeros(len(edges) - 1)
    counts[zero : zero + 10] = 0.8 * least[0]
    assert kept_bins(counts, least, wide) == (zero, zero + 9)
    assert kept_bins(counts[::-1], least, wide[::-1]) == (len(counts) - 10 - zero, len(counts) - 1 - zero)
    counts = np.zeros(len(edges) - 1)
    counts[zero + 13 : zero + 20] = 0.8 * least[0]
    assert kept_bins(counts, least, wide) is None

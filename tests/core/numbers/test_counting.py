import numpy as np

from covey.core.tables.crosstabs import FULL_CODES, CodeCounts, RangeCounts, counted_fully, ranges_of


def test_parts_add_up_and_both_ways_of_counting_agree():
    generator = np.random.default_rng(0)
    batch = np.column_stack(
        [generator.integers(0, 50, 999), generator.integers(0, 7, 999), generator.integers(0, 2**53, 999)]
    )
    codes = CodeCounts((0, 1), (50, 7))
    whole = codes(batch)
    parts = codes(batch[:1]) + codes(batch[1:1]) + codes(batch[1:])
    assert all((a == b).all() for a, b in zip(whole.values, parts.values, strict=True))
    edges = np.array([0, 1, 30, 49, 50])
    wide = np.array([0, 2**20, 2**52, 2**53])
    ranges = RangeCounts((0, 2), (edges, wide))
    found = (ranges(batch[:400]) + ranges(batch[400:])).integers()
    assert found[0].tolist() == ranges_of(whole.integers()[0], edges).tolist()
    assert found[1].tolist() == np.histogram(batch[:, 2].astype(float), wide.astype(float))[0].tolist()
    assert found[0].sum() == found[1].sum() == 999


def test_small_numbers_are_counted_code_by_code_as_long_as_there_is_room():
    assert counted_fully([100, 10**9, 200]) == [True, False, True]
    assert counted_fully([FULL_CODES, 5]) == [False, True]
    assert counted_fully([]) == []

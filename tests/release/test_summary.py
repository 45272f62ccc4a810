"""What a reader sees of each attribute."""

import numpy as np
import pytest

from covey.core.numbers.grid import Measure, NumberGrid
from covey.release.summary import MOST_BINS, describe, even_inside
from covey.table.codec import Codec
from covey.table.schema import Field, Schema


@pytest.mark.parametrize("bins", [4, 100])
def test_special_values_are_labels_of_their_own_behind_the_bins(bins):
    field = Field("x", "integer", 0, 999, bins=bins, special=("N", "<5"))
    codec = Codec(Schema((field, Field("t", "time", "08:00", "19:59:59", bins=12))))
    column, clock = describe(codec)
    shown = min(bins, MOST_BINS)
    assert len(column.labels) == shown + 3
    assert column.labels[-3:] == ("N", "<5", "missing")
    codes = codec.encode({"x": ["0", "999", "N", "<5", None], "t": ["8:30"] * 5})[0][:, 0]
    assert np.flatnonzero(column.shares(codes)).tolist() == [0, shown - 1, shown, shown + 1, shown + 2]
    assert column.domain == "0 to 999, or N, <5"
    assert clock.labels[0].startswith("08:00")


def test_bars_are_even_inside_where_no_finer_share_was_released():
    """Wrong programs: one that looks at the first value of a bar alone, and one that takes special values for bars."""
    wide = Field("x", "integer", 0, 79, bins=4, special=("N",))
    assert even_inside(describe(Codec(Schema((wide,))))[0], wide).tolist() == [True] * 4 + [False] * 2
    single = Field("x", "integer", 0, 3)
    assert not even_inside(describe(Codec(Schema((single,))))[0], single).any()
    joined = Field("x", "integer", 0, 799, bins=2 * MOST_BINS)
    assert not even_inside(describe(Codec(Schema((joined,))))[0], joined).any()
    # Two specials; the least value by itself, then 1 … 39 in one range, 40 … 44 and 45 … 59 apart, 60 … 79 in single values.
    edges = np.array([0, 1, 2, 3, 42, 47, *range(62, 83)])
    measure = Measure(NumberGrid(80, 2, (2,)), edges[:-1], edges[1:], np.full(len(edges) - 1, 1 / (len(edges) - 1)))
    assert even_inside(describe(Codec(Schema((wide,))))[0], wide, measure).tolist() == [True, True] + [False] * 4

"""What a reader sees of each attribute."""

import numpy as np
import pytest

from covey.release.summary import MOST_BINS, describe
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

"""A step on records: each code lands in its cell or bin, whoever else is in the batch."""

import numpy as np
import pytest

from covey.measure.query import Factor, ToBins

EDGES = np.array([0, 4, 5, 10])


@pytest.mark.parametrize(
    ("step", "found"),
    [
        (ToBins((None, Factor(EDGES, np.arange(3)))), [[0, 2], [1, 0], [2, 2], [2, 1]]),
        (
            ToBins((Factor(np.arange(4), np.array([0, 1, 1])), Factor(np.arange(11), np.arange(10) // 5))),
            [[0, 1], [1, 0], [1, 1], [1, 0]],
        ),
        (
            ToBins((Factor(np.arange(4), np.array([0, 1, 1])), Factor(EDGES, np.array([0, 0, 1])))),
            [[0, 1], [1, 0], [1, 1], [1, 0]],
        ),
    ],
)
def test_codes_become_cells_and_bins_one_record_at_a_time(step, found):
    batch = np.array([[0, 5], [1, 0], [2, 9], [2, 4]])
    assert step(batch).tolist() == found
    assert np.array_equal(np.vstack([step(row[None]) for row in batch]), step(batch))

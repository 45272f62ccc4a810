"""Steps on records: each code lands in its cell or bin, whoever else is in the batch."""

import numpy as np

from covey.core.tables.recoding import Merge, ToCells


def test_codes_become_cells_and_categories_bins_one_record_at_a_time():
    batch = np.array([[0, 5], [1, 0], [2, 9], [2, 4]])
    cells = ToCells((None, np.array([0, 4, 5, 10])))
    assert cells(batch).tolist() == [[0, 2], [1, 0], [2, 2], [2, 1]]
    bins = Merge((np.array([0, 1, 1]), np.arange(10) // 5))
    assert bins(batch).tolist() == [[0, 1], [1, 0], [1, 1], [1, 0]]
    for step in (cells, bins):
        assert np.array_equal(np.vstack([step(row[None]) for row in batch]), step(batch))

"""Small helpers on arrays, and the memory check."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from covey.engine import arrays
from covey.engine.arrays import above_diagonal, blas_threads, hollow, is_bits, require_memory, strips, symmetric
from covey.errors import ParameterError


def test_bits_are_told_from_other_numbers():
    assert is_bits(np.array([True]))
    assert is_bits(np.array([0, 1, 1]))
    assert is_bits(np.zeros(0, np.int8))
    for other in (np.array([0, 2]), np.array([-1, 1]), np.array([0.0, 1.0])):
        assert not is_bits(other)


def test_strips_cover_every_row_once(monkeypatch):
    monkeypatch.setattr(arrays, "STRIP", 25)
    assert list(strips(10)) == [(0, 2), (2, 4), (4, 6), (6, 8), (8, 10)]
    assert list(strips(100)) == [(i, i + 1) for i in range(100)]
    whole = np.triu(np.ones((10, 10), bool), 1)
    assert (np.vstack([above_diagonal(a, b, 10) for a, b in strips(10)]) == whole).all()


def test_matrices_of_pairs():
    found = symmetric(np.array([1.0, 2, 3]), 3)
    assert found.tolist() == [[0, 1, 2], [1, 0, 3], [2, 3, 0]]
    given = np.ones((2, 2))
    assert hollow(given).tolist() == [[0, 1], [1, 0]]
    assert given.all()  # a copy


def test_what_does_not_fit_the_memory_is_refused(monkeypatch):
    monkeypatch.setattr(arrays, "physical_memory", lambda: 8 * 2**30)
    require_memory(6 * 2**30, "a thing", "Use less.")
    with pytest.raises(ParameterError, match=r"a thing needs 6\.\d+ GiB and this machine allows 6 GiB\. Use less\."):
        require_memory(7 * 2**30 - 2**29, "a thing", "Use less.")


def threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_blas_threads_are_set_for_a_while():
    before = threads()
    assert before
    with blas_threads(1):
        assert set(threads()) == {1}
    assert threads() == before

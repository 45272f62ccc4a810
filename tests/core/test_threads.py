"""BLAS uses as many threads as it is told, and afterwards as many as before."""

from threadpoolctl import threadpool_info

from covey.core.arrays import blas_threads, processors


def threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_blas_threads_are_set_for_a_while():
    before = threads()
    assert before
    with blas_threads(1):
        assert set(threads()) == {1}
    assert threads() == before


def test_there_is_a_processor():
    assert processors() >= 1

import numpy as np
import pytest

from covey.engine.codes.counts import side_by_side
from covey.engine.codes.domain import (
    FULL_CODES,
    CodeCounts,
    PairTables,
    RangeCounts,
    counted_fully,
    pair_matrix,
    ranges_of,
)


def codes(sizes, n=150, seed=8):
    generator = np.random.default_rng(seed)
    return np.column_stack([generator.integers(0, c, n) for c in sizes])


def hot(X, sizes):
    return np.hstack([np.eye(c, dtype=int)[X[:, a]] for a, c in enumerate(sizes)])


@pytest.mark.parametrize(
    "sizes", [(3,), (3, 2), (3, 2, 4), (5, 1, 2), (16, 16, 16), (300, 2, 2, 300), (2,) * 20, (7, 260, 1, 3, 40) * 3]
)
@pytest.mark.parametrize("kind", [np.uint8, np.int64])
def test_tables_are_those_of_the_one_hot_matrix(sizes, kind):
    X = codes(sizes).astype(np.uint16 if kind is np.uint8 and max(sizes) > 256 else kind, order="F")
    wanted = hot(X, sizes)
    assert side_by_side(CodeCounts(tuple(range(len(sizes))), sizes)(X)).tolist() == wanted.sum(axis=0).tolist()
    assert (pair_matrix(X, sizes) == wanted.T @ wanted).all()


def test_few_categories_are_counted_jointly_and_many_are_not():
    assert len(PairTables((2,) * 30).bundles) == 4
    assert PairTables((200, 200)).bundles == [[0], [1]]
    wide = PairTables((16,) * 62)
    cells = sum(len(np.ravel(v)) for v in wide(codes(wide.sizes, 3)).values)
    assert cells <= 1 << 21


def test_equal_kernels_are_the_same_question():
    assert {PairTables((2, 3)): 1}[PairTables((2, 3))] == 1
    assert PairTables((2, 3)) != CodeCounts((0, 1), (2, 3))


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
    alone = {j: np.sort(batch[:, j]) for j in range(3)}
    assert all((a == b).all() for a, b in zip(ranges.sorted(alone).integers(), found, strict=True))


def test_small_numbers_are_counted_code_by_code_as_long_as_there_is_room():
    assert counted_fully([100, 10**9, 200]) == [True, False, True]
    assert counted_fully([FULL_CODES, 5]) == [False, True]
    assert counted_fully([]) == []

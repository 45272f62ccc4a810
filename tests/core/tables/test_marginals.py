from itertools import combinations

import numpy as np
import pytest

from covey.core.tables.distance import marginal_error, marginals, subset_kernel, subset_sample
from covey.errors import ParameterError


def brute(X, Z, d):
    X, Z = np.asarray(X, float), np.asarray(Z, float)
    errors = [X[:, s].prod(axis=1).mean() - Z[:, s].prod(axis=1).mean() for s in combinations(range(X.shape[1]), d)]
    return np.sqrt(np.mean(np.square(errors)))


@pytest.mark.parametrize("d", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("how", ["auto", "exact", "sample"])
def test_delta_matches_the_definition(d, how):
    generator = np.random.default_rng(d)
    X, Z = generator.integers(0, 2, (70, 6)), generator.integers(0, 2, (50, 6), dtype=np.uint8)
    assert marginal_error(X, Z, d, how=how) == pytest.approx(brute(X, Z, d), abs=1e-12)
    assert marginal_error(X.astype(bool), Z.astype(float), d, how=how) == pytest.approx(brute(X, Z, d), abs=1e-12)
    assert marginal_error(X, X, d, how=how) == pytest.approx(0, abs=1e-15)  # exactly 0 on most processors


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_delta_of_real_rows(d):
    generator = np.random.default_rng(d)
    X, Z = generator.standard_normal((30, 5)), generator.standard_normal((40, 5))
    for how in ("auto", "exact"):
        assert marginal_error(X, Z, d, how=how) == pytest.approx(brute(X, Z, d), rel=1e-9)


def test_sampled_subsets_estimate_all_subsets():
    generator = np.random.default_rng(5)
    X, Z = generator.random((300, 30)) < 0.4, generator.random((200, 30)) < 0.5
    exact = marginal_error(X, Z, 3, how="exact")
    assert marginal_error(X, Z, 3, subsets=2000) == pytest.approx(exact, rel=0.1)
    assert marginal_error(X, Z, 3, subsets=2000) == marginal_error(X, Z, 3, subsets=2000)


def test_subsets_are_distinct_columns_and_complete_where_few():
    assert len(subset_sample(6, 3, 20)) == 20
    picks = subset_sample(50, 4, 500)
    assert picks.shape == (500, 4)
    assert all(len(set(row)) == 4 for row in picks)


def test_kernel_of_fractional_rows_is_the_elementary_symmetric_polynomial():
    x, y = np.random.default_rng(0).random((2, 1, 6))
    for d in range(1, 7):
        expected = sum(np.prod((x * y)[0, list(s)]) for s in combinations(range(6), d))
        assert subset_kernel(x, y, d)[0, 0] == pytest.approx(expected)


def test_marginal_counts_do_not_depend_on_padding():
    X = np.ones((67, 2), dtype=np.uint8)
    assert marginals(X, np.array([[0, 1]]))[0] == 1


@pytest.mark.parametrize("degree", [0, 4, -1])
def test_impossible_degrees_are_refused(degree):
    with pytest.raises(ParameterError, match="degree"):
        marginal_error(np.zeros((2, 3)), np.zeros((2, 3)), degree)


def test_tables_with_different_columns_are_refused():
    with pytest.raises(ParameterError, match="same columns"):
        marginal_error(np.zeros((2, 3)), np.zeros((2, 4)))

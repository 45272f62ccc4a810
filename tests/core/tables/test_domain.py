"""Domains: which columns belong to which attribute, and the centred coding."""

import numpy as np
import pytest

from covey.core.tables.domain import Domain
from tests.core.tables.examples import DOMAIN


def test_blocks_lie_one_after_another():
    assert [DOMAIN.block(a) for a in range(3)] == [slice(0, 3), slice(3, 5), slice(5, 9)]
    assert DOMAIN.total == 9
    assert DOMAIN.block_of.tolist() == [0, 0, 0, 1, 1, 2, 2, 2, 2]
    i, j = DOMAIN.inside_blocks
    inside = np.zeros((9, 9), dtype=bool)
    inside[i, j] = True
    assert (inside == DOMAIN.same_block).all()
    assert inside.sum() == 9 + 4 + 16


def test_blocks_are_summed_spread_and_left_out():
    matrix = np.random.default_rng(1).standard_normal((9, 9))
    sums = DOMAIN.sum_blocks(matrix)
    assert sums[0, 2] == pytest.approx(matrix[0:3, 5:9].sum())
    assert (DOMAIN.spread(sums)[0:3, 5:9] == sums[0, 2]).all()
    left = DOMAIN.off_blocks(matrix)
    assert (left[DOMAIN.same_block] == 0).all()
    assert (left[~DOMAIN.same_block] == matrix[~DOMAIN.same_block]).all()


def test_attributes_of_one_category_have_no_coordinates():
    assert Domain((1, 3), (False, False)).simplex_basis().shape == (4, 2)


def test_centring_is_the_projection_to_the_simplex_coding():
    matrix = np.random.default_rng(0).standard_normal((9, 9))
    centred = DOMAIN.centre(matrix)
    assert np.abs(DOMAIN.sum_blocks(centred)).max() < 1e-12
    np.testing.assert_allclose(DOMAIN.centre(centred), centred, atol=1e-12)
    basis = DOMAIN.simplex_basis()
    np.testing.assert_allclose(basis.T @ basis, np.eye(6), atol=1e-12)
    np.testing.assert_allclose(basis @ basis.T @ matrix @ basis @ basis.T, centred, atol=1e-12)

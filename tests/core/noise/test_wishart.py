"""Bartlett's factor: sums of products in limbs are the sums, and digits once read stay."""

from fractions import Fraction

import numpy as np
import pytest

from covey.core.noise import matrix as factors
from covey.core.noise.matrix import Factor
from covey.core.noise.normals import STANDARD
from tests.core.noise.test_matrix import FEW, entry


@pytest.mark.parametrize("words", [0, 1, 3])
def test_sums_of_limbs_are_the_sums(words):
    factor = Factor(13, np.random.default_rng(5), FEW)
    i, j = np.array([0, 0, 3, 5, 5, 12, 2]), np.array([0, 12, 3, 6, 9, 12, 4])
    unit = 4 ** (factor.unit + 64 * words)
    for total, reach, a, b in zip(factor.products(i, j, words), factor.reach(i, j), i, j, strict=True):
        assert Fraction(total, unit) == sum(
            entry(factor, a, k, words) * entry(factor, b, k, words) for k in range(a + 1)
        )
        far = sum(entry(factor, a, k, 6) * entry(factor, b, k, 6) for k in range(a + 1))
        assert abs(far - Fraction(total, unit)) < Fraction(reach << (64 * words), unit)


def test_products_in_groups_are_the_same(monkeypatch):
    factor = Factor(20, np.random.default_rng(6), STANDARD)
    i, j = np.triu_indices(20)
    together = factor.products(i, j, 1)
    monkeypatch.setattr(factors, "BATCH", 1)
    assert (factor.products(i, j, 1) == together).all()


def test_numbers_beyond_a_machine_word_are_summed_as_well(monkeypatch):
    """A normal beyond 2^14 has probability e^{−10^8}; its digits pass 64 bits and get a limb of their own."""
    factor = Factor(4, np.random.default_rng(7), STANDARD)
    factor.value[3, 1] = -(2.0**20 + 2.0**-32)
    factor._tails[3] = {1: ((1 << 17) - 5, 17)}  # what the float has no room for
    exact = entry(factor, 3, 1, 0)
    assert exact == -Fraction((((1 << 52) + 1) << 17) + (1 << 17) - 5, 1 << 49)
    for words in (0, 2):
        total = factor.products(np.array([2]), np.array([3]), words)[0]
        far = sum(entry(factor, 2, k, words) * entry(factor, 3, k, words) for k in range(3))
        assert Fraction(total, 4 ** (49 + 64 * words)) == far


def test_digits_once_read_stay():
    factor = Factor(6, np.random.default_rng(8), FEW)
    before = [entry(factor, 5, k, 1) for k in range(6)]
    after = [entry(factor, 5, k, 3) for k in range(6)]
    again = [entry(factor, 5, k, 1) for k in range(6)]
    assert before == again
    # Further digits lie inside what the first ones left open.
    assert all(abs(a - b) < Fraction(1, 2 ** (factor.unit + 64)) for a, b in zip(before, after, strict=True))


def test_floats_are_as_near_as_they_say_and_not_much_nearer():
    """A bound of nothing, or one from the largest number alone, is too small where few digits were read."""
    factor = Factor(30, np.random.default_rng(9), FEW)
    missed = {
        (i, k): abs(entry(factor, i, k, 6) - Fraction(float(factor.value[i, k])))
        for i in range(30)
        for k in range(i + 1)
    }
    below = [gap for (i, k), gap in missed.items() if k < i]
    diagonal = [gap for (i, k), gap in missed.items() if k == i]
    assert factor.cut / 2 < max(below) < factor.cut
    assert factor.slip / 4 < max(diagonal) < factor.slip


def test_every_number_keeps_its_own_further_digits_however_rows_are_grouped(monkeypatch):
    drawn = []

    class Remembered(factors.Normals):
        def __init__(self, *words):
            super().__init__(*words)
            drawn.append(self)

    monkeypatch.setattr(factors, "Normals", Remembered)
    monkeypatch.setattr(factors, "STRIP", 8 * 12 * 4)  # four rows at a time
    factor = Factor(12, np.random.default_rng(10), FEW)
    assert len(drawn) == 3
    below = factor.value[np.tril_indices(12, -1)]
    assert (below == np.concatenate([normals.value for normals in drawn])).all()
    places, begin, found = np.stack(np.tril_indices(12, -1), axis=1), 0, 0
    for normals in drawn:
        for position, tail in normals.tail.items():
            row, column = places[begin + position]
            assert factor._tails[row][column] == tail
            found += begin > 0
        begin += len(normals.value)
    assert found > 2

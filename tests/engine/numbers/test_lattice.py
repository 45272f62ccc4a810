"""Whole points of polytopes: always inside, near, and with the columns that they had."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covey.engine.numbers.lattice import Band, Lattice, settle


def band(coefficients, minimum=None, maximum=None):
    terms = tuple((j, Fraction(a)) for j, a in enumerate(coefficients) if a)
    return Band(terms, *(None if b is None else Fraction(b) for b in (minimum, maximum)))


def whole(total, k, high=None):
    return Lattice([0] * k, [total if high is None else high] * k, [band([1] * k, total, total)])


@given(st.integers(0, 2**32), st.integers(2, 4), st.integers(1, 3), st.booleans())
@settings(max_examples=60)
def test_every_row_ends_inside_and_rows_inside_stay(seed, k, m, equation):
    generator = np.random.default_rng(seed)
    inside = generator.integers(0, 50, k)
    bands = []
    for _ in range(m):
        a = generator.integers(1, 4, k) * generator.choice([-1, 1], k)
        bands.append(band(a.tolist(), None, int(a @ inside) + int(generator.integers(0, 20))))
    if equation:
        a = [*generator.integers(-3, 4, k - 1).tolist(), 1]
        bands.append(band(a, int(np.dot(a, inside)), int(np.dot(a, inside))))
    lattice = Lattice([0] * k, [60] * k, bands)
    points = np.vstack([inside, generator.integers(0, 61, (50, k))])
    found = lattice.nearest(points, np.ones(k))
    assert lattice.contains(found).all()
    assert np.array_equal(found[lattice.contains(points)], points[lattice.contains(points)])
    assert lattice.contains(settle(points, lattice)).all()


@pytest.mark.parametrize(
    "lattice",
    [
        whole(9, 3),
        Lattice([0] * 3, [9] * 3, [band([1, -1, 0], None, 0), band([0, 1, -1], None, 0)]),
        Lattice([0] * 3, [9] * 3, [band([2, 3, 1], 11, 17)]),
    ],
)
def test_rows_move_hardly_further_than_the_nearest_point_of_all(lattice):
    everything = np.array(list(product(range(10), repeat=3)))
    inside = everything[lattice.contains(everything)]
    best = np.sqrt(((everything[:, None] - inside[None]) ** 2).sum(axis=2).min(axis=1))
    moved = np.linalg.norm(lattice.nearest(everything, np.ones(3)) - everything, axis=1)
    assert (moved <= best + 1.5).all()
    assert moved.mean() < best.mean() + 0.2
    middle = np.linalg.norm(lattice.middle - everything, axis=1)  # what would also be inside, and says nothing
    assert middle.mean() > best.mean() + 0.5


def test_margins_survive_better_than_under_projection_alone():
    generator = np.random.default_rng(4)
    shares = generator.dirichlet([8, 3, 1, 0.5], 2000)
    noisy = np.clip(np.rint(1000 * shares * generator.lognormal(0, 0.4, shares.shape)), 0, 1000).astype(np.int64)
    lattice = whole(1000, 4)
    once = lattice.nearest(noisy, np.maximum(noisy.std(axis=0), 1.0))
    turned = settle(noisy, lattice)
    assert lattice.contains(turned).all()
    far = [np.abs(np.sort(found, axis=0) - np.sort(noisy, axis=0)).mean() for found in (turned, once)]
    assert far[0] < 0.7 * far[1]


def test_what_is_inside_is_decided_exactly():
    big = 1 << 58
    lattice = Lattice([0, 0], [big, big], [band([1, 1], big, big)])
    points = np.array([[big - 1, 1], [big - 1, 2], [big // 2, big // 2], [big // 2, big // 2 + 1]])
    assert lattice.contains(points).tolist() == [True, False, True, False]
    assert (points.astype(float).sum(axis=1) == float(big)).all()  # floats see no difference


def test_equations_that_share_columns_are_solved_together():
    lattice = Lattice([0] * 4, [100] * 4, [band([1, 1, 1, 0], 100, 100), band([0, 1, 1, -2], 0, 0)])
    found = lattice.nearest(np.random.default_rng(1).integers(0, 101, (200, 4)), np.ones(4))
    assert lattice.contains(found).all()
    same = Lattice([0] * 2, [9] * 2, [band([1, 1], 9, 9), band([2, 2], 18, 18)])
    assert same.contains(same.nearest(np.array([[9, 9]]), np.ones(2))).all()

"""Helmert's contrasts: whole numbers that hold exactly the centred tables."""

from fractions import Fraction

import numpy as np
import pytest

from covey.core.noise.integers import CLAMP
from covey.core.noise.matrix import MatrixNoise
from covey.core.noise.pairlaw import PairLaw, contrast_weights, contrasts, from_contrasts
from covey.core.noise.sensitivity import simplex_radius_squared
from covey.core.tables.crosstabs import pair_matrix
from covey.core.tables.domain import Domain

SIZES = (3, 1, 4, 2, 7)
DOMAIN = Domain(SIZES, (False,) * 5)


def codes(n, seed=0, sizes=SIZES):
    return np.random.default_rng(seed).integers(0, sizes, (n, len(sizes)))


def vector(row, sizes=SIZES):
    """h of one record, by its definition."""
    return np.array([1 if x < j else -j if x == j else 0 for x, c in zip(row, sizes, strict=True) for j in range(1, c)])


def test_contrasts_are_the_sums_of_their_definition():
    X = codes(200)
    h = np.array([vector(row) for row in X])
    assert (contrasts(pair_matrix(X, SIZES), DOMAIN) == h.T @ h).all()


def test_tables_come_back():
    X = codes(300, 1)
    hot = np.hstack([np.eye(c)[X[:, a]] - 1 / c for a, c in enumerate(SIZES)])
    h = np.array([vector(row) for row in X])
    assert from_contrasts((h.T @ h).astype(float), DOMAIN) == pytest.approx(hot.T @ hot, abs=1e-9)


def test_weighted_contrasts_never_leave_the_radius_that_is_paid_for():
    """Exactly, for every record; one weight that is rounded down would break it."""
    w = contrast_weights(DOMAIN)
    radius = simplex_radius_squared(SIZES)
    for row in np.ndindex(*SIZES):
        length = sum((Fraction(int(h)) ** 2 / x**2 for h, x in zip(vector(row), w, strict=True)), Fraction(0))
        assert length <= radius
        assert length > radius * (1 - Fraction(1, 2**40))
    large = contrast_weights(Domain((600,), (False,)))
    assert all(x * x >= j * (j + 1) for j, x in enumerate(large, 1))
    assert all(x * x <= j * (j + 1) * (1 + Fraction(1, 2**48)) for j, x in enumerate(large, 1))


def test_six_hundred_categories_fit_the_machine_word_and_lose_nothing():
    """n·c² at its largest allowed, 4·c²·n < 2^61, with all records in one cell: the extreme of every contrast."""
    sizes = (600, 600)
    domain = Domain(sizes, (False, False))
    n = (1 << 61) // (4 * 600**2) - 1
    for x, y in ((599, 599), (0, 599), (300, 1)):
        counts = np.zeros((1200, 1200), dtype=np.int64)
        for i in (x, 600 + y):
            for j in (x, 600 + y):
                counts[i, j] = n
        S = contrasts(counts, domain)
        h = vector((x, y), sizes)
        assert (n * np.outer(h, h) == S).all()
        assert np.abs(S).max() < CLAMP
        centred = from_contrasts(S.astype(float), domain)[:600, 600:] / n
        exact = np.outer(np.eye(600)[x] - 1 / 600, np.eye(600)[y] - 1 / 600)
        assert np.abs(centred - exact).max() < 1e-12


def test_noise_on_contrasts_is_the_simulated_law_on_tables():
    """Variances of the cells of a pair table, compared with the float law in orthonormal coordinates."""
    sizes = (4, 3, 2)
    domain = Domain(sizes, (False,) * 3)
    law = PairLaw("matrix", domain, Fraction(50))
    generator, w = np.random.default_rng(2), contrast_weights(domain)
    drawn = [MatrixNoise(Fraction(50), w, generator).block(slice(None), slice(None)) for _ in range(300)]
    ours = np.array([from_contrasts(z.astype(float), domain) for z in drawn])[:, :4, 4:7]
    theirs = np.array([law.simulate(generator) for _ in range(3000)])[:, :4, 4:7]
    assert ours.var(axis=0) == pytest.approx(theirs.var(axis=0), rel=0.4)
    assert ours.var() == pytest.approx(theirs.var(), rel=0.08)
    assert ours.var() != pytest.approx(theirs.var() * 7 / 6, rel=0.08)  # one degree of freedom more
    assert np.abs(ours.sum(axis=1)).max() < 1e-8


def test_noise_that_no_table_could_outweigh_is_not_drawn():
    domain = Domain((3,) * 60, (False,) * 60)
    assert PairLaw("matrix", domain, Fraction(2**30)).drawable
    assert not PairLaw("matrix", domain, Fraction(2**36)).drawable

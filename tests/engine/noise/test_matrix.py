"""Matrix noise on the integers: each entry against far more digits than it read, and the law against exact moments."""

from fractions import Fraction
from math import floor

import numpy as np
import pytest
from scipy.stats import gamma, ks_2samp, kstest, wishart

from covey.engine.noise import matrix as module
from covey.engine.noise.integers import SATURATION
from covey.engine.noise.matrix import Factor, MatrixNoise, simulated_matrix
from covey.engine.noise.normals import STANDARD, Digits

FEW = Digits(x=6, coin=4, cell=8)
ALL = slice(None)


def ones(q):
    return [Fraction(1)] * q


def entry(factor, row, column, words):
    """One entry of L with so many further words, as a fraction; independent of limbs."""
    exact = factor._exact(row, column, factor._digits(row, words)[:, column])
    sign = -1 if column < row and np.signbit(factor.value[row, column]) else 1
    return Fraction(sign * exact, 1 << (factor.unit + 64 * words))


def by_fractions(noise, weights, words=4):
    """The whole matrix by fractions with far more digits; they must settle every entry beyond doubt."""
    q, out = len(weights), {}
    L = [[[entry(f, i, k, words) for k in range(i + 1)] for i in range(q)] for f in noise._factors]
    for i in range(q):
        for j in range(i, q):
            W = [sum((a * b for a, b in zip(m[i], m[j], strict=False)), Fraction(0)) for m in L]
            y = noise.scale / 2 * weights[i] * weights[j] * (W[0] - W[1])
            assert abs(y - floor(y) - Fraction(1, 2)) > Fraction(1, 2**100)
            out[i, j] = out[j, i] = floor(y + Fraction(1, 2))
    return np.array([[out[i, j] for j in range(q)] for i in range(q)])


WEIGHTS = [Fraction(7, 3), Fraction(1, 5), Fraction(1), Fraction(2**40 + 1, 2**38), Fraction(12), Fraction(1)]


@pytest.mark.parametrize(
    ("scale", "weights", "digits"),
    [
        (Fraction(100), ones(9), FEW),
        (Fraction(1, 3), WEIGHTS, FEW),
        (Fraction(2**43), ones(9), STANDARD),
        (Fraction(10**16, 7), WEIGHTS, STANDARD),
        (Fraction(10**9), ones(14), Digits(x=20, coin=10, cell=30)),
        (Fraction(5), ones(30), STANDARD),
    ],
)
def test_decisions_agree_with_far_more_digits(scale, weights, digits, monkeypatch):
    """Few digits or a huge scale force the lazy path; no entry may come out differently."""
    refined = []
    lazily = MatrixNoise._decided
    monkeypatch.setattr(MatrixNoise, "_decided", lambda self, i, j: refined.append(len(i)) or lazily(self, i, j))
    for seed in range(4):
        noise = MatrixNoise(scale, weights, np.random.default_rng(seed), digits)
        drawn = noise.block(ALL, ALL)
        assert (drawn == by_fractions(noise, weights)).all()
    assert sum(refined) > 10 or scale == 5


def test_a_bound_of_zero_decides_wrongly(monkeypatch):
    """The planted fault of the test above: floats alone, with what they were cut at."""
    proposal = MatrixNoise._proposal
    monkeypatch.setattr(MatrixNoise, "_proposal", lambda self, i, j: (proposal(self, i, j)[0], 0.0))
    wrong = 0
    for seed in range(4):
        noise = MatrixNoise(Fraction(100), ones(9), np.random.default_rng(seed), FEW)
        wrong += int((noise.block(ALL, ALL) != by_fractions(noise, ones(9))).sum())
    assert wrong > 5


def test_the_bound_holds_and_is_not_wasteful():
    """The error of the floats, against fractions with more digits: below its bound, by no more than a few hundred."""
    weights = WEIGHTS * 4
    closest = 0.0
    for seed in range(3):
        noise = MatrixNoise(Fraction(11, 7), weights, np.random.default_rng(seed))
        q = np.arange(len(weights))
        y, error = noise._proposal(q, q)
        L = [[[entry(f, i, k, 3) for k in range(i + 1)] for i in q] for f in noise._factors]
        for i in q:
            for j in q[i:]:
                W = [sum(a * b for a, b in zip(m[i], m[j], strict=False)) for m in L]
                exact = noise.scale / 2 * weights[i] * weights[j] * (W[0] - W[1])
                ratio = float(abs(Fraction(float(y[i, j])) - exact) / Fraction(float(error[i, j])))
                assert ratio < 1
                closest = max(closest, ratio)
    assert closest > 1 / 400


def test_blocks_belong_to_one_symmetric_matrix(monkeypatch):
    monkeypatch.setattr(module, "HEIGHT", 7)
    q = 40
    noise = MatrixNoise(Fraction(2**42), ones(q), np.random.default_rng(9))
    rows = [(slice(a, a + 9), slice(b, b + 17)) for a in range(0, q, 9) for b in range(0, q, 17)]
    pieces = np.zeros((q, q), dtype=np.int64)
    for part in np.random.default_rng(10).permutation(len(rows)):
        pieces[rows[part]] = noise.block(*rows[part])
    assert (pieces == noise.block(ALL, ALL)).all()
    assert (pieces == pieces.T).all()
    assert noise.block(slice(3, 3), ALL).shape == (0, q)
    assert noise.block(ALL, slice(q, None)).shape == (q, 0)
    assert noise.block(slice(2, 4), slice(0, 1)).dtype == np.int64


def draws(q, scale, count, seed):
    generator = np.random.default_rng(seed)
    return np.array([MatrixNoise(scale, ones(q), generator).block(ALL, ALL) for _ in range(count)])


def moments_fit(Z, scale, degrees):
    """Variances of diagonal and other entries, and of the trace: 4ν·s²/4, 2ν·s²/4, 4qν·s²/4, each plus rounding's 1/12."""
    q, s = Z.shape[1], float(scale) ** 2 / 4
    i, j = np.triu_indices(q, 1)
    values = [
        (Z[:, i, j], 2 * degrees * s),
        (np.einsum("kii->ki", Z), 4 * degrees * s),
        (np.trace(Z, axis1=1, axis2=2), 4 * q * degrees * s),
    ]
    scores = []
    for drawn, variance in values:
        square = (drawn.astype(float) ** 2).reshape(len(Z), -1).mean(axis=1)
        scores.append(abs(square.mean() - variance) / (square.std() / np.sqrt(len(Z))))
    return max(scores) < 4.5


def test_moments_are_those_of_a_difference_of_wisharts_and_other_degrees_of_freedom_are_rejected():
    q, scale = 5, Fraction(200)
    Z = draws(q, scale, 800, 13)
    assert moments_fit(Z, scale, q + 1)
    assert not moments_fit(Z, scale, q)
    assert not moments_fit(Z, scale, q + 2)
    assert np.abs(Z.mean(axis=0)).max() < 5 * float(scale) * np.sqrt(q + 1) / np.sqrt(800)
    law = wishart(df=q + 1, scale=float(scale) / 2 * np.eye(q), seed=14)
    theirs = law.rvs(800) - law.rvs(800)
    for statistic in (lambda W: W[:, 0, 4], lambda W: W[:, 2, 2], lambda W: np.linalg.eigvalsh(W.astype(float))[:, -1]):
        assert ks_2samp(statistic(Z), statistic(theirs)).pvalue > 1e-4
    assert MatrixNoise(scale, ones(q), np.random.default_rng(0)).deviation(ALL, ALL) == pytest.approx(200 * np.sqrt(3))


def test_noise_beyond_the_machine_word_saturates():
    noise = MatrixNoise(Fraction(2**90), ones(5), np.random.default_rng(16))
    Z = noise.block(ALL, ALL)
    assert set(np.unique(Z)) == {-SATURATION, SATURATION}
    nearly = MatrixNoise(Fraction(2**60), ones(5), np.random.default_rng(16))
    exact = by_fractions(nearly, ones(5))
    assert (np.abs(exact) > SATURATION).any()
    assert (nearly.block(ALL, ALL) == np.clip(exact, -SATURATION, SATURATION)).all()
    assert (nearly.block(ALL, ALL) & 1).any()  # and the others are exact to the last bit


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_matrix_laplace_is_a_difference_of_wisharts_with_dimension_plus_one_degrees(dimension):
    generator = np.random.default_rng(dimension)
    drawn = np.array([simulated_matrix(3.0, dimension, generator) for _ in range(8000)])
    ours = drawn[:, 0, -1]
    law = wishart(df=dimension + 1, scale=1.5 * np.eye(dimension), seed=7)
    theirs = law.rvs(16_000).reshape(16_000, dimension, dimension)[:, 0, -1]
    theirs = theirs[:8000] - theirs[8000:]
    assert ks_2samp(ours, theirs).pvalue > 1e-4
    # The trace, and so the whole diagonal, is a difference of gamma variables with d(d+1)/2 each.
    half = gamma(dimension * (dimension + 1) / 2, scale=3.0)
    traces = half.rvs(8000, random_state=1) - half.rvs(8000, random_state=2)
    assert ks_2samp(np.trace(drawn, axis1=1, axis2=2), traces).pvalue > 1e-4
    if dimension == 1:
        assert kstest(ours, "laplace", args=(0, 3.0)).pvalue > 1e-4
    else:
        assert ours.std() == pytest.approx(3.0 * np.sqrt((dimension + 1) / 2), rel=0.06)


@pytest.mark.parametrize("words", [0, 1, 3])
def test_sums_of_limbs_are_the_sums(words):
    factor = Factor(13, np.random.default_rng(5), FEW)
    for a, b in ((0, 0), (0, 12), (3, 3), (5, 6), (5, 9), (12, 12), (2, 4)):
        low, high = factor.entry(a, b, words)
        total = sum(entry(factor, a, k, words) * entry(factor, b, k, words) for k in range(a + 1))
        assert (low + high) / 2 == total
        assert low < sum(entry(factor, a, k, 6) * entry(factor, b, k, 6) for k in range(a + 1)) < high


def test_numbers_beyond_a_machine_word_are_summed_as_well(monkeypatch):
    """A normal beyond 2^14 has probability e^{−10^8}; its digits pass 64 bits and get a limb of their own."""
    factor = Factor(4, np.random.default_rng(7), STANDARD)
    factor.value[3, 1] = -(2.0**20 + 2.0**-32)
    factor._tails[3] = {1: ((1 << 17) - 5, 17)}  # what the float has no room for
    exact = entry(factor, 3, 1, 0)
    assert exact == -Fraction((((1 << 52) + 1) << 17) + (1 << 17) - 5, 1 << 49)
    for words in (0, 2):
        far = sum(entry(factor, 2, k, words) * entry(factor, 3, k, words) for k in range(3))
        assert sum(factor.entry(2, 3, words)) / 2 == far


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

    class Remembered(module.Normals):
        def __init__(self, *words):
            super().__init__(*words)
            drawn.append(self)

    monkeypatch.setattr(module, "Normals", Remembered)
    monkeypatch.setattr(module, "STRIP", 8 * 12 * 4)  # four rows at a time
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

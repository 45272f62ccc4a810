"""Noise for rows of signs: each entry against far more digits, the law against an independent sampler, and its privacy."""

from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import ks_2samp

from covey.engine.noise import matrix as module
from covey.engine.noise.matrix import MatrixNoise, SignFactor, pair_deviation, simulated_matrix
from covey.engine.noise.normals import STANDARD, Digits
from tests.engine.noise.test_matrix import ALL, FEW, entry, ones

WEIGHTS = [Fraction(7, 3), Fraction(1, 5), Fraction(1), Fraction(2**40 + 1, 2**38), Fraction(3, 4)]

sign_noise = partial(MatrixNoise, signs=True)


def by_decimals(noise, weights, words=5):
    """The whole matrix in decimal arithmetic with far more digits than a draw reads, which must settle every entry."""
    q, p = len(weights), len(weights) - 1
    with localcontext() as context:
        context.prec = 130

        def decimal(x):
            return Decimal(x.numerator) / Decimal(x.denominator)

        sides = []
        for factor in noise._factors:
            L = [[decimal(entry(factor, i, k, words)) for k in range(i + 1)] for i in range(q)]
            low, _ = factor._length(words)
            length = Decimal(low) / (1 << (factor.unit + 64 * words)) / Decimal(p).sqrt()
            for i in range(p):
                norm = sum(x * x for x in L[i]).sqrt()
                L[i] = [x * length / norm for x in L[i]]
            sides.append(L)
        out = np.zeros((q, q), dtype=object)
        for i in range(q):
            for j in range(i, q):
                one, other = (sum(a * b for a, b in zip(L[i], L[j], strict=False)) for L in sides)
                y = decimal(noise.scale / 2 * weights[i] * weights[j]) * (one - other)
                near = (y + Decimal("0.5")).to_integral_value("ROUND_FLOOR")
                assert min(abs(y - near - Decimal("0.5")), abs(y - near + Decimal("0.5"))) > Decimal("1e-40")
                out[i, j] = out[j, i] = int(near)
    return out


@pytest.mark.parametrize(
    ("scale", "weights", "digits"),
    [
        (Fraction(100), ones(7), FEW),
        (Fraction(1, 3), WEIGHTS, FEW),
        (Fraction(2**43), ones(6), STANDARD),
        (Fraction(10**9), WEIGHTS, Digits(x=20, coin=10, cell=30)),
        (Fraction(9), ones(2), FEW),
    ],
)
def test_decisions_agree_with_far_more_digits(scale, weights, digits, monkeypatch):
    """Few digits or a huge scale force the lazy path; no entry may come out differently."""
    refined = []
    lazily = MatrixNoise._one
    monkeypatch.setattr(MatrixNoise, "_one", lambda self, i, j: refined.append(1) or lazily(self, i, j))
    for seed in range(3):
        noise = sign_noise(scale, weights, np.random.default_rng(seed), digits)
        assert (noise.block(ALL, ALL) == by_decimals(noise, weights)).all()
    assert len(refined) > 3


def test_the_bound_holds_and_is_not_wasteful():
    closest = 0.0
    for seed in range(2):
        noise = sign_noise(Fraction(11, 7), ones(8), np.random.default_rng(seed))
        q = np.arange(8)
        y, error = noise._proposal(q, q)
        for i in range(8):
            for j in range(i, 8):
                (a, b), (c, d) = (factor.entry(i, j, 3) for factor in noise._factors)
                assert b - a + d - c < Fraction(1, 2**180)
                exact = noise.scale / 2 * (a - c)
                ratio = float(abs(Fraction(float(y[i, j])) - exact) / Fraction(float(error[i, j])))
                assert ratio < 1
                closest = max(closest, ratio)
    assert closest > 1 / 400


def test_intervals_nest_and_rows_have_one_length():
    """Digits that were subtracted, or read in another place, would leave the bounds that fewer digits gave."""
    factor = SignFactor(5, np.random.default_rng(3), FEW)
    lengths = [[Fraction(end, 1 << (64 * words)) for end in factor._length(words)] for words in range(4)]
    for (low, high), (lower, higher) in pairwise(lengths):
        assert low <= lower < higher <= high
    for i, j in ((0, 0), (1, 3), (2, 4), (4, 4)):
        bounds = [found for found in (factor.entry(i, j, words) for words in range(4)) if found]
        for (a, b), (c, d) in pairwise(bounds):
            assert a <= c <= d <= b
    squares = [factor.entry(i, i, 3)[0] for i in range(4)]
    assert max(squares) - min(squares) < Fraction(1, 2**150)
    assert abs(float(squares[0]) - float(factor.common.value[0]) ** 2 / 4) < 0.01


def independent(p, scale, count, seed):
    """The law by another road: correlations of p + 2 normal vectors, a gamma variable, and a normal row given both."""
    g = np.random.default_rng(seed)
    out = np.zeros((count, p + 1, p + 1))
    for sign in (1, -1):
        G = g.standard_normal((count, p, p + 2))
        G /= np.linalg.norm(G, axis=2, keepdims=True)
        K = G @ G.transpose(0, 2, 1)
        t = g.gamma(p * p / 2 + 1, scale / p, count)
        tK = t[:, None, None] * K
        r = np.einsum("kij,kj->ki", np.linalg.cholesky(tK), g.standard_normal((count, p))) * np.sqrt(scale / 2)
        x = np.einsum("ki,kij,kj->k", r, np.linalg.inv(tK), r) + g.exponential(scale, count)
        out[:, :p, :p] += sign * tK
        out[:, p, :p] += sign * r
        out[:, :p, p] += sign * r
        out[:, p, p] += sign * x
    return out


STATISTICS = (
    lambda W: W[:, 0, 1],
    lambda W: W[:, 0, -1],
    lambda W: W[:, 0, 0],
    lambda W: W[:, -1, -1],
    lambda W: np.linalg.eigvalsh(W.astype(float))[:, -1],
)


def p_values(drawn, p, scale):
    theirs = independent(p, scale, 2000, 5)
    return [ks_2samp(statistic(drawn), statistic(theirs)).pvalue for statistic in STATISTICS]


def simulated(p, scale, count, seed=2):
    g = np.random.default_rng(seed)
    return np.array([simulated_matrix(scale, p + 1, g, signs=True) for _ in range(count)])


def test_the_law_is_that_of_its_cone_and_other_degrees_of_freedom_are_rejected(monkeypatch):
    p, scale, g = 3, 500, np.random.default_rng(1)
    drawn = np.array([sign_noise(Fraction(scale), ones(p + 1), g).block(ALL, ALL) for _ in range(400)])
    assert min(p_values(drawn, p, scale)) > 1e-4
    assert min(p_values(simulated(p, scale, 1500), p, scale)) > 1e-4
    for wrong in (lambda p: p * p, lambda p: p + 2):
        with monkeypatch.context() as patch:
            patch.setattr(module, "common_degrees", wrong)
            assert min(p_values(simulated(p, scale, 1500), p, scale)) < 1e-4


def test_correlations_have_two_degrees_of_freedom_more_than_columns(monkeypatch):
    """With one fewer their density is not that of the cone, and pairs of two columns have noise larger by 15%."""
    stated = 500 * pair_deviation(2)
    assert simulated(2, 500, 2000)[:, 0, 1].std() == pytest.approx(stated, rel=0.06)
    monkeypatch.setattr(module, "degrees", lambda q: q - np.arange(q))
    assert simulated(2, 500, 2000)[:, 0, 1].std() > 1.08 * stated


@pytest.mark.parametrize(("p", "pairs", "sums"), [(8, 0.84, 0.91), (16, 0.90, 0.95), (100, 0.98, 0.99)])
def test_there_is_less_noise_than_in_the_larger_cone(p, pairs, sums):
    noise = sign_noise(Fraction(1000), ones(p + 1), np.random.default_rng(0))
    larger = MatrixNoise(Fraction(1000), ones(p + 1), np.random.default_rng(0)).deviation(ALL, ALL)
    inside, beside = noise.deviation(slice(0, 1), slice(1, p)), noise.deviation(slice(p, p + 1), slice(0, p))
    assert inside / larger == pytest.approx(pairs, abs=0.006)
    assert beside / larger == pytest.approx(sums, abs=0.006)
    assert inside == pytest.approx(1000 * pair_deviation(p))


def test_the_stated_deviations_are_those_of_the_noise():
    drawn = independent(4, 300, 6000, 8)
    noise = sign_noise(Fraction(300), ones(5), np.random.default_rng(0))
    assert drawn[:, 0, 1].std() == pytest.approx(noise.deviation(slice(0, 2), slice(1, 4)), rel=0.05)
    assert drawn[:, 4, 1].std() == pytest.approx(noise.deviation(slice(4, 5), slice(0, 4)), rel=0.05)

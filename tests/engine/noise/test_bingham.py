"""PVEC against closed forms, and the same checks against the envelope that others got upside down."""

import numpy as np
import pytest
from mpmath import hyp1f1, mp
from scipy.special import ive

from covey.engine.codes.counts import integer_scores
from covey.engine.noise.directions import (
    BACKWARD,
    ROUNDING,
    _reflect,
    principal_directions,
    private_directions,
    quantise_directions,
    sample_bingham,
    slack,
)

DRAWS = 20_000


def second_moments(draws):
    """Mean and standard error of v_i² for each coordinate."""
    squares = draws**2
    return squares.mean(axis=0), squares.std(axis=0) / np.sqrt(len(draws)) + 1e-12


def planar(l1, l2):
    """E v₁² in the plane: 1/2 + I₁(d)/(2 I₀(d)), d = (λ₁ − λ₂)/2."""
    d = (l1 - l2) / 2
    return 0.5 + np.sign(d) * ive(1, abs(d)) / (2 * ive(0, abs(d)))


def rank_one(q, concentration):
    """E v₁² for A = λ e₁e₁ᵀ: (1/q)·₁F₁(3/2; q/2+1; λ)/₁F₁(1/2; q/2; λ)."""
    mp.dps = 50
    half = mp.mpf(q) / 2
    return float(hyp1f1(1.5, half + 1, concentration) / hyp1f1(0.5, half, concentration) / q)


def z_scores(draws, expected):
    mean, error = second_moments(draws)
    return np.abs(mean[: len(expected)] - expected) / error[: len(expected)]


@pytest.mark.parametrize("pair", [(0, 0), (1, 0), (0, 1), (-3, -7), (50, 49), (1e6, 0), (-1e6, 0), (5, 5)])
def test_plane_matches_bessel_ratio(pair):
    draws = sample_bingham(np.diag(pair).astype(float), np.random.default_rng(1), DRAWS)
    assert z_scores(draws, [planar(*pair), planar(*pair[::-1])]).max() < 4.5


@pytest.mark.parametrize("q", [2, 3, 5, 50, 200])
@pytest.mark.parametrize("concentration", [0, 1, 30, 1e3, 1e6, -20])
def test_rank_one_matches_the_hypergeometric_ratio(q, concentration):
    size = DRAWS if q < 50 else 4_000
    A = np.zeros((q, q))
    A[0, 0] = concentration
    draws = sample_bingham(A, np.random.default_rng(q), size)
    assert draws.shape == (size, q)
    np.testing.assert_allclose(np.linalg.norm(draws, axis=1), 1)
    assert z_scores(draws, [rank_one(q, concentration)]).max() < 4.5


def test_dimension_one_gives_both_signs():
    draws = sample_bingham(np.array([[3.0]]), np.random.default_rng(0), 1000)
    assert set(draws[:, 0]) == {-1.0, 1.0}
    assert abs(draws.mean()) < 0.15


def test_slack_is_small_where_the_paper_is_used_and_grows_with_every_size():
    ordinary, outside = slack(16, 20_000, 1 / 3, 2)
    assert 0 < ordinary < 1e-7
    assert 0 < outside < 1e-6
    for larger in (
        slack(32, 20_000, 1 / 3, 2),
        slack(16, 40_000, 1 / 3, 2),
        slack(16, 20_000, 1, 2),
        slack(16, 20_000, 1 / 3, 4),
    ):
        assert larger[0] > ordinary
    assert slack(16, 20_000, 1 / 3, 0) == (0.0, 0.0)


@pytest.mark.parametrize("p", [3, 20, 60])
def test_the_errors_that_slack_counts_are_those_of_this_machine(p):
    """Backward errors of the eigensolver and of a reflection, in extended precision: within the allowance, and not far below."""
    generator, worst = np.random.default_rng(p), 0.0
    for scale in (1.0, 1e6):
        G = generator.standard_normal((p, p)) * generator.exponential(1, p)
        A = G @ G.T * scale
        norm = np.linalg.norm(A, 2)
        values, vectors = np.linalg.eigh(A)
        V = vectors.astype(np.longdouble)
        back = np.linalg.norm(((V * values) @ V.T - A).astype(float), 2)
        h = generator.standard_normal(p)
        h /= np.linalg.norm(h)
        H = np.eye(p, dtype=np.longdouble) - 2 * np.outer(h.astype(np.longdouble), h.astype(np.longdouble))
        turned = np.linalg.norm((H @ A @ H - _reflect(A, h)).astype(float), 2)
        worst = max(worst, back / norm, turned / norm)
    assert worst <= BACKWARD * p * ROUNDING
    assert worst > 1e-3 * BACKWARD * p * ROUNDING


def test_the_second_direction_follows_the_bingham_law_of_the_complement():
    """Given v₁ = e₁ (forced by a huge eigenvalue), v₂ lives in the plane e₂, e₃ with its own law.

    Sampling the deflated matrix in all of R³ instead would put v₂ near e₁, whose weight is e⁰ there.
    """
    generator = np.random.default_rng(1)
    A = np.diag([1e7, -2.0, -5.0])
    second = np.array([private_directions(A, 2, generator)[:, 1] for _ in range(4000)])
    error = 0.5 / np.sqrt(4000)
    assert np.abs(second[:, 0]).max() < 0.01
    assert abs(np.mean(second[:, 1] ** 2) - planar(-2, -5)) < 5 * error
    wrong = sample_bingham(np.diag([0.0, -2.0, -5.0]), generator, 4000)
    assert abs(np.mean(wrong[:, 1] ** 2) - planar(-2, -5)) > 20 * error


def test_concentrated_matrices_give_principal_directions():
    generator = np.random.default_rng(2)
    Q = np.linalg.qr(generator.standard_normal((6, 6)))[0]
    S = (Q * np.array([0.5, 0.3, 0.1, 0.05, 0.03, 0.02])) @ Q.T
    V = private_directions(1e8 * S, 2, generator)
    assert np.linalg.norm(V.T @ principal_directions(S, 2)) ** 2 == pytest.approx(2, abs=1e-3)


def test_principal_directions_come_largest_first():
    V = principal_directions(np.diag([1.0, 3.0, 2.0]), 2)
    assert np.abs(V[:, 0]).argmax() == 1
    assert np.abs(V[:, 1]).argmax() == 2
    assert principal_directions(np.eye(3), 0).shape == (3, 0)


@pytest.mark.parametrize("high", [2, 1 << 20])
@pytest.mark.parametrize("p", [300, 20_000])
def test_quantised_scores_of_integer_rows_are_exact_in_any_batch(high, p):
    generator = np.random.default_rng(3)
    P = quantise_directions(np.linalg.qr(generator.standard_normal((p, 3)))[0])
    X = generator.integers(0, high, (24, p), dtype=np.uint32)
    exact = X.astype(np.int64) @ P.astype(np.int64)
    assert (integer_scores(X, P) == exact).all()
    assert (np.concatenate([integer_scores(row[None], P) for row in X]) == exact).all()
    worst = np.sign(P[:, :1]).T > 0  # every term of one sign: the largest partial sums
    assert (integer_scores(worst, P) == worst.astype(np.int64) @ P.astype(np.int64)).all()


@pytest.mark.parametrize(("p", "t"), [(3, 1), (3, 2), (5, 2), (5, 4)])
def test_the_improved_constant_bounds_the_exact_log_density_ratio(p, t):
    """docs/proofs/projection.md: for A = c·Σxxᵀ one replaced row costs PROJ at most c(t+1)."""
    generator = np.random.default_rng(p + t)
    c = 1.3
    worst = 0.0
    for _ in range(60):
        X = generator.standard_normal((4, p)) ** 3
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        Y = X.copy()
        Y[0] = np.roll(np.eye(p)[0], generator.integers(p))
        V = private_directions(c * X.T @ X, t, generator)
        ratio = log_density(c * X.T @ X, V, generator) - log_density(c * Y.T @ Y, V, generator)
        worst = max(worst, abs(ratio))
    assert worst <= c * (t + 1)


def log_density(A, V, generator):
    """Log density of PROJ at the sequence V, the normalisers integrated over one common set of directions."""
    total, p = 0.0, len(A)
    for i in range(V.shape[1]):
        basis = np.linalg.svd(V[:, :i].T, full_matrices=True)[2][i:].T if i else np.eye(p)
        B = basis.T @ A @ basis
        u = np.random.default_rng(i).standard_normal((20_000, p - i))
        u /= np.linalg.norm(u, axis=1, keepdims=True)
        x = basis.T @ V[:, i]
        total += x @ B @ x - np.log(np.mean(np.exp(np.einsum("ij,ij->i", u @ B, u))))
    return total

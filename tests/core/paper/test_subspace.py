"""PROJ: the right law in the complement, and its privacy measured by frequencies."""

import numpy as np
import pytest

from covey.core.paper.subspace import principal_directions, private_directions, quantise_directions, sample_bingham
from covey.core.tables.counts import integer_scores
from tests.audit import epsilon_lower_bound
from tests.core.paper.test_bingham import planar


def test_directions_are_orthonormal():
    generator = np.random.default_rng(0)
    A = np.cov(generator.standard_normal((8, 40)))
    for t in (1, 3, 8):
        V = private_directions(100 * A, t, generator)
        np.testing.assert_allclose(V.T @ V, np.eye(t), atol=1e-10)


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


def directions_for(scale, rows, generator, count):
    return sample_bingham(scale * rows.T @ rows, generator, count)[:, 1] ** 2


def test_proj_keeps_its_promise_and_a_doubled_scale_is_caught():
    """Two rows e₁, one of them replaced by the orthogonal e₂; t = 1, so the paper's scale is ε_P/2."""
    epsilon, count = 4.0, 400_000
    generator = np.random.default_rng(4)
    rows, neighbour = np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])

    def measured(scale):
        return epsilon_lower_bound(*(directions_for(scale, x, generator, count) for x in (rows, neighbour)))

    assert 2.4 < measured(epsilon / 2) <= epsilon  # the exact loss at e₂ is 2 + ln I₀(2) = 2.82
    assert measured(epsilon) > epsilon


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

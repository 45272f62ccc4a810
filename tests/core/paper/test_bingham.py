"""PVEC against closed forms, and the same checks against the envelope that others got upside down."""

import numpy as np
import pytest
from mpmath import hyp1f1, mp
from scipy.special import ive

from covey.core.paper.subspace import (
    BACKWARD,
    ROUNDING,
    Envelope,
    _draw,
    _reflect,
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


def test_equal_eigenvalues_share_their_moment_and_rotation_moves_along():
    generator = np.random.default_rng(5)
    eigenvalues = np.array([7.0, 7.0, 2.0, -4.0, -4.0])
    plain = sample_bingham(np.diag(eigenvalues), generator, DRAWS)
    Q = np.linalg.qr(generator.standard_normal((5, 5)))[0]
    turned = sample_bingham(Q @ np.diag(eigenvalues) @ Q.T, generator, DRAWS) @ Q
    for draws in (plain, turned):
        mean, error = second_moments(draws)
        assert abs(mean[0] - mean[1]) < 5 * error[0]
        assert abs(mean[3] - mean[4]) < 5 * error[3]
        # Adding a multiple of the identity changes nothing on the sphere.
        shifted = second_moments(sample_bingham(np.diag(eigenvalues + 100), generator, DRAWS))[0]
        assert np.abs(mean - shifted).max() < 6 * error.max()
    assert np.abs(second_moments(plain)[0] - second_moments(turned)[0]).max() < 6 * second_moments(plain)[1].max()


class UpsideDown(Envelope):
    """The published mistake: the envelope's factor enters with the wrong sign."""

    def log_acceptance(self, y):
        q, b = len(self.gaps), self.b
        u = (y * y) @ self.gaps
        value = -u - q / 2 * np.log1p(2 * u / b)
        return value - value.max()


def test_the_upside_down_envelope_is_rejected():
    right = Envelope.of(np.array([0.0, 1.0]))
    wrong = UpsideDown(right.gaps, right.b)
    good, bad = (_draw(e, np.random.default_rng(2), DRAWS)[:, ::-1] for e in (right, wrong))
    assert planar(1, 0) == pytest.approx(0.621, abs=0.001)
    assert z_scores(good, [planar(1, 0)]).max() < 4.5
    assert z_scores(bad, [planar(1, 0)]).max() > 20
    assert second_moments(bad)[0][0] == pytest.approx(0.791, abs=0.02)


def test_acceptance_never_exceeds_one_and_stays_cheap():
    generator = np.random.default_rng(3)
    for q, spike in ((3, 10.0), (40, 1e4), (163, 1e6)):
        eigenvalues = np.r_[spike, np.zeros(q - 1)]
        envelope = Envelope.of(eigenvalues)
        acceptance = envelope.log_acceptance(envelope.propose(generator, 2000))
        assert acceptance.max() <= 1e-9
        assert 1 / np.exp(acceptance).mean() < 3 * np.sqrt(q) + 3


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

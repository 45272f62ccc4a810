"""Lemmas 5.1, 5.2, 5.4 and 5.5 with their constants (docs/proofs/pvec.md), and algorithms that they reject."""

import numpy as np
import pytest
from mpmath import hyp1f1, mp, mpf

from covey.engine.noise.directions import private_directions, sample_bingham
from covey.paper.bounds import lemma_5_1, lemma_5_2, lemma_5_5

DRAWS = 4000


def rank_one_mean(q, h):
    """E x for x = 1 − v₁², v from PVEC(h e₁e₁ᵀ): the spectrum to which docs/proofs/pvec.md reduces all others."""
    mp.dps = 40
    a = mpf(q - 1) / 2
    return a / (a + 0.5) * hyp1f1(a + 1, a + 1.5, -h) / hyp1f1(a, a + 0.5, -h)


def losses(A, draws):
    return np.linalg.eigvalsh(A)[-1] - np.einsum("ij,ij->i", draws @ A, draws)


@pytest.mark.parametrize("q", [2, 3, 5, 12, 60])
def test_the_mean_stays_below_the_supersolution_of_the_proof(q):
    a = (q - 1) / 2
    concentrations = np.geomspace(1e-3, 100 * q, 60)
    means = [rank_one_mean(q, h) for h in concentrations]
    assert all(m <= a / (a + 0.5 + mpf(h) / (q + 2)) for m, h in zip(means, concentrations, strict=True))
    # A steeper one is not: the slope 1/(q + 2) is the right one at h = 0.
    assert not all(m <= a / (a + 0.5 + mpf(h) / (q + 1)) for m, h in zip(means, concentrations, strict=True))
    worst = max(float(h * m) for m, h in zip(means, concentrations, strict=True))
    assert 0.5 * (q - 1) < worst <= lemma_5_1(q).value <= (np.sqrt(3) - 1) * (q - 1) + 1e-12
    if q == 2:
        assert worst == pytest.approx(0.6089, abs=0.001)


@pytest.mark.parametrize("seed", range(8))
def test_lemma_5_1_loss_of_pvec_and_of_wrong_ones(seed):
    """PVEC at a quarter of the concentration, or a direction that does not look at A, loses more than the lemma allows."""
    generator = np.random.default_rng(seed)
    q = int(generator.integers(2, 9))
    A = np.diag(np.r_[40.0 * q, 40.0 * q * generator.random(q - 1) ** 2 * 0.5])
    Q = np.linalg.qr(generator.standard_normal((q, q)))[0]
    A = Q @ A @ Q.T

    def least(draws):  # four standard errors below the mean loss
        loss = losses(A, draws)
        return loss.mean() - 4 * loss.std() / np.sqrt(len(loss))

    allowed = lemma_5_1(q).value
    assert least(sample_bingham(A, generator, DRAWS)) <= allowed
    assert least(sample_bingham(A / 4, generator, DRAWS)) > allowed
    uniform = generator.standard_normal((DRAWS, q))
    assert least(uniform / np.linalg.norm(uniform, axis=1, keepdims=True)) > allowed


def test_lemma_5_1_holds_for_spectra_of_every_shape():
    generator = np.random.default_rng(9)
    for _ in range(60):
        q = int(generator.integers(2, 12))
        A = np.diag(generator.gamma(0.3, 1, q) * 10 ** generator.uniform(-1, 3))
        loss = losses(A, sample_bingham(A, generator, 1000))
        assert loss.mean() - 4 * loss.std() / np.sqrt(1000) <= lemma_5_1(q).value


def test_lemma_5_2_squares():
    generator = np.random.default_rng(10)
    for scale in (1.0, 10.0, 200.0):
        A = scale * np.diag([1.0, 0.9, 0.4, 0.0])
        squares = np.einsum("ij,ij->i", (v := sample_bingham(A, generator, DRAWS)) @ A, v) ** 2
        short = scale**2 - squares
        assert short.mean() - 4 * short.std() / np.sqrt(DRAWS) <= lemma_5_2(scale, 4).value


def test_lemma_5_4_compression_keeps_the_tail():
    generator = np.random.default_rng(11)
    p, too_small = 6, 0
    for _ in range(200):
        B = generator.standard_normal((p, p)) * generator.random(p) ** 3
        A, v = B @ B.T, generator.standard_normal(p)
        v = np.linalg.eigh(A)[1][:, -1] + 0.3 * v / np.linalg.norm(v)
        v /= np.linalg.norm(v)
        Q = np.eye(p) - np.outer(v, v)
        whole, left = (np.sort(np.linalg.eigvalsh(M))[::-1] for M in (A, Q @ A @ Q))
        for j in range(1, p + 1):
            extra = (left[j - 1 :] ** 2).sum() - (whole[j:] ** 2).sum()
            sharp = whole[0] ** 2 - 2 * v @ A @ A @ v + (v @ A @ v) ** 2
            assert extra <= sharp + 1e-9 * whole[0] ** 2 <= whole[0] ** 2 - (v @ A @ v) ** 2 + 2e-9 * whole[0] ** 2
            if j == 1:
                assert extra == pytest.approx(sharp, abs=1e-9 * whole[0] ** 2)  # attained: nothing less would do
            too_small += extra > 1e-9 * whole[0] ** 2
    assert too_small > 100  # without any term for the direction that was missed the lemma would be wrong


def wrong_complement(A, t, generator):
    """PROJ that forgets to leave the directions it has: PVEC(A) again and again, orthogonalised afterwards."""
    return np.linalg.qr(sample_bingham(A, generator, t).T)[0]


def random_subspace(A, t, generator):
    return np.linalg.qr(generator.standard_normal((len(A), t)))[0]


@pytest.mark.parametrize(
    ("proj", "right"), [(private_directions, True), (wrong_complement, False), (random_subspace, False)]
)
def test_lemma_5_5_tail_of_proj_and_of_wrong_ones(proj, right):
    """Three strong directions of eight, so that any subspace that misses one of them leaves a tail beyond the bound."""
    generator = np.random.default_rng(12)
    eigenvalues = np.array([900.0, 800, 700, 1, 1, 1, 0, 0])
    Q = np.linalg.qr(generator.standard_normal((8, 8)))[0]
    A, t = (Q * eigenvalues) @ Q.T, 3
    tails = np.empty(400)
    for i in range(len(tails)):
        V = proj(A, t, generator)
        R = np.eye(8) - V @ V.T
        tails[i] = np.linalg.norm(R @ A @ R) ** 2
    least = tails.mean() - 4 * tails.std() / np.sqrt(len(tails))
    assert (least <= lemma_5_5(eigenvalues, t).value) == right

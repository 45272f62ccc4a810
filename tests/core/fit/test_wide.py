"""Fits without p × p work agree with the dense ones they stand for, on every kind of array."""

import importlib.util
from fractions import Fraction

import array_api_strict
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from audits.gates import a_budget, a_gate
from covey.core.fit.centres import fit_category_centres
from covey.core.fit.descent import descend_on
from covey.core.fit.devices import PROCESSOR, Device, find_device
from covey.core.fit.factors import (
    NoisyMoments,
    denoise_moments,
    empirical_bayes,
    fit_factors,
    fit_mixture,
)
from covey.core.fit.lowrank import core, leading_eigenvectors, moment_gap
from covey.core.fit.spectrum import pair_covariances
from covey.core.fit.terms import Scores, fit_centres, hollow, moment_term, score_term
from covey.core.fit.wide import (
    PARTNERS,
    Rest,
    denoise_wide,
    fit_wide_centres,
    fit_wide_factors,
    make_partners,
    moment_term_in,
    score_term_in,
    total_on,
)
from covey.core.noise.pairlaw import PairLaw
from covey.core.noise.samplers import CoveyNoise
from covey.core.tables.coding import UNIT, Coding
from covey.core.tables.domain import Domain
from covey.errors import MissingExtraError, ParameterError
from covey.methods.regain.measure import _on_cells
from covey.privacy.gate import Exact, Moves

STRICT = Device("strict", array_api_strict)
DEVICES = [PROCESSOR, STRICT]


@pytest.fixture(params=[*DEVICES, "torch:cpu", "cuda"], ids=["numpy", "strict", "torch", "cuda"])
def device(request):
    if isinstance(request.param, Device):
        return request.param
    try:
        return find_device(request.param)
    except (MissingExtraError, ParameterError) as error:
        pytest.skip(str(error))


def basis(p, r, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((p, r)))[0]


def noisy_table(n=4000, p=160, sd=0.01, clips=False, seed=0):
    """Noisy moments of a logistic factor table with a few strongly tied pairs, and the true ones."""
    g = np.random.default_rng(seed)
    logits = g.normal(-2.5 if clips else -1, 1, p) + g.standard_normal((n, 3)) @ g.normal(0, 0.8, (3, p))
    X = (g.random((n, p)) < expit(logits)).astype(np.uint8)
    X[:, 1:20:2] = X[:, 0:20:2]
    coding = Coding.half(p)
    if clips:
        centre = np.rint(X.mean(axis=0) * UNIT).astype(np.int64)
        coding = Coding(centre, int(np.quantile(((X - centre / UNIT) ** 2).sum(axis=1), 0.85) * UNIT**2), clips=True)
    u = coding.encode(X) / UNIT
    noise = np.triu(g.normal(0, sd, (p, p)), 1)
    pair = hollow(u.T @ u / n + noise + noise.T)
    mean = u.mean(axis=0) + g.normal(0, sd, p)
    return NoisyMoments(coding, mean, sd, pair, sd), X


def error(X, y):
    gap = hollow(X.T.astype(float) @ X / len(X) - y.T @ y / len(y))
    return float(np.sqrt((gap**2).mean()))


def test_the_gap_in_a_basis_is_the_dense_one(device):
    g = np.random.default_rng(1)
    F, Q = g.standard_normal((30, 90)), basis(90, 12)
    M = g.standard_normal((12, 12))
    M = M + M.T
    gap = hollow(F.T @ F / 30 - Q @ M @ Q.T)
    norm, pull = moment_gap(device.xp, device.put(F), core(device.xp, device.put(Q), device.put(M)))
    assert norm == pytest.approx((gap**2).sum(), rel=1e-5)
    assert device.get(pull) == pytest.approx(F @ gap, abs=1e-4 * np.abs(F @ gap).max())


def test_a_small_gap_survives_single_precision():
    # The target is the points' own second moments up to one part in 2000: differences of large numbers would lose it.
    Q, g = basis(90, 12), np.random.default_rng(2)
    F = 10 * g.standard_normal((40, 12)) @ Q.T
    M = Q.T @ (F.T @ F / 40) @ Q + 5e-3 * np.eye(12)
    norm, _ = moment_gap(np, F.astype("f4"), core(np, Q.astype("f4"), M.astype("f4")))
    dense = hollow(F.T @ F / 40 - Q @ M @ Q.T)
    assert norm == pytest.approx((dense**2).sum(), rel=0.05)


def test_subspace_iteration_finds_what_stands_out_of_noise(device):
    p, g = 200, np.random.default_rng(3)
    noise = g.standard_normal((p, p)) / np.sqrt(2 * p)
    T = (basis(p, 6, 4) * np.array([9.0, 7, 5, 4, 3, -8])) @ basis(p, 6, 4).T + noise + noise.T
    d = g.random(p)
    w, v = np.linalg.eigh(T + np.diag(d))
    start = device.put(g.standard_normal((p, 40)))
    values, vectors = leading_eigenvectors(device.xp, device.put(T), device.put(d), start, 10)
    assert device.get(values)[:5] == pytest.approx(w[::-1][:5], rel=1e-3)
    found = device.get(vectors)
    assert np.abs((found[:, :5] * v[:, ::-1][:, :5]).sum(axis=0)) == pytest.approx(np.ones(5), abs=1e-2)
    assert found.T @ found == pytest.approx(np.eye(40), abs=1e-4)


@pytest.mark.parametrize("clips", [False, True])
def test_moment_term_in_a_basis_is_the_dense_one(device, clips):
    p, g = 80, np.random.default_rng(5)
    coding = Coding(g.integers(0, UNIT // 4, p), p * UNIT**2 // 16, clips=True) if clips else Coding.half(p)
    mean, Q, M = g.normal(0, 0.1, p), basis(p, 10), np.diag(g.random(10))
    y = g.random((24, p)).astype("f4")
    i, j, effect = np.array([3, 7, 3]), np.array([9, 30, 12]), np.array([0.2, -0.1, 0.4])
    sparse = np.zeros((p, p))
    sparse[i, j] = sparse[j, i] = effect
    loss, slope = moment_term(coding, mean, 0.02, hollow(Q @ M @ Q.T + sparse), 0.03)(y)
    target = core(device.xp, device.put(Q), device.put(M))
    partners = make_partners(device, i, j, effect, target)
    got, got_slope = moment_term_in(device, coding, mean, 0.02, target, 0.03, partners)(device.put(y))
    assert got == pytest.approx(loss, rel=1e-4)
    assert device.get(got_slope) == pytest.approx(slope, abs=1e-4 * float(np.abs(slope).max()))


def test_score_term_on_a_device_is_the_same(device):
    g = np.random.default_rng(6)
    scores = Scores(basis(50, 3), np.sort(g.normal(0, 1, (3, 7)), axis=1), np.full((3, 8), 1 / 8), 0.01)
    y = g.random((20, 50)).astype("f4")
    loss, slope = score_term(scores)(y)
    got, got_slope = score_term_in(device, scores)(device.put(y))
    assert got == pytest.approx(loss, rel=1e-4)
    assert device.get(got_slope) == pytest.approx(slope, abs=1e-3 * float(np.abs(slope).max()))


def test_descent_reaches_what_scipy_reaches(device):
    g = np.random.default_rng(7)
    A = g.standard_normal((60, 40)) * np.geomspace(1, 30, 40)
    b = g.standard_normal(60)
    put_A, put_b, xp = device.put(A), device.put(b), device.xp

    def on_device(x):
        gap = put_A @ x - put_b
        return float(xp.sum(gap * gap + xp.exp(-gap * gap), dtype=xp.float64)), xp.matrix_transpose(put_A) @ (
            2 * gap * (1 - xp.exp(-gap * gap))
        )

    def dense(x):
        gap = A @ x - b
        return float((gap**2 + np.exp(-(gap**2))).sum()), A.T @ (2 * gap * (1 - np.exp(-(gap**2))))

    best = minimize(dense, np.ones(40), jac=True, method="L-BFGS-B", options={"maxiter": 150, "maxcor": 6})
    found = device.get(descend_on(xp, on_device, device.put(np.ones(40)), 150))
    assert dense(found)[0] <= best.fun * 1.01
    assert dense(device.get(descend_on(xp, on_device, device.put(np.ones(40)), 3)))[0] > best.fun * 1.01


def test_the_mixture_of_a_histogram_is_that_of_the_effects():
    g = np.random.default_rng(8)
    x = g.normal(0, 1, 20_000) + np.where(g.random(20_000) < 0.05, g.normal(0, 6, 20_000), 0)
    exact = fit_mixture(x * x, 1.0)
    values, counts = np.unique(np.round(np.abs(x), 2), return_counts=True)
    binned = fit_mixture(values**2, 1.0, counts.astype(float))
    assert binned.share == pytest.approx(exact.share, rel=0.02)
    assert binned.wide == pytest.approx(exact.wide, rel=0.02)
    assert 0.03 < exact.share < 0.07
    effect, probability, wide = empirical_bayes(x, 1.0)
    assert wide == exact.wide
    assert (np.abs(effect) <= np.abs(x)).all()
    assert probability[np.abs(x) > 8].min() > 0.99 > 0.5 > probability[np.abs(x) < 1].max()


@pytest.mark.parametrize("clips", [False, True])
def test_strong_pairs_are_found_strip_by_strip(clips, monkeypatch):
    noisy, X = noisy_table(clips=clips)
    p = X.shape[1]
    centres = np.tile(X.mean(axis=0), (4, 1))
    nothing = core(np, np.zeros((p, 2), "f4"), np.zeros((2, 2), "f4"))
    found = []
    for entries in (1 << 22, 7 * p):
        monkeypatch.setattr("covey.core.arrays.STRIP", entries)
        rest = Rest(PROCESSOR, noisy.pair.astype("f4"), nothing, centres, noisy.coding)
        mixture, limit = rest.mixture(noisy.pair_sd)
        found.append((mixture, *rest.strong_pairs(mixture, limit)))
    assert found[0][0].share == pytest.approx(found[1][0].share)
    assert (found[0][1] == found[1][1]).all()
    _, i, j, effect = found[0]
    assert (i < j).all()
    assert np.bincount(np.concatenate([i, j])).max() <= PARTNERS
    tied = {(a, a + 1) for a in range(0, 20, 2)}
    assert len(tied & set(zip(i.tolist(), j.tolist(), strict=True))) >= 8
    assert np.abs(effect).min() > noisy.pair_sd


def dense_fit(noisy, k, r, public):
    now, f, _, target = denoise_moments(noisy, k, r, public, lambda t: None)
    u = target.mean - 0.5
    pair = hollow(target.pair - (target.mean[:, None] + target.mean) / 2 + 0.25)
    fine = moment_term(Coding.half(len(u)), u, now.mean_sd / 5, pair, now.pair_sd / 5)
    return fit_centres([fine], f.logits, 60)


def wide_fit(device, noisy, k, r, public):
    fit = denoise_wide(noisy, k, r, device, public, lambda t: None)
    return fit_wide_centres(device, [fit.fine], fit.factors.logits, 60)


@pytest.mark.parametrize("clips", [False, True])
def test_the_wide_fit_is_as_accurate_as_the_dense_one(clips, monkeypatch):
    monkeypatch.setattr("covey.core.fit.wide.BASIS", 60)
    noisy, X = noisy_table(clips=clips)
    dense = error(X, dense_fit(noisy, 60, 6, np.random.default_rng(9)))
    wide = error(X, wide_fit(PROCESSOR, noisy, 60, 6, np.random.default_rng(9)))
    blind = error(X, np.tile(X.mean(axis=0), (2, 1)))
    assert wide < 1.1 * dense < 0.6 * blind


def test_devices_give_the_same_centres(device, monkeypatch):
    monkeypatch.setattr("covey.core.fit.wide.BASIS", 60)
    noisy, X = noisy_table(n=1000)
    here = wide_fit(PROCESSOR, noisy, 40, 4, np.random.default_rng(10))
    there = wide_fit(device, noisy, 40, 4, np.random.default_rng(10))
    # Single precision in another order drifts apart over hundreds of steps, by less than the noise, and is no less accurate.
    drift = there.mean(axis=0) - here.mean(axis=0)
    assert np.sqrt(np.mean(drift**2)) < 0.5 * noisy.mean_sd
    assert error(X, there) == pytest.approx(error(X, here), rel=0.05)


def test_devices_take_the_same_first_steps(device, monkeypatch):
    monkeypatch.setattr("covey.core.fit.wide.BASIS", 60)
    noisy, _ = noisy_table(n=1000, clips=True)
    here, there = (
        denoise_wide(noisy, 40, 4, d, np.random.default_rng(10), lambda t: None, rounds=1, steps=4).factors.centres
        for d in (PROCESSOR, device)
    )
    assert there == pytest.approx(here, abs=2e-3)


@pytest.mark.parametrize("hold", [None, 0.1])
def test_factors_on_a_device_reach_the_dense_posterior_mode(device, hold, monkeypatch):
    monkeypatch.setattr("covey.core.fit.wide.BASIS", 60)
    noisy, _ = noisy_table(n=1000, p=60)
    public = np.random.default_rng(11)
    _, f, prior, _ = denoise_moments(noisy, 30, 3, public, lambda t: None, rounds=1, steps=2)
    w, v = np.linalg.eigh(noisy.pair)
    target = core(device.xp, device.put(v), device.put(np.diag(w)))
    dense = moment_term(noisy.coding, noisy.mean, noisy.mean_sd, noisy.pair, noisy.pair_sd)
    near = moment_term_in(device, noisy.coding, noisy.mean, noisy.mean_sd, target, noisy.pair_sd)
    a = fit_factors([dense], f, prior, 40, hold)
    b = fit_wide_factors(device, [near], f, prior, 40, hold)
    before, after, reached = (dense(x.centres.astype("f4"))[0] for x in (f, a, b))
    assert reached < after + 0.02 * (before - after)
    assert total_on(device.xp, [near], device.put(a.logits))[0] == pytest.approx(after, rel=1e-3)


def category_population(q=40, c=4, k=3, seed=12):
    """Shares and pair covariances of a mixture of k products of categorical laws."""
    g = np.random.default_rng(seed)
    y = np.hstack([g.dirichlet(np.ones(c), k) for _ in range(q)])
    shares = y.mean(axis=0)
    return Domain((c,) * q, (False,) * q), shares, (y - shares).T @ (y - shares) / k


def test_many_categories_are_denoised_and_fitted_like_few(monkeypatch):
    domain, shares, truth = category_population()
    truth = domain.off_blocks(truth)
    law = PairLaw("gaussian", domain, Fraction(1))
    sd, g = 0.02, np.random.default_rng(13)
    mean = shares - np.repeat(1 / domain.counts, domain.counts)
    noisy = domain.centre(domain.off_blocks(truth + np.outer(mean, mean))) + sd * law.simulate(g)
    errors, gaps = {}, {}
    for kind, limit in (("few", 10_000), ("many", 100)):
        for place in ("spectrum", "centres"):
            monkeypatch.setattr(f"covey.core.fit.{place}.WIDE_CATEGORIES", limit)
            monkeypatch.setattr(f"covey.core.fit.{place}.BASIS", 40)
        public = np.random.default_rng(14)
        found = pair_covariances(noisy, lambda: sd * law.simulate(public), sd, shares, domain, public)  # noqa: B023
        errors[kind] = np.sqrt(np.mean((domain.off_blocks(found) - truth) ** 2))
        y = fit_category_centres(shares, found, domain, 60, 200, public, lambda t: None)
        assert np.add.reduceat(y, domain.starts[:-1], axis=1) == pytest.approx(np.ones((60, 40)))
        gaps[kind] = np.sqrt(np.mean(domain.off_blocks(y.T @ y / 60 - np.outer(shares, shares) - truth) ** 2))
    assert errors["many"] < 1.15 * errors["few"] < 0.5 * sd
    assert gaps["many"] < 1.15 * gaps["few"] < 0.5 * np.sqrt(np.mean(truth**2))


def test_noise_for_many_attributes_has_the_law_of_noise_for_few(monkeypatch):
    sizes = (2, 3, 2, 5, 3, 2)
    law = PairLaw("gaussian", Domain(sizes, (False,) * 6), Fraction(9))
    source, zero = CoveyNoise(np.random.default_rng(15)), Exact(np.zeros((17, 17), dtype=np.int64))
    monkeypatch.setattr("covey.core.noise.pairlaw.MANY", 3)
    budget = a_budget(1, pure=False)
    amount = budget.variance(1) / law.scale  # a row that moves the tables by 1 gets noise of this variance

    def draw():
        gate = a_gate("pairs", amount=amount, pure=False, source=source)
        return _on_cells(zero, law, gate, Moves(l2_squared=1))

    drawn = np.array([draw() for _ in range(3000)])
    assert (drawn == drawn.transpose(0, 2, 1)).all()
    d = law.domain
    assert (drawn[:, d.same_block] == 0).all()
    expected = 9.0 * np.outer(d.counts[d.block_of], d.counts[d.block_of]) ** 2
    spread = drawn.var(axis=0)[~d.same_block] / expected[~d.same_block]
    assert spread == pytest.approx(np.ones(len(spread)), abs=0.17)
    upper = np.triu_indices(d.total, 1)
    flat = drawn[:, *upper][:, ~d.same_block[upper]].astype(float)
    assert np.abs(np.corrcoef(flat.T) - np.eye(flat.shape[1])).max() < 0.1


def test_devices_are_found_by_name():
    assert find_device("cpu") is PROCESSOR
    for name in ("gpu", "torch", "", "cupy:0", 3):
        with pytest.raises(ParameterError, match="device must be"):
            find_device(name)


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="PyTorch is here")
def test_a_missing_library_names_its_extra():
    with pytest.raises(MissingExtraError, match=r"covey\[gpu\]"):
        find_device("torch:cpu")
    if importlib.util.find_spec("cupy") is None:
        with pytest.raises(MissingExtraError, match=r"covey\[gpu\]"):
            find_device("cuda")

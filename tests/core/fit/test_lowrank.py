"""Second moments in a narrow basis are those of the matrix."""

import numpy as np
import pytest

from covey.core.arrays import hollow
from covey.core.fit.wide import core, imputed_directions, leading_eigenvectors, moment_gap
from tests.core.fit.examples import basis


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


def test_entries_that_are_not_known_are_imputed():
    p, Q = 60, basis(60, 3, 6)
    truth = (Q * np.array([9.0, 6, 4])) @ Q.T
    i = np.arange(p)
    start = np.random.default_rng(7).standard_normal((p, 6))
    errors = {}
    for rounds in (1, 6):
        values, vectors = imputed_directions(hollow(truth), (i, i), start, lambda v: np.maximum(v, 0), rounds)
        errors[rounds] = np.abs((vectors * values) @ vectors.T - truth).max()
    assert errors[6] < 0.3 * errors[1]  # zeros on the diagonal are not what was there

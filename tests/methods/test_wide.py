"""Measurements of wide tables: noise in strips is the noise of the whole, and estimates of memory are near the truth."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from audits.gates import a_budget, a_gate, asked, fit_bits
from covey.core.tables.counts import UNIT, Coding
from covey.engines.local import ArrayRows
from covey.entropy import Streams
from covey.methods.regain.bits import leading_directions, measure_ball, measure_matrix, plan_bits
from covey.methods.regain.predict import flag_matrices
from covey.privacy.budget import make_budget

N, P = 400, 40


def bits(n=N, p=P):
    return (np.random.default_rng(0).random((n, p)) < 0.3).astype(np.uint8)


@pytest.mark.parametrize("rows", [1, 7, P])
def test_matrix_noise_does_not_depend_on_the_strips(rows, monkeypatch):
    whole = asked(measure_matrix, ArrayRows(bits()), a_gate("moments", amount=3)).dense
    monkeypatch.setattr("covey.core.arrays.STRIP", rows * P)
    parts = asked(measure_matrix, ArrayRows(sp.csr_array(bits())), a_gate("moments", amount=3)).dense
    assert (parts.pair == whole.pair).all()
    assert (parts.mean == whole.mean).all()


class Counting:
    """Noise 1, 2, 3, …: it shows which sum got which draw."""

    def __init__(self):
        self.drawn = 0

    def gaussian(self, variance, size):
        count = int(np.prod(size))
        self.drawn += count
        return np.arange(self.drawn - count, self.drawn).reshape(size) + 1


@pytest.mark.parametrize("rows", [1, 7, P])
@pytest.mark.parametrize("clips", [False, True])
def test_every_pair_gets_a_draw_of_its_own(rows, clips, monkeypatch):
    monkeypatch.setattr("covey.core.arrays.STRIP", rows * P)
    declared = Coding(np.full(P, 300), 6 * UNIT**2, clips=True) if clips else Coding.half(P)
    plan = plan_bits(N, P, a_budget(5, pure=False), declared)
    gate = a_gate("moments", amount=5, pure=False, source=Counting())
    got = asked(measure_ball, ArrayRows(bits()), gate, plan).dense
    u = declared.encode(bits())
    noise = got.pair * N * UNIT**2 - u.T @ u
    upper = np.triu_indices(P, 1)
    assert noise[upper] == pytest.approx(P + 1 + np.arange(len(upper[0])), abs=1e-3)
    assert (got.pair == got.pair.T).all()
    assert (np.diag(got.pair) == 0).all()
    assert got.mean * N * UNIT - u.sum(axis=0) == pytest.approx(1 + np.arange(P), abs=1e-6)


def test_leading_directions_come_from_either_side():
    y = np.random.default_rng(2).standard_normal((30, 12)) * np.geomspace(3, 1, 12)
    w, v = leading_directions(y, 4)
    for tall, wide in ((y, np.vstack([y, np.zeros((60, 12))]) * np.sqrt(3)), (y.T.copy(), None)):
        values, vectors = leading_directions(tall, 4)
        k = len(tall)
        assert tall.T @ (tall @ vectors) / k == pytest.approx(vectors * values, abs=1e-9)
        assert vectors.T @ vectors == pytest.approx(np.eye(4), abs=1e-9)
        if wide is not None:
            assert leading_directions(wide, 4)[0] == pytest.approx(w)
    assert v.shape == (12, 4)


def test_the_estimate_of_memory_is_near_the_truth(monkeypatch):
    # Few steps and few rows: matrices of pairs are what is measured here, and they are the same in a full run.
    for name in ("SWEEPS", "BASIS"):
        monkeypatch.setattr(f"covey.core.fit.wide.{name}", {"SWEEPS": 1, "BASIS": 20}[name])
    monkeypatch.setattr("covey.core.fit.devices.descend_on", lambda xp, objective, x, steps: x)
    p, n = 1600, 300
    rows = ArrayRows((np.random.default_rng(3).random((n, p)) < 0.05).astype(np.uint8))
    tracemalloc.start()
    try:
        fit_bits(rows, make_budget(100.0, 1e-9), Streams.from_seed(1))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= flag_matrices(p) <= 3 * peak

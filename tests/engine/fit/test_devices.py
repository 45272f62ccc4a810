"""Devices are found by name, and numbers arrive there and come back."""

import numpy as np
import pytest
from scipy.optimize import minimize

from covey.engine.fit.devices import DOUBLE, descend


def test_numbers_travel_in_single_precision_and_come_back(device):
    there = device.put(np.array([[1 / 3, 2.0], [-1.0, 0.0]]))
    assert device.get(there) == pytest.approx(np.array([[1 / 3, 2.0], [-1.0, 0.0]]), rel=1e-7)
    assert device.get(there).dtype == np.float64
    assert device.get32(device.single(there)).dtype == np.float32
    assert device.get(device.sigmoid(there)) == pytest.approx(1 / (1 + np.exp(-device.get(there))), rel=1e-6)
    third = np.array([1 / 3])
    assert DOUBLE.vector(third)[0] == 1 / 3 != device.get(device.vector(third))[0]  # what is fitted


G = np.random.default_rng(7)
A = G.standard_normal((60, 40)) * np.geomspace(1, 30, 40)
B = G.standard_normal(60)


def dense(x):
    gap = A @ x - B
    return float((gap**2 + np.exp(-(gap**2))).sum()), A.T @ (2 * gap * (1 - np.exp(-(gap**2))))


def on(device):
    """The same objective in the arrays of a device."""
    put_A, put_B, xp = device.put(A), device.put(B), device.xp

    def objective(x):
        gap = put_A @ device.single(x) - put_B
        slope = xp.matrix_transpose(put_A) @ (2 * gap * (1 - xp.exp(-gap * gap)))
        return float(xp.sum(gap * gap + xp.exp(-gap * gap), dtype=xp.float64)), slope

    return objective


def test_descent_reaches_what_scipy_reaches_in_double_precision(device):
    best = minimize(dense, np.ones(40), jac=True, method="L-BFGS-B", options={"maxiter": 150, "maxcor": 6}).fun
    for there in (device, DOUBLE):
        assert dense(descend(there, on(there), np.ones(40), 150))[0] <= best * 1.01
        assert dense(descend(there, on(there), np.ones(40), 3))[0] > best * 1.01  # so few steps do not get there

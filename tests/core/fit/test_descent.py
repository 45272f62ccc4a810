"""L-BFGS on every device reaches what scipy's reaches."""

import numpy as np
from scipy.optimize import minimize

from covey.core.fit.devices import DOUBLE, descend

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


def test_a_start_that_is_the_minimum_stays():
    for there in (DOUBLE,):
        assert (descend(there, lambda x: (float(x @ x), 2 * x), np.zeros(5), 10) == 0).all()

"""OpenDP's samplers, as an oracle for covey's own: vetted by others, they draw from the operating system and take no seed."""

import opendp.prelude as dp

dp.enable_features("contrib")


def added_to_zeros(metric, make, scale, size):
    """What a mechanism of OpenDP makes of so many zeros."""
    space = dp.vector_domain(dp.atom_domain(T="i64")), metric
    return make(*space, scale=scale)([0] * size)


def laplace(scale, size):
    """P(y) ∝ exp(−|y|/scale)."""
    return added_to_zeros(dp.l1_distance(T="i64"), dp.m.make_laplace, float(scale), size)


def gaussian(variance, size):
    """P(y) ∝ exp(−y²/(2·variance)): the discrete Gaussian, which covey's rounded one is not."""
    return added_to_zeros(dp.l2_distance(T="f64"), dp.m.make_gaussian, float(variance) ** 0.5, size)

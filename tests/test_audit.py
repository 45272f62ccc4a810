import numpy as np

from tests.audit import epsilon_lower_bound


def test_the_audit_is_tight_and_sound_on_the_laplace_mechanism():
    generator = np.random.default_rng(0)
    for epsilon in (0.5, 2.0):
        a, b = generator.laplace(0, 1 / epsilon, 400_000), generator.laplace(1, 1 / epsilon, 400_000)
        assert 0.95 * epsilon < epsilon_lower_bound(a, b) <= epsilon


def test_the_audit_says_nothing_about_equal_laws():
    generator = np.random.default_rng(1)
    assert epsilon_lower_bound(generator.random(10_000), generator.random(10_000)) < 0.05

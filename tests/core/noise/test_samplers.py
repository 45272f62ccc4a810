"""Noise sources: each draws the laws it names, in the shape and type that meet the data."""

from fractions import Fraction

import numpy as np
import pytest

from covey.core.noise.integers import CoveyNoise


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_covey_noise_has_the_scale_it_was_asked_for(law):
    source = CoveyNoise(np.random.default_rng(3))
    drawn = getattr(source, law)(Fraction(9), (100, 200))
    assert drawn.shape == (100, 200)
    assert drawn.dtype == np.int64
    sd = np.sqrt(2) * 9 if law == "laplace" else 3
    assert drawn.std() == pytest.approx(sd, rel=0.03)
    assert drawn.std() != pytest.approx(sd * 1.1, rel=0.03)

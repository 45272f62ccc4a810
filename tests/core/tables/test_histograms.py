"""One-way tables without their noise: counts again, and nearer to the truth."""

import numpy as np
import pytest

from covey.core.tables.histograms import denoise_histogram, denoisers, project_to_total


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("size", [2, 5, 40])
def test_denoised_histograms_are_counts_and_beat_the_noise(size, ordered):
    generator = np.random.default_rng(size)
    truth = np.sort(generator.dirichlet(np.full(size, 0.5)))[::-1] * 5000
    sd, better = 40.0, []
    for _ in range(20):
        noisy = truth + generator.normal(0, sd, size)
        found = denoise_histogram(noisy, sd, 5000.0, ordered, generator)
        assert found.min() >= 0
        assert found.sum() == pytest.approx(5000)
        better.append(np.sum((found - truth) ** 2) - np.sum((noisy - truth) ** 2))
    assert np.mean(better) < 0
    for candidate in denoisers(size, ordered):
        assert candidate(noisy, sd, 5000.0).sum() == pytest.approx(5000)


def test_histograms_of_pure_noise_stay_sane():
    generator = np.random.default_rng(1)
    for scale in (1e3, 1e12):
        found = denoise_histogram(generator.normal(0, scale, 6), scale, 10.0, False, generator)
        assert np.isfinite(found).all()
        assert found.sum() == pytest.approx(10)
    assert project_to_total(np.array([-5.0, -7.0]), 4.0).sum() == pytest.approx(4)

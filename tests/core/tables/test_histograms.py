"""One-way tables without their noise: counts again, and nearer to the truth."""

import numpy as np
import pytest

from covey.core.fit.shrinkage import (
    denoise_histogram,
    denoisers,
    group_counts,
    grouped_bins,
    grouped_histogram,
    project_to_total,
)


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


# Categories in groups: groups come out right, rare categories are shaped by their group.


GROUPS = np.repeat(np.arange(20), 30)  # twenty groups of thirty categories


def truth():
    generator = np.random.default_rng(0)
    share = np.repeat(generator.dirichlet(np.full(20, 0.5)), 30) * generator.dirichlet(np.full(30, 0.2), 20).ravel()
    return generator.multinomial(20_000, share)


def test_groups_are_closer_than_sums_of_categories_and_no_category_suffers():
    counts, generator = truth(), np.random.default_rng(1)
    sd = 30.0
    errors = []
    for _ in range(5):
        v = counts + generator.normal(0, sd * np.sqrt(4 / 3), 600)  # a quarter of the budget went to the groups
        g = group_counts(counts, GROUPS) + generator.normal(0, sd * 2, 20)
        plain = denoise_histogram(counts + generator.normal(0, sd, 600), sd, 20_000, False, generator)
        found = grouped_histogram((v, sd * np.sqrt(4 / 3)), (g, sd * 2), GROUPS, 20_000, generator)
        assert found.min() >= 0
        assert found.sum() == pytest.approx(20_000)
        groups = [np.bincount(GROUPS, x) - group_counts(counts, GROUPS) for x in (plain, found)]
        errors.append([np.abs(e).sum() for e in (*groups, plain - counts, found - counts)])
    coarse, grouped, fine, fine_grouped = np.mean(errors, axis=0)
    assert grouped < 0.6 * coarse
    assert fine_grouped < 1.05 * fine


def test_rare_categories_share_a_bin_with_their_group_and_common_ones_are_alone():
    share = np.array([0.3, 0.001, 0.002, 0.2, 0.05, 0.05, 0.0001, 0.0002, 0.3967])
    groups = np.array([0, 0, 0, 1, 1, 1, 2, 3, 4])
    bins = grouped_bins(share, groups, 0.06, 40, np.zeros(9, dtype=int))
    assert bins[1] == bins[2] != bins[0]
    assert bins[4] == bins[5] != bins[3]
    assert bins[1] == bins[6] == bins[7]  # these groups are rare themselves: with all others
    assert sorted(set(bins)) == list(range(bins.max() + 1))
    # What a rule tells apart stays apart.
    split = grouped_bins(share, groups, 0.06, 40, np.array([0, 0, 1, 0, 0, 0, 0, 0, 0]))
    assert split[1] != split[2]
    few = grouped_bins(np.full(600, 1 / 600), GROUPS, 1e-4, 20, np.zeros(600, dtype=int))
    assert few.max() + 1 <= 20

"""Pair covariances: shrinkage beats noise, and many categories fare as few."""

from fractions import Fraction

import numpy as np
import pytest

from covey.engine.codes.domain import Domain
from covey.engine.fit import spectrum, wide
from covey.engine.fit.centres import Goal, fit_category_centres
from covey.engine.fit.spectrum import Denoisers, noisy_spectrum
from covey.engine.noise.law import GAUSSIAN
from covey.engine.noise.pairlaw import PairLaw


def category_population(q=40, c=4, k=3, seed=12):
    """Shares and pair covariances of a mixture of k products of categorical laws."""
    g = np.random.default_rng(seed)
    y = np.hstack([g.dirichlet(np.ones(c), k) for _ in range(q)])
    shares = y.mean(axis=0)
    return Domain((c,) * q, (False,) * q), shares, (y - shares).T @ (y - shares) / k


def test_many_categories_are_denoised_and_fitted_like_few(monkeypatch):
    domain, shares, truth = category_population()
    truth = domain.off_blocks(truth)
    law = PairLaw(GAUSSIAN, domain, Fraction(1))
    sd, g = 0.02, np.random.default_rng(13)
    mean = shares - np.repeat(1 / domain.counts, domain.counts)
    noisy = domain.centre(domain.off_blocks(truth + np.outer(mean, mean))) + sd * law.simulate(g)
    errors, gaps = {}, {}
    for kind, limit in (("few", 10_000), ("many", 100)):
        for place in (spectrum, wide):
            monkeypatch.setattr(place, "LOW_RANK_CATEGORIES", limit)
            monkeypatch.setattr(place, "BASIS", 40)
        public = np.random.default_rng(14)
        raw = domain.off_blocks(noisy - np.outer(mean, mean))
        found = Denoisers(shares, domain, public).combined(raw, lambda: sd * law.simulate(public), sd)  # noqa: B023
        errors[kind] = np.sqrt(np.mean((domain.off_blocks(found) - truth) ** 2))
        y = fit_category_centres(Goal(shares, found, domain), 60, 200, public, lambda t: None).points
        assert np.add.reduceat(y, domain.starts[:-1], axis=1) == pytest.approx(np.ones((60, 40)))
        gaps[kind] = np.sqrt(np.mean(domain.off_blocks(y.T @ y / 60 - np.outer(shares, shares) - truth) ** 2))
    assert errors["many"] < 1.15 * errors["few"] < 0.5 * sd
    assert gaps["many"] < 1.15 * gaps["few"] < 0.5 * np.sqrt(np.mean(truth**2))


def test_the_edge_of_the_noise_is_above_its_spectrum_and_below_the_signal():
    g, d = np.random.default_rng(15), 80
    draws = [np.triu(g.standard_normal((d, d)), 1) for _ in range(2)]
    noise, seen = (w + w.T for w in draws)
    v = np.full(d, 1 / np.sqrt(d))
    assert noisy_spectrum(seen, noise).above == 0
    assert noisy_spectrum(seen + 60 * np.outer(v, v), noise).above == 1

"""Centres of categorical tables."""

import numpy as np

from covey.core.fit.centres import Goal, fit_category_centres
from tests.core.tables.examples import DOMAIN, table


def test_category_centres_match_their_tables():
    sizes = (3, 2, 4)
    X = table(7, n=20_000)
    hot = np.hstack([np.eye(c)[X[:, a]] for a, c in enumerate(sizes)])
    shares = hot.mean(axis=0)
    covariances = DOMAIN.off_blocks(hot.T @ hot / len(X) - np.outer(shares, shares))
    y = fit_category_centres(
        Goal(shares, covariances, DOMAIN), 60, 800, np.random.default_rng(8), lambda _: None
    ).points
    for a in range(3):
        np.testing.assert_allclose(y[:, DOMAIN.block(a)].sum(axis=1), 1, atol=1e-9)
    assert np.abs(y.mean(axis=0) - shares).max() < 2e-3
    own = DOMAIN.off_blocks(y.T @ y / 60 - np.outer(shares, shares))
    assert np.linalg.norm(own - covariances) < 0.03 * np.linalg.norm(covariances)
    assert (
        len(
            fit_category_centres(
                Goal(shares, 0 * covariances, DOMAIN), 60, 10, np.random.default_rng(8), lambda _: None
            )
        )
        == 1
    )

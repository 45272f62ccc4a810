"""Centres of categorical tables."""

import numpy as np
import pytest

from covey.engine.codes.domain import Domain
from covey.engine.fit.centres import BlockSums, Goal, fit_category_centres
from tests.engine.codes.examples import DOMAIN, table


def test_category_centres_match_their_tables():
    sizes = (3, 2, 4)
    X = table(7, n=20_000)
    hot = np.hstack([np.eye(c)[X[:, a]] for a, c in enumerate(sizes)])
    shares = hot.mean(axis=0)
    covariances = DOMAIN.off_blocks(hot.T @ hot / len(X) - np.outer(shares, shares))

    def fitted(wanted, steps):
        return fit_category_centres(Goal(shares, wanted, DOMAIN), 60, steps, np.random.default_rng(8), lambda _: None)

    y = fitted(covariances, 800).points
    for a in range(3):
        np.testing.assert_allclose(y[:, DOMAIN.block(a)].sum(axis=1), 1, atol=1e-9)
    assert np.abs(y.mean(axis=0) - shares).max() < 2e-3
    own = DOMAIN.off_blocks(y.T @ y / 60 - np.outer(shares, shares))
    assert np.linalg.norm(own - covariances) < 0.03 * np.linalg.norm(covariances)
    assert len(fitted(0 * covariances, 10)) == 1


@pytest.mark.parametrize(
    "sizes", [(1,), (3,), (2, 8, 1, 5, 2), (9, 2), (2, 9, 3, 40, 8, 1, 9), (130, 300), (7,) * 20], ids=str
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_and_maxima_are_numpys_to_the_last_bit(sizes, dtype):
    """Entries of very different sizes: added in any other order they would differ, as the reversed ones do."""
    domain = Domain(sizes, (False,) * len(sizes))
    x = np.exp(4 * np.random.default_rng(1).standard_normal((domain.total, 37))).astype(dtype)
    blocks, starts = BlockSums(domain), domain.starts[:-1]
    wanted = np.add.reduceat(x.T, starts, axis=1)[:, domain.block_of].T
    assert blocks.total(x).tobytes() == np.ascontiguousarray(wanted).tobytes()
    assert (blocks.largest(x) == np.maximum.reduceat(x, starts, axis=0)[domain.block_of]).all()
    if max(sizes) > 3:
        turned = np.concatenate([x[a:b][::-1] for a, b in zip(domain.starts, domain.starts[1:], strict=False)])
        assert (blocks.total(turned) != blocks.total(x)).any()


def test_softmax_is_a_law_of_each_attribute_and_excluded_categories_stay_out():
    domain = Domain((2, 3), (False, False))
    logits = np.array([[0.0, 700.0], [0.0, -700.0], [1.0, 1.0], [1.0, -np.inf], [1.0, 1.0]])
    found = BlockSums(domain).softmax(logits)
    assert np.allclose(found[:, 0], [1 / 2, 1 / 2, 1 / 3, 1 / 3, 1 / 3])
    assert np.allclose(found[:, 1], [1, 0, 1 / 2, 0, 1 / 2])
    assert found[3, 1] == 0

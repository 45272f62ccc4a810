"""Shares of three columns: their noise is what simulation says; flags have them where products of three signs were measured."""

import numpy as np
import pytest

import covey
from covey.answers.evidence import Evidence
from covey.core.arrays import symmetric
from covey.errors import CannotAnswerError
from covey.measure.measurement import Measurement, Measurements
from covey.measure.query import Every, Factor, Query
from covey.table.schema import Field, Schema

pytestmark = pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")

FLAGS = Schema(tuple(Field(f"c{j}", "boolean", required=True) for j in range(5)))


def simulated(draw, slopes, times=4000):
    return np.var([float((slopes * draw()).sum()) for _ in range(times)])


def test_the_noise_of_a_combination_is_what_simulation_says():
    """Of counts whose sum is made 1, and of signs. Programs that forget the sum, or the noise of pairs, are found out."""
    g = np.random.default_rng(1)
    slopes = np.zeros((2, 3, 2))
    slopes[0], slopes[1, 1, 0] = 1.0, -0.5
    factors = {a: Factor.plain(size) for a, size in enumerate((2, 3, 2))}
    ones = Measurement(Query(Every(3, 1), factors), np.full(7, 0.3), 0.0, "laplace", 1)

    def counts():
        table = Measurement(Query([(0, 1, 2)], factors), g.laplace(0, 0.1 / 2**0.5, 12), 0.1, "laplace", 1)
        return Evidence(Measurements(1, (ones, table)))

    found = simulated(lambda: counts().table((0, 1, 2)), slopes)
    assert counts().noise({(0, 1, 2): slopes[None]}).variance[0] == pytest.approx(found, rel=0.1)
    assert 0.01 * (slopes**2).sum() > 1.4 * found
    sds = (0.1, 0.2, 0.4)
    flags = {a: Factor.plain(2, np.array([1.0, 0.0])) for a in range(3)}
    half = {a: Factor.plain(2) for a in range(3)}

    def signs():  # means of products of d signs are 2^d times those of coded flags
        parts = [
            Measurement(
                Query(Every(3, 1), flags, "product"), 0.5 + g.normal(0, sds[0], 3) / 2, sds[0] / 2, "gaussian", 1
            )
        ]
        for d, values in ((2, symmetric(g.normal(0, sds[1], 3), 3)), (3, g.normal(0, sds[2], 1))):
            query = Query(Every(3, d), half, "product")
            parts.append(Measurement(query, values / 2**d, sds[d - 1] / 2**d, "gaussian", 1))
        return Evidence(Measurements(1, tuple(parts)))

    slopes = np.zeros((2, 2, 2))
    slopes[1, 1, 1] = 1.0
    found = simulated(lambda: signs().table((0, 1, 2)), slopes)
    assert signs().noise({(0, 1, 2): slopes[None]}).variance[0] == pytest.approx(found, rel=0.1)
    assert 0.7 * found > (0.4 / 8) ** 2


@pytest.mark.usefixtures("few_steps")
def test_three_flags_are_answered_where_products_of_three_signs_were_measured():
    g, n = np.random.default_rng(2), 4000
    X = g.random((n, 5)) < 0.4
    X[:, 4] = X[:, 0] ^ X[:, 2]
    columns = {f"c{j}": X[:, j] for j in range(5)}
    release = covey.PrivateSynthesizer(2.0, 1e-6, schema=FLAGS, seed=3, certificate_share=0).fit(columns).release(50)
    errors = []
    for i, j, k in [(0, 2, 4), (0, 1, 2), (1, 3, 4), (2, 3, 4), (0, 1, 4), (0, 3, 4)]:
        one = release.share({f"c{i}": True, f"c{j}": False, f"c{k}": True}, about="table")
        errors.append((one.value - np.mean(X[:, i] & ~X[:, j] & X[:, k])) / one.se)
    assert 0.3 < np.sqrt(np.mean(np.square(errors))) < 1.9
    given = release.share({"c4": True}, given={"c0": True, "c2": False})
    assert given.low <= 1.0 <= given.high + 1e-9
    assert given.low > 0.8
    assert given.se > release.share({"c4": True}, given={"c0": True, "c2": False}, about="table").se
    four = release.share(dict.fromkeys(("c0", "c1", "c2", "c3"), True), about="table")
    assert abs(four.value - X[:, :4].all(axis=1).mean()) < 4 * four.se
    with pytest.raises(CannotAnswerError, match="5 columns at once"):
        release.share(dict.fromkeys(("c0", "c1", "c2", "c3", "c4"), True))

"""Shares of three columns: their noise is what simulation says; flags have them where products of three signs were measured."""

from dataclasses import replace

import numpy as np
import pytest

import covey
from covey.answers.triples import SignTable, ThreeWay, sign_table
from covey.errors import CannotAnswerError
from covey.methods.regain.measured import MeasuredBits
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
    counts = ThreeWay((0, 1, 2), (np.arange(2), np.arange(3), np.arange(2)), np.full((2, 3, 2), 1 / 12), 0.1, True)

    def summing_to_one():
        noise = g.laplace(0, 0.1 / 2**0.5, (2, 3, 2))
        return noise - noise.mean()

    found = simulated(summing_to_one, slopes)
    assert counts.noise(slopes)[0] == pytest.approx(found, rel=0.1)
    assert 0.01 * (slopes**2).sum() > 1.4 * found
    sds = (0.0, 0.1, 0.2, 0.4)
    sets = [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]
    signs = SignTable.of((0, 1, 2), dict.fromkeys(sets, 0.0), sds)
    slopes = np.zeros((2, 2, 2))
    slopes[1, 1, 1] = 1.0
    found = simulated(lambda: SignTable.of((0, 1, 2), {T: g.normal(0, sds[len(T)]) for T in sets}, sds).shares, slopes)
    assert signs.noise(slopes)[0] == pytest.approx(found, rel=0.1)
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
    kept = release.measurements
    assert isinstance(kept, MeasuredBits)
    assert sign_table(replace(kept, parities=None), (0, 1, 2)) is None
    with pytest.raises(CannotAnswerError, match="4 columns at once"):
        release.share(dict.fromkeys(("c0", "c1", "c2", "c3"), True))

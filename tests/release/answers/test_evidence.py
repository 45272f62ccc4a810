"""Evidence: the noise of a combination is what simulation says, and what three flags were measured for is answered."""

import numpy as np
import pytest

import covey
from covey.engine.arrays import symmetric
from covey.engine.codes.domain import Domain
from covey.engine.measurement import Measurement, Measurements
from covey.engine.noise.law import GAUSSIAN, LAPLACE, independent_noise
from covey.engine.noise.pairlaw import PairLaw
from covey.engine.query import Every, Factor, Query
from covey.errors import CannotAnswerError
from covey.release.answers.evidence import Evidence
from covey.tables.schema import Field, Schema

pytestmark = pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")

FLAGS = Schema(tuple(Field(f"c{j}", "boolean", required=True) for j in range(5)))
N = 1000


def combined(evidence, slopes):
    tables = {own: evidence.one_way(own[0]) if len(own) == 1 else evidence.table(own) for own in slopes}
    return sum(float((s * tables[own]).sum()) for own, s in slopes.items())


def variance(evidence, slopes):
    return float(evidence.noise({own: s[None] for own, s in slopes.items()}).variance[0])


def ranges(j, edges, counts, sds, law=GAUSSIAN):
    query = Query([(j,)], {j: Factor(np.array(edges), np.arange(len(counts)))})
    return Measurement(query, np.array(counts, dtype=float), np.array(sds, dtype=float), law, N)


def unequal(g):
    """Two columns with ranges of unequal noise, and cells that cut a range; a program that takes equal noise."""
    sds = [np.array([3.0, 12.0, 6.0]), np.array([4.0, 4.0])]
    law = PairLaw(GAUSSIAN, Domain((2, 2), (True, False)), 25)
    true = [np.array([300.0, 500.0, 200.0]), np.array([400.0, 600.0])]
    bins = {0: Factor(np.array([0, 2, 6, 10]), np.array([0, 0, 1])), 1: Factor.plain(2)}

    def drawn(noise):
        counts = [t + noise * g.normal(0, s) for t, s in zip(true, sds, strict=True)]
        own = [ranges(0, [0, 4, 8, 10], counts[0], sds[0]), ranges(1, [0, 1, 2], counts[1], sds[1])]
        pairs = Measurement(Query(Every(2, 2), bins, "centred"), noise * law.simulate(g), law.sd, law.family, N)
        return Evidence(Measurements(N, (*own, pairs)))

    evidence = drawn(0)
    assert evidence.margins[0].edges.tolist() == [0, 2, 4, 6, 8, 10]
    assert evidence.one_way(0) == pytest.approx([0.15, 0.15, 0.25, 0.25, 0.2])
    assert evidence.table((0, 1)).sum() == pytest.approx(1)
    assert evidence.table((1, 0)) == pytest.approx(evidence.table((0, 1)).T)
    slopes = {(0,): np.array([1.0, 0.0, 3.0, 0.0, -2.0]), (0, 1): np.array([[0.5, 1.0], [2.0, -1.0]])}
    assert variance(evidence, {(0,): slopes[0,], (1, 0): slopes[0, 1].T}) == pytest.approx(variance(evidence, slopes))
    equal = ranges(0, [0, 4, 8, 10], true[0], [3.0] * 3)
    flat = Evidence(Measurements(N, (equal, *evidence.found.found[1:])))
    return drawn, slopes, [(variance(flat, slopes), 0.8)]


def twice(g, pure):
    """Counts of groups, and a second table of an important pair; programs that forget either say too much noise."""
    k = 5
    domain = Domain((k, 2), (False, False))
    law = PairLaw(independent_noise(pure), domain, 9 if pure else 160)
    of, true = np.array([0, 0, 1, 1, 1]), [np.array([200.0, 100, 300, 150, 250]), np.array([400.0, 600.0])]
    bins = {0: Factor.plain(k), 1: Factor.plain(2)}
    draw = (lambda sd, size: g.laplace(0, sd / 2**0.5, size)) if pure else (lambda sd, size: g.normal(0, sd, size))

    def drawn(noise):
        counts = [t + noise * draw(20.0, len(t)) for t in true]
        own = [ranges(j, np.arange(len(c) + 1), c, np.full(len(c), 20.0), law.family) for j, c in enumerate(counts)]
        second = domain.off_blocks(domain.centre(domain.off_blocks(symmetric(draw(8.0, 21), 7))))[:k, k:]
        found = (
            (Query([(0,)], {0: Factor(np.arange(k + 1), of)}), np.bincount(of, true[0]) + noise * draw(5.0, 2), 5.0),
            (Query(Every(2, 2), bins, "centred"), noise * law.simulate(g), law.sd),
            (Query([(0, 1)], bins, "centred"), noise * second.ravel(), 8.0),
        )
        return Evidence(Measurements(N, (*own, *(Measurement(*one, law.family, N) for one in found))))

    assert drawn(0).one_way(0) == pytest.approx(true[0] / N)
    slopes = {(0,): np.array([1.0, 1.0, 0.0, 0.0, 0.3]), (0, 1): np.outer([1.0, 1.0, -1.0, 0.0, 2.0], [0.0, 1.0])}
    found = drawn(0).found.found
    kept = [tuple(m for i, m in enumerate(found) if i != forgotten) for forgotten in (2, 4)]
    return drawn, slopes, [(variance(Evidence(Measurements(N, own)), slopes), 1.1) for own in kept]


def counted(g):
    """A table of three columns whose sum is made 1; a program that forgets the sum."""
    slopes = np.zeros((2, 3, 2))
    slopes[0], slopes[1, 1, 0] = 1.0, -0.5
    factors = {a: Factor.plain(size) for a, size in enumerate((2, 3, 2))}
    ones = Measurement(Query(Every(3, 1), factors), np.full(7, 0.3), 0.0, LAPLACE, 1)

    def drawn(noise):
        values = noise * g.laplace(0, 0.1 / 2**0.5, 12)
        return Evidence(Measurements(1, (ones, Measurement(Query([(0, 1, 2)], factors), values, 0.1, LAPLACE, 1))))

    return drawn, {(0, 1, 2): slopes}, [(0.01 * (slopes**2).sum(), 1.4)]


def signs(g):
    """Three flags by means of products of their signs, 2^d times those of coded flags; a program that forgets pairs."""
    sds = (0.1, 0.2, 0.4)
    flags = {a: Factor.plain(2, np.array([1.0, 0.0])) for a in range(3)}
    half = {a: Factor.plain(2) for a in range(3)}

    def drawn(noise):
        alone = 0.5 + noise * g.normal(0, sds[0], 3) / 2
        parts = [Measurement(Query(Every(3, 1), flags, "product"), alone, sds[0] / 2, GAUSSIAN, 1)]
        for d, values in ((2, symmetric(g.normal(0, sds[1], 3), 3)), (3, g.normal(0, sds[2], 1))):
            query = Query(Every(3, d), half, "product")
            parts.append(Measurement(query, noise * values / 2**d, sds[d - 1] / 2**d, GAUSSIAN, 1))
        return Evidence(Measurements(1, tuple(parts)))

    slopes = np.zeros((2, 2, 2))
    slopes[1, 1, 1] = 1.0
    return drawn, {(0, 1, 2): slopes}, [((0.4 / 8) ** 2, 0.7)]


@pytest.mark.parametrize(
    "case",
    [unequal, lambda g: twice(g, False), lambda g: twice(g, True), counted, signs],
    ids=["unequal", "twice", "twice, pure", "counted", "signs"],
)
def test_the_noise_of_a_combination_is_what_simulation_says(case):
    """Programs that are wrong say so much less of it, or so much more, that the simulation would tell."""
    drawn, slopes, wrong = case(np.random.default_rng(1))
    said = variance(drawn(0), slopes)
    errors = np.array([combined(drawn(1), slopes) for _ in range(4000)]) - combined(drawn(0), slopes)
    assert np.mean(errors) == pytest.approx(0, abs=4 * np.sqrt(said / 4000))
    assert np.var(errors) == pytest.approx(said, rel=0.1)
    for other, apart in wrong:
        assert other < apart * np.var(errors) if apart < 1 else other > apart * np.var(errors)


@pytest.mark.usefixtures("few_steps")
def test_three_flags_are_answered_where_products_of_three_signs_were_measured():
    g, n = np.random.default_rng(2), 4000
    X = g.random((n, 5)) < 0.4
    X[:, 4] = X[:, 0] ^ X[:, 2]
    columns = {f"c{j}": X[:, j] for j in range(5)}
    options = {"schema": FLAGS, "composition": "gaussian", "seed": 3, "certificate_share": 0}
    release = covey.PrivateSynthesizer(2.0, 1e-6, **options).fit(columns).release(50)
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

"""Numbers at their own precision: ranges of unequal noise, units, and answers in the column's own values."""

import numpy as np
import pytest

import covey
from covey.answers.asking import ask
from covey.answers.evidence import Evidence
from covey.core.arrays import symmetric
from covey.core.noise.pairlaw import PairLaw
from covey.core.tables.domain import Domain
from covey.errors import CannotAnswerError, ParameterError
from covey.measure.measurement import Measurement, Measurements
from covey.measure.query import Every, Factor, Query
from covey.release.bundle import write_bundle
from covey.table.fields import Follows
from covey.table.schema import Field, Schema

pytestmark = pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")

SCHEMA = Schema(
    (
        Field("age", "integer", 0, 110),
        Field("cost", "number", 0, 20_000, decimals=2, required=True),
        Field("ward", "string", enum=("surgery", "medicine", "geriatrics"), required=True),
        Field("old", "boolean", required=True),
    )
)


def table(n=8000, seed=2):
    g = np.random.default_rng(seed)
    age = np.clip(g.normal(50, 18, n), 0, 110).astype(int)
    ward = np.where(age > 70, 2, g.integers(0, 2, n))
    return {
        "age": [None if hole else int(a) for a, hole in zip(age, g.random(n) < 0.05, strict=True)],
        "cost": np.round(np.exp(g.normal(6 + age / 60, 0.6)), 2).clip(0, 20_000),
        "ward": np.array(SCHEMA["ward"].labels)[ward],
        "old": age + g.normal(0, 10, n) > 65,
    }


@pytest.fixture(scope="module")
def released():
    return covey.PrivateSynthesizer(6.0, 1e-6, schema=SCHEMA, seed=4, certificate_share=0).fit(table()).release(100)


def ranges(j, edges, counts, sds, law="gaussian"):
    query = Query([(j,)], {j: Factor(np.array(edges), np.arange(len(counts)))})
    return Measurement(query, np.array(counts, dtype=float), np.array(sds, dtype=float), law, 1000)


def test_the_noise_of_ranges_is_what_simulation_says():
    """Two columns with ranges of unequal noise, cells that cut a range; a program that takes equal noise is found out."""
    g, n = np.random.default_rng(1), 1000
    sds = [np.array([3.0, 12.0, 6.0]), np.array([4.0, 4.0])]
    law = PairLaw("gaussian", Domain((2, 2), (True, False)), 25)
    true = [np.array([300.0, 500.0, 200.0]), np.array([400.0, 600.0])]
    bins = {0: Factor(np.array([0, 2, 6, 10]), np.array([0, 0, 1])), 1: Factor.plain(2)}

    def drawn(noise):
        counts = [t + noise * g.normal(0, s) for t, s in zip(true, sds, strict=True)]
        own = [ranges(0, [0, 4, 8, 10], counts[0], sds[0]), ranges(1, [0, 1, 2], counts[1], sds[1])]
        pairs = Measurement(Query(Every(2, 2), bins, "centred"), noise * law.simulate(g), law.sd, law.family, n)
        return Evidence(Measurements(n, (*own, pairs)))

    evidence = drawn(0)
    assert evidence.margins[0].edges.tolist() == [0, 2, 4, 6, 8, 10]
    assert evidence.one_way(0) == pytest.approx([0.15, 0.15, 0.25, 0.25, 0.2])
    assert evidence.table((0, 1)).sum() == pytest.approx(1)
    one, two = np.array([1.0, 0.0, 3.0, 0.0, -2.0]), np.array([[0.5, 1.0], [2.0, -1.0]])

    def combined(e):
        return one @ e.one_way(0) + (two * e.table((0, 1))).sum()

    errors = [combined(drawn(1)) - combined(evidence) for _ in range(4000)]
    said = float(evidence.noise({(0,): one[None], (0, 1): two[None]}).variance[0])
    assert np.var(errors) == pytest.approx(said, rel=0.1)
    equal = ranges(0, [0, 4, 8, 10], true[0], [3.0] * 3)
    flat = Evidence(Measurements(n, (equal, *evidence.found.found[1:])))
    assert float(flat.noise({(0,): one[None], (0, 1): two[None]}).variance[0]) < 0.8 * np.var(errors)


@pytest.mark.parametrize("pure", [False, True])
def test_what_was_measured_twice_is_averaged_and_its_noise_is_what_simulation_says(pure):
    """Counts of groups, and a second table of an important pair; a program that forgets either says too much noise."""
    g, n, k = np.random.default_rng(3), 1000, 5
    domain = Domain((k, 2), (False, False))
    law = PairLaw("laplace" if pure else "gaussian", domain, 9 if pure else 160)
    of, true = np.array([0, 0, 1, 1, 1]), [np.array([200.0, 100, 300, 150, 250]), np.array([400.0, 600.0])]
    bins = {0: Factor.plain(k), 1: Factor.plain(2)}
    draw = (lambda sd, size: g.laplace(0, sd / 2**0.5, size)) if pure else (lambda sd, size: g.normal(0, sd, size))

    def drawn(noise):
        counts = [t + noise * draw(20.0, len(t)) for t in true]
        own = [ranges(j, np.arange(len(c) + 1), c, np.full(len(c), 20.0), law.family) for j, c in enumerate(counts)]
        second = domain.off_blocks(domain.centre(domain.off_blocks(symmetric(draw(8.0, 21), 7))))[:k, k:]
        groups = Query([(0,)], {0: Factor(np.arange(k + 1), of)})
        found = (
            (groups, np.bincount(of, true[0]) + noise * draw(5.0, 2), 5.0),
            (Query(Every(2, 2), bins, "centred"), noise * law.simulate(g), law.sd),
            (Query([(0, 1)], bins, "centred"), noise * second.ravel(), 8.0),
        )
        return Evidence(Measurements(n, (*own, *(Measurement(*one, law.family, n) for one in found))))

    evidence = drawn(0)
    assert evidence.one_way(0) == pytest.approx(true[0] / n)
    one, two = np.array([1.0, 1.0, 0.0, 0.0, 0.3]), np.outer([1.0, 1.0, -1.0, 0.0, 2.0], [0.0, 1.0])

    def combined(e):
        return one @ e.one_way(0) + (two * e.table((0, 1))).sum()

    errors = [combined(drawn(1)) - combined(evidence) for _ in range(4000)]
    said = float(evidence.noise({(0,): one[None], (0, 1): two[None]}).variance[0])
    assert np.mean(errors) == pytest.approx(0, abs=4 * np.sqrt(said / 4000))
    assert np.var(errors) == pytest.approx(said, rel=0.1)
    for forgotten in (2, 4):
        kept = tuple(m for i, m in enumerate(evidence.found.found) if i != forgotten)
        once = Evidence(Measurements(n, kept))
        assert float(once.noise({(0,): one[None], (0, 1): two[None]}).variance[0]) > 1.1 * said


def test_answers_are_in_the_columns_own_values(released):
    rows = table()
    age = np.array([np.nan if a is None else a for a in rows["age"]])
    there, cost, geriatrics = ~np.isnan(age), rows["cost"], rows["ward"] == "geriatrics"
    exact = {"about": "table", "confidence": 0.999}
    asked = {
        "share": (released.share({"age": (65, None)}, **exact), (age >= 65).mean()),
        "missing": (released.share({"age": None}, **exact), (~there).mean()),
        "pair": (released.share({"age": (65, None), "ward": "geriatrics"}, **exact), ((age >= 65) & geriatrics).mean()),
        "mean": (released.mean("age", **exact), age[there].mean()),
        "group": (released.mean("age", where={"ward": "geriatrics"}, **exact), age[there & geriatrics].mean()),
        "median": (released.quantile("cost", 0.5, **exact), np.median(cost)),
        "correlation": (released.correlation("age", "old", **exact), np.corrcoef(age[there], rows["old"][there])[0, 1]),
    }
    for name, (answer, truth) in asked.items():
        assert answer.low <= truth <= answer.high, (name, answer, truth)
    assert asked["share"][0].high - asked["share"][0].low < 0.05
    assert asked["mean"][0].high - asked["mean"][0].low < 8
    assert asked["median"][0].high - asked["median"][0].low < 200


def test_a_loaded_bundle_with_numbers_answers_alike(released, tmp_path):
    again = covey.load(write_bundle(released, tmp_path / "b"))
    for asked in (lambda r: r.mean("cost", by="ward"), lambda r: r.share({"age": (65, None), "ward": "geriatrics"})):
        assert repr(asked(again)) == repr(asked(released))
    assert again.sample(20, {"age": None})["age"].null_count() == 20


def test_groups_of_a_number_are_its_bins(released):
    found = released.mean("old", by="age")
    assert "missing" in found.labels
    assert any(" to " in label for label in found.labels)
    assert found.answers[-1].value > found.answers[1].value


def test_what_numbers_cannot_answer(released):
    with pytest.raises(ParameterError, match="its values lie between 0 and 110"):
        released.share({"age": (111, None)})
    dates = Schema(
        (
            Field("admitted", "date", "2024-01-01", "2024-12-31", required=True),
            Field("left", "date", "2024-01-01", "2025-03-31", required=True, follows=Follows("admitted")),
            Field("ill", "boolean", required=True),
        )
    )
    days = np.datetime64("2024-01-01") + np.random.default_rng(1).integers(0, 366, 1500)
    rows = {"admitted": days, "left": days + 3, "ill": np.arange(1500) % 2 == 0}
    release = covey.PrivateSynthesizer(3.0, schema=dates, seed=1, certificate_share=0).fit(rows).release(10)
    with pytest.raises(CannotAnswerError, match="distance from 'admitted'"):
        release.share({"left": ("2024-06-01", None)})
    with pytest.raises(ParameterError, match="have no mean"):
        release.mean("admitted")
    with pytest.raises(ParameterError, match=r"no column 'ward'.* Try: "):  # not that 'left' cannot be an example
        ask(release, "share ward=a")
    found = release.share({"admitted": ("2024-07-01", None)}, confidence=0.999)
    assert found.low <= (days >= np.datetime64("2024-07-01")).mean() <= found.high

"""Queries: counted alike in records and in centres; and a new one needs no code besides its own."""

import csv
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import covey
from audits.gates import a_gate
from audits.odometer import cheap_fits
from covey.answers.tables import write_tables
from covey.core.paper.blocks import WeightedPoints
from covey.core.tables.counts import part
from covey.engines.local import ArrayRows
from covey.errors import CannotAnswerError
from covey.measure.law import Mixture, mean_variation
from covey.measure.measurement import Measurement, Measurements
from covey.measure.query import Factor, Query
from covey.privacy.certificate import certify
from covey.privacy.gate import Moves
from covey.release.bundle import write_bundle
from covey.table.schema import Field, Schema

pytestmark = pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")
SIZES = (2, 3, 7, 2)
FACTORS = {
    0: Factor.plain(2),
    1: Factor.plain(3),
    2: Factor(np.array([0, 2, 3, 7]), np.array([1, 0, 1])),
    3: Factor.plain(2),
}


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_tables_of_records_and_of_centres_are_counted_alike(degree):
    g = np.random.default_rng(1)
    X = np.stack([g.integers(0, c, 50) for c in SIZES], axis=1)
    query = Query(list(combinations(range(4), degree)), FACTORS)
    counts = query.kernel()(X).integers()[0]
    points = np.hstack([np.eye(c)[X[:, a]] for a, c in enumerate(SIZES)])  # centres that are the rows
    law = Mixture(WeightedPoints(np.full(50, 1 / 50), points), [np.arange(c) for c in SIZES])
    assert 50 * law.table(query) == pytest.approx(counts)
    bins = np.stack([FACTORS[a].at(X[:, a]) for a in range(4)], axis=1)
    own = query.sets[-1]
    table = counts[query.starts[-2] :].reshape(query.shape(own))
    for cell in np.ndindex(*table.shape):
        assert table[cell] == (bins[:, own] == cell).all(axis=1).sum()
    assert mean_variation(counts, law.table(query), query.starts, 50) == pytest.approx(0, abs=1e-12)
    other = np.vstack([1 - X[:1] % 2, X[1:]])
    moved = mean_variation(query.kernel()(other).integers()[0], law.table(query), query.starts, 50)
    assert 0 < moved <= 1 / 50 + 1e-12


def test_a_query_that_is_new_is_measured_certified_kept_exported_and_answered(tmp_path):
    """Four columns at once, each on two levels: no file of covey names them."""
    g, n = np.random.default_rng(2), 4000
    X = g.integers(0, 3, (n, 5))
    X[:, 3] = np.where(g.random(n) < 0.8, X[:, :3].sum(axis=1) % 3, X[:, 3])
    schema = Schema(tuple(Field(name, "string", enum=("a", "b", "c"), required=True) for name in "vwxyz"))
    table = {name: np.array(["a", "b", "c"])[X[:, j]] for j, name in enumerate("vwxyz")}
    with cheap_fits():
        synth = covey.PrivateSynthesizer(2.0, 1e-6, schema=schema, seed=1).fit(table)
    query = Query([(0, 1, 2, 3)], {a: Factor(np.arange(4), np.array([0, 1, 1])) for a in range(4)})
    gate, rows = a_gate("toy", "certificate", amount=1), ArrayRows(X)

    exact = rows.reduce(query.kernel()).map(part)
    found = gate.measure("toy", exact, int(query.starts[-1]), Moves(l1=2, l2_squared=2))
    toy = Measurement(query, found.values, found.sd, found.law, n, "toy")

    law = Mixture(synth.centres, [np.arange(3)] * 5)
    bound = certify([4], exact.map(mean_variation, law.table(query), query.starts, n), n, gate, True).bound[4]
    seen = query.kernel()(X).integers()[0]
    apart = mean_variation(seen, law.table(query), query.starts, n)
    assert apart <= bound < apart + 0.02
    assert apart > 0.05  # pairs know nothing of it

    plain = synth.release(100)
    release = replace(plain, measurements=Measurements(n, (*synth.measurements.found, toy)))
    back = covey.load(write_bundle(release, tmp_path / "bundle"))
    wanted = {"v": "a", "w": "a", "x": ["b", "c"], "y": "a"}
    answer = back.share(wanted, about="table")
    true = float(((X[:, [0, 1, 3]] == 0).all(axis=1) & (X[:, 2] > 0)).mean())
    assert answer.low <= true <= answer.high
    assert answer.se == pytest.approx(float(found.sd) / n, rel=0.05)
    with pytest.raises(CannotAnswerError, match="4 columns at once"):
        plain.share(wanted, about="table")

    write_tables(back, tmp_path / "tables")
    with (tmp_path / "tables" / "4-columns.csv").open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 16
    assert [line["column_d"] for line in lines] == ["y"] * 16
    assert np.array([float(line["count"]) for line in lines]) == pytest.approx(seen, abs=6 * float(found.sd))
    assert not np.array_equal(np.array([float(line["count"]) for line in lines]), seen)

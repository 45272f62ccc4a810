"""Queries: counted alike in records and in centres; and a new one needs no code besides its own."""

import csv
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np
import pytest

import covey
from audits.odometer import cheap_fits
from covey.engine.codes.counts import Counts
from covey.engine.points import WeightedPoints
from covey.engine.query import Factor, Query, mean_variation, mixed_table, to_bins
from covey.engine.sensitivity import Sensitivity
from covey.errors import CannotAnswerError
from covey.release.answers.tables import write_tables
from covey.release.bundle import write_bundle
from covey.tables.schema import Field, Schema

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
    law = mixed_table(query, WeightedPoints(np.full(50, 1 / 50), points), [np.arange(c) for c in SIZES])
    assert 50 * law == pytest.approx(counts)
    bins = np.stack([FACTORS[a].at(X[:, a]) for a in range(4)], axis=1)
    own = query.sets[-1]
    table = counts[query.starts[-2] :].reshape(query.shape(own))
    for cell in np.ndindex(*table.shape):
        assert table[cell] == (bins[:, own] == cell).all(axis=1).sum()
    assert mean_variation(counts, law, query.starts, 50) == pytest.approx(0, abs=1e-12)
    other = np.vstack([1 - X[:1] % 2, X[1:]])
    moved = mean_variation(query.kernel()(other).integers()[0], law, query.starts, 50)
    assert 0 < moved <= 1 / 50 + 1e-12


@pytest.mark.parametrize("size", [7, 2**16, 10**7, 2**53])
def test_bins_of_codes_are_those_of_a_search_over_all_edges(size):
    g = np.random.default_rng(size)
    edges = np.unique([0, 1, *g.integers(1, size, 40).tolist(), *range(1, min(size, 300), 3), size - 1, size])
    factor = Factor(edges, g.integers(0, 4, len(edges) - 1))
    codes = np.concatenate([edges[:-1], edges[1:] - 1, g.integers(0, size, 1000), g.integers(0, min(size, 400), 1000)])
    for kind in (np.int64, np.uint32) if size < 2**32 else (np.int64,):
        found = factor.at(codes.astype(kind))
        assert (found == factor.bins[np.searchsorted(edges, codes, side="right") - 1]).all()


@dataclass(frozen=True)
class Together:
    """Kernel: rows by how four columns stand, each on two levels; the cells are numbered in binary."""

    def __call__(self, batch):
        """Count a batch."""
        return Counts((np.bincount((batch[:, :4] > 0) @ np.array([8, 4, 2, 1]), minlength=16),))


class FourWay(Query):
    """A query that covey does not know."""

    def kernel(self):
        """Its own."""
        return Together()

    def sensitivity(self):
        """A row is in one cell."""
        return Sensitivity.histograms(1)


def test_a_query_that_is_new_is_measured_certified_kept_exported_and_answered(tmp_path):
    """Four columns at once, each on two levels, with a kernel of its own: no file of covey names them."""
    g, n = np.random.default_rng(2), 4000
    X = g.integers(0, 3, (n, 5))
    X[:, 3] = np.where(g.random(n) < 0.8, X[:, :3].sum(axis=1) % 3, X[:, 3])
    schema = Schema(tuple(Field(name, "string", enum=("a", "b", "c"), required=True) for name in "vwxyz"))
    table = {name: np.array(["a", "b", "c"])[X[:, j]] for j, name in enumerate("vwxyz")}
    query = FourWay([(0, 1, 2, 3)], {a: Factor(np.arange(4), np.array([0, 1, 1])) for a in range(4)})
    plain, synth = (covey.PrivateSynthesizer(8.0, 1e-6, schema=schema, seed=1) for _ in range(2))
    synth.further = (query,)
    with cheap_fits():
        plain.fit(table)
        synth.fit(table)

    charges = {charge.purpose: charge.amount for charge in synth.privacy.charges}
    assert charges["further queries"] == synth.privacy.budget.amount / 10
    assert sum(charges.values()) == synth.privacy.budget.amount
    toy, seen = synth.measurements.found[-1], Together()(X).integers()[0]
    assert toy.values != pytest.approx(seen)
    assert toy.values == pytest.approx(seen, abs=6 * float(toy.sd))

    # Pairs know nothing of it: the certificate, which was far below before, covers the distance of this query too.
    apart = mean_variation(seen, synth._law.table(query), query.starts, n)
    assert apart > 0.05 > plain.certificate.misplaced.bound
    assert apart <= synth.certificate.misplaced.bound < apart + 0.02

    back = covey.load(write_bundle(synth.release(100), tmp_path / "bundle"))
    wanted = {"v": "a", "w": "a", "x": ["b", "c"], "y": "a"}
    answer = back.share(wanted, about="table")
    true = float(((X[:, [0, 1, 3]] == 0).all(axis=1) & (X[:, 2] > 0)).mean())
    assert answer.low <= true <= answer.high
    assert answer.se == pytest.approx(float(toy.sd) / n, rel=0.05)
    with pytest.raises(CannotAnswerError, match="4 columns at once"):
        plain.release(10).share(wanted, about="table")

    write_tables(back, tmp_path / "tables")
    with (tmp_path / "tables" / "4-columns.csv").open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 16
    assert [line["column_d"] for line in lines] == ["y"] * 16
    found = np.array([float(line["count"]) for line in lines])
    assert found == pytest.approx(toy.values, abs=float(toy.sd))  # what is known of the total is used


EDGES = np.array([0, 4, 5, 10])


@pytest.mark.parametrize(
    ("step", "found"),
    [
        (partial(to_bins, (None, Factor(EDGES, np.arange(3)))), [[0, 2], [1, 0], [2, 2], [2, 1]]),
        (
            partial(to_bins, (Factor(np.arange(4), np.array([0, 1, 1])), Factor(np.arange(11), np.arange(10) // 5))),
            [[0, 1], [1, 0], [1, 1], [1, 0]],
        ),
        (
            partial(to_bins, (Factor(np.arange(4), np.array([0, 1, 1])), Factor(EDGES, np.array([0, 0, 1])))),
            [[0, 1], [1, 0], [1, 1], [1, 0]],
        ),
    ],
)
def test_codes_become_cells_and_bins_one_record_at_a_time(step, found):
    batch = np.array([[0, 5], [1, 0], [2, 9], [2, 4]])
    assert step(batch).tolist() == found
    assert np.array_equal(np.vstack([step(row[None]) for row in batch]), step(batch))

"""Bands of a report: bars hold the truth as often as they say, and noise alone makes no pair look associated."""

import numpy as np
import pytest

import covey
from covey.engine.noise.law import GAUSSIAN, LAPLACE
from covey.release.answers.bands import ReportBands
from covey.release.charts import pair_key
from covey.release.contents import LOST, MEASURED
from covey.release.report import report_html
from covey.release.summary import describe
from covey.tables.codec import Codec
from covey.tables.schema import Field, Schema
from tests.release.answers.making import bits, categories
from tests.release.answers.test_numbers import SCHEMA, table
from tests.release.answers.test_release import FLAGS, TABLE, codes, flags
from tests.release.pages import check_page, table_named

pytestmark = pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")


def test_bands_of_bars_hold_the_truth_as_often_as_they_say():
    X, g = codes(), np.random.default_rng(3)
    columns = describe(Codec(TABLE))
    hits, short, cells, narrow = [], [], [], []
    for _ in range(60):
        release = categories(TABLE, X, 30.0, g)
        for j in (0, 1):
            low, high = ReportBands(release).column(j, columns[j], np.arange(len(columns[j].labels)))
            truth = columns[j].shares(X[:, j])
            middle, half = (low + high) / 2, (high - low) / 4
            hits += list((low <= truth) & (truth <= high))
            short += list(np.abs(truth - middle) <= half)
        table = ReportBands(release).table(X, 0, 1)  # of the very rows, so its shares are the truth
        cells += list(((table.low <= table.share) & (table.share <= table.high)).ravel())
        off, half = np.abs(table.share - (table.low + table.high) / 2), (table.high - table.low) / 4
        narrow += list((off <= half)[table.low > 0])
    assert 0.93 <= np.mean(cells) <= 0.985  # at 0 bands are cut off, and hold more
    assert np.mean(narrow) < 0.8
    assert 0.93 <= np.mean(hits) <= 0.975
    assert np.mean(short) < 0.8  # bands half as long are found out


def kinds(release, X):
    return ReportBands(release).pairs(X, X.shape[1])


@pytest.mark.parametrize("family", [GAUSSIAN, LAPLACE])
def test_noise_alone_makes_no_association(family):
    """Five independent columns, ten pairs: in 95 of 100 releases none is listed. An edge for single pairs lists too many."""
    g = np.random.default_rng(6)
    schema = Schema(tuple(Field(n, "string", enum=("a", "b", "c"), required=True) for n in "vwxyz"))
    exactly = [np.tile(np.repeat(np.arange(3), 3 ** (4 - k)), 3**k) for k in range(5)]  # independent
    X = np.stack(exactly, axis=1)
    X = np.repeat(X, 4, axis=0)
    any_, single = [], []
    for _ in range(45):
        release = categories(schema, X, 12.0, g, family=family)
        found = ReportBands(release)
        any_.append((found.pairs(X, 5).value > 0).any())
        single.append((found.norms(5) > found.noise(5)[0])[np.triu_indices(5, 1)].any())
    assert np.mean(any_) <= 0.14
    assert np.mean(single) > 0.25
    assert (found.pairs(X, 5).kind[np.triu_indices(5, 1)] == LOST).all()


def test_where_noise_exceeds_the_largest_association_none_is_listed():
    """Cramér's V is 1 at most. An edge alone lists one of twenty such releases, with values beyond 1."""
    g = np.random.default_rng(1)
    schema = Schema(tuple(Field(n, "string", enum=("a", "b", "c"), required=True) for n in "vw"))
    X = np.stack([np.repeat(np.arange(3), 60), np.tile(np.arange(3), 60)], axis=1)
    found = [ReportBands(categories(schema, X, 400.0, g)) for _ in range(40)]
    assert all((bands.pairs(X, 2).value == 0).all() for bands in found)
    assert any(bands.norms(2)[0, 1] > bands.noise(2)[1][0, 1] for bands in found)


def test_an_association_is_measured_with_a_band_around_it():
    X = codes()
    clean = kinds(categories(TABLE, X), X)
    noisy = kinds(categories(TABLE, X, 15.0, np.random.default_rng(2)), X)
    assert noisy.kind[0, 1] == noisy.kind[1, 3] == MEASURED
    for a, b in ((0, 1), (0, 3), (1, 3)):
        assert noisy.low[a, b] <= clean.value[a, b] <= noisy.high[a, b]
    assert noisy.value[0, 2] == 0  # sex goes with nothing
    seen = kinds(bits(FLAGS, flags(), 0.002, np.random.default_rng(1)), flags())
    assert seen.kind[4, 5] == MEASURED
    assert seen.low[4, 5] > 0
    assert seen.synthetic[4, 5] == pytest.approx(np.corrcoef(flags()[:, 4], flags()[:, 5])[0, 1], abs=0.01)


def test_the_report_of_numbers_has_a_band_for_every_bar(few_steps):
    rows = table()
    release = covey.PrivateSynthesizer(6.0, 1e-6, schema=SCHEMA, seed=4, certificate_share=0).fit(rows).release(400)
    page = check_page(report_html(release, {"synthetic.csv": "ab" * 32}))
    for label, _, band in table_named(page, "Proportions of age"):
        low, high = (float(end.rstrip("%")) for end in band.split(" – "))
        if label == "missing":
            assert low <= 100 * np.mean([a is None for a in rows["age"]]) <= high
    columns = describe(Codec(SCHEMA))
    low, high = ReportBands(release).column(0, columns[0], np.arange(len(columns[0].labels)))
    truth = columns[0].shares(Codec(SCHEMA).encode(rows)[0][:, 0])
    assert np.mean((low <= truth) & (truth <= high)) > 0.85
    assert (high - low).max() < 0.2
    listed = table_named(page, "The 5 strongest associations that were measured")
    assert any("age" in pair and "old" in pair for pair, *_ in listed)
    assert "Measured: " in page.text
    # Each pair that is not lost leads to its table; numbers have quantiles in their own units.
    table_named(page, "age × old: proportion of synthetic rows, and the 95% band of the confidential proportion")
    assert sum(element["attrs"].get("href") == f"#{pair_key((3, 0))}" for element in page.elements) == 2  # map and list
    _, median, low, high = ReportBands(release).quantiles(0)[1]
    assert low <= np.median([a for a in rows["age"] if a is not None]) <= high
    assert f"median {median:,.0f} ({low:,.0f} – {high:,.0f})" in page.text

"""Numbers and dates in their own units: figures that agree with other libraries, and alarms that come first."""

import numpy as np
import pytest
from scipy import stats

from covey.release.confidential import evaluation_html
from covey.release.evaluation import Comparison, evaluate, total_variation
from covey.release.numbers import number_figures, number_words, quantile_tables
from covey.table.codec import Codec
from covey.table.schema import Field, Schema
from tests.release.pages import check_page, table_named

SCHEMA = Schema(
    (
        Field("income", "number", 0, 10**7, decimals=0, special=("refused",)),
        Field("age", "integer", 0, 120, required=True),
        Field("came", "date", "2020-01-01", "2029-12-31"),
        Field("ward", "string", enum=("A", "B", "C"), required=True),
    )
)


def table(n, seed, shift=0):
    """Skewed incomes with zeros and refusals, ages that go with them, days, wards that go with ages."""
    g = np.random.default_rng(seed)
    income = np.where(g.random(n) < 0.2, 0, np.exp(g.normal(9, 1, n)).round()).astype(int) + shift
    age = np.clip(20 + np.log1p(income) * 4 + g.normal(0, 5, n), 0, 120).astype(int)
    days = (np.datetime64("2021-03-01") + g.integers(0, 900, n)).astype(str)
    return {
        "income": ["refused" if g.random() < 0.1 else str(x) for x in income],
        "age": [str(a) for a in age],
        "came": ["" if g.random() < 0.05 else day for day in days],
        "ward": ["ABC"[min(2, a // 30)] for a in age],
    }


def compared(true, synthetic):
    codec = Codec(SCHEMA)
    return Comparison.of(codec, *(codec.encode(t, "cells")[0] for t in (true, synthetic)), {"guarantee": "none"})


@pytest.fixture(scope="module")
def rows():
    return compared(table(900, 0), table(700, 1))


def values(given, name):
    return np.array([float(x) for x in given[name] if x not in ("", "refused")])


def test_figures_agree_with_other_libraries(rows):
    found = number_figures(rows.codec, rows.cells)
    true, synthetic = (values(t, "income") for t in (table(900, 0), table(700, 1)))
    own = found["columns"]["income"]
    assert own["mean"] == pytest.approx([true.mean(), synthetic.mean()])
    assert own["sd"] == pytest.approx([true.std(), synthetic.std()])
    assert own["median"] == pytest.approx([np.median(true), np.median(synthetic)])
    assert own["quantiles"]["0.9"] == pytest.approx([np.quantile(true, 0.9), np.quantile(synthetic, 0.9)])
    assert own["kolmogorov"] == pytest.approx(stats.ks_2samp(true, synthetic).statistic)
    assert own["wasserstein_over_range"] == pytest.approx(stats.wasserstein_distance(true, synthetic) / 10**7)
    assert own["without_value"] == pytest.approx([1 - len(true) / 900, 1 - len(synthetic) / 700])
    zero = own["common"][0]
    assert zero == (0.0, pytest.approx((true == 0).sum() / 900), pytest.approx((synthetic == 0).sum() / 700))
    assert len(own["common"]) == 10
    pairs = {(a, b): (x, y) for a, b, x, y in found["rank_correlations"]}
    both = [
        (float(i), float(a))
        for i, a in zip(*(table(900, 0)[k] for k in ("income", "age")), strict=True)
        if i != "refused"
    ]
    assert pairs["income", "age"][0] == pytest.approx(stats.spearmanr(both).statistic, abs=0.01)
    means = {(n, f, label): (x, y) for n, f, label, x, y, _ in found["group_means"]}
    ages = [float(a) for a, w in zip(*(table(900, 0)[k] for k in ("age", "ward")), strict=True) if w == "B"]
    assert means["age", "ward", "B"][0] == pytest.approx(np.mean(ages))


def test_dates_are_shown_as_dates(rows):
    own = number_figures(rows.codec, rows.cells)["columns"]["came"]
    assert own["median"][0].startswith("202")
    assert own["common"][0][0].startswith("202")


def test_a_median_that_is_far_off_is_the_first_line():
    """What bins of equal width do to incomes: the figures of tables look well, and the median is gone."""
    true, synthetic = table(900, 0), table(900, 0, shift=40_000)
    rows = compared(true, synthetic)
    figures = evaluate(rows)
    assert (
        total_variation(rows.true, rows.synthetic, rows.codec.domain_sizes, (0,)) < 0.01
    )  # twenty bins of equal width
    assert figures["columns"]["income"] > 0.5
    words = number_words(figures["numbers"])
    assert words[0].startswith("FAR OFF: the median of income is 4")
    assert "standard deviations off" in words[0]
    page = check_page(evaluation_html(rows, figures))
    assert "Far off: the median of income is" in page.text
    assert table_named(page, "Numbers and dates")[0][0] == "income"


def test_equal_tables_raise_no_alarm_and_are_not_apart(rows):
    figures = evaluate(Comparison.of(rows.codec, rows.cells[0], rows.cells[0], rows.bundle))
    assert figures["numbers"]["alarms"] == []
    for own in figures["numbers"]["columns"].values():
        assert own["kolmogorov"] == own["wasserstein_over_range"] == own["common_off"] == own["median_off"] == 0
    assert all(x == y for *_, x, y in figures["numbers"]["rank_correlations"])
    assert all(off == 0 for *_, off in figures["numbers"]["group_means"])


def test_a_column_without_values_in_one_table_is_an_alarm():
    true = table(60, 0)
    found = number_figures(*_pair(true, true | {"came": [""] * 60}))
    assert found["alarms"][0] == "came has values in only one of the two tables"
    assert number_figures(*_pair(true | {"came": [""] * 60}, true | {"came": [""] * 60}))["alarms"] == []


def _pair(true, synthetic):
    rows = compared(true, synthetic)
    return rows.codec, rows.cells


def test_bins_of_true_quantiles_hold_a_twentieth_each_and_point_masses_stay_whole(rows):
    true, synthetic, sizes = quantile_tables(rows.codec, (rows.true, rows.synthetic), rows.cells)
    assert (true < sizes).all()
    assert (synthetic < sizes).all()
    share = np.bincount(true[:, 1], minlength=sizes[1]) / len(true)
    assert share.max() < 0.12
    zeros = rows.cells[0][:, 0] == 0
    assert len(np.unique(true[zeros, 0])) == 1
    refused = np.array(table(900, 0)["income"]) == "refused"
    assert (true[refused, 0] == sizes[0] - 2).all()
    assert (true[~refused, 0] < sizes[0] - 2).all()
    assert (true[:, 3] == rows.true[:, 3]).all()

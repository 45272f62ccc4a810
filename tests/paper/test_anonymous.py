"""Numbers beside categories in anonymous tables: averages over enough rows, rounded without bias, through the command line."""

import json

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from covey import AnonymousSynthesizer, Schema
from covey.desk.cli import main
from covey.paper.anonymous import MixedCoding, join_until
from covey.tables.codec import MISSING, Codec
from covey.tables.schema import Field

DAYS = {"minimum": "2000-01-01", "maximum": "2020-12-31"}
SCHEMA = {
    "fields": [
        {"name": "sex", "type": "string", "constraints": {"enum": ["f", "m"], "required": True}},
        {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 120, "required": True}},
        {"name": "income", "type": "number", "constraints": {"minimum": 0, "maximum": 10000}},
        {"name": "since", "type": "date", "constraints": DAYS | {"required": True}},
    ]
}


def people(n, seed=0, missing=0.1):
    generator = np.random.default_rng(seed)
    age = generator.integers(18, 90, n)
    income = np.where(generator.random(n) < missing, None, (age * 50 + generator.random(n) * 1000).round(2))
    return pl.DataFrame(
        {
            "sex": np.where(generator.random(n) < 0.2 + age / 200, "f", "m"),
            "age": age,
            "income": pl.Series(income.tolist(), dtype=pl.Float64),
            "since": pl.Series(generator.integers(10957, 18600, n)).cast(pl.Int32).cast(pl.Date),
        }
    )


@pytest.fixture
def schema():
    return Schema.from_dict(SCHEMA)


@pytest.mark.parametrize("method", ["tree", "paper", "mdav"])
def test_numbers_are_the_averages_of_groups(schema, method):
    table = people(400)
    synth = AnonymousSynthesizer(10, method=method, schema=schema, seed=1).fit(table)
    drawn = synth.sample(400)
    assert drawn.schema == table.schema
    # Few values: at most two whole numbers per group, and the mean stays.
    assert drawn["age"].n_unique() <= 2 * synth.groups
    assert drawn["age"].mean() == pytest.approx(table["age"].mean(), abs=0.1)
    assert drawn["income"].n_unique() <= 2 * synth.groups + 1
    assert drawn["income"].mean() == pytest.approx(table["income"].mean(), rel=0.05)
    assert drawn["income"].null_count() == pytest.approx(table["income"].null_count(), abs=8)
    days = [frame["since"].to_physical().mean() for frame in (drawn, table)]
    assert days[0] == pytest.approx(days[1], abs=1)


def test_numbers_keep_their_relation_to_each_other_and_to_categories(schema):
    table = people(4000, missing=0)
    drawn = AnonymousSynthesizer(5, schema=schema, seed=1).fit(table).sample(4000)
    assert np.corrcoef(drawn["age"], drawn["income"])[0, 1] > 0.95
    ages = [[f.filter(pl.col("sex") == sex)["age"].mean() for sex in "fm"] for f in (drawn, table)]
    assert ages[0][0] - ages[0][1] == pytest.approx(ages[1][0] - ages[1][1], rel=0.15)


def test_no_average_of_a_number_is_over_fewer_than_r_rows_that_have_it(schema):
    mixture = MixedCoding(Codec(schema))
    generator = np.random.default_rng(3)
    n, r = 600, 6
    cells = np.column_stack(
        [generator.integers(0, 2, n), generator.integers(0, 121, n), np.zeros(n), np.full(n, 11000)]
    )
    cells = cells.astype(np.int64)
    cells[:, 2] = np.where(generator.random(n) < 0.7, MISSING, generator.integers(0, 1000, n))
    groups = np.repeat(np.arange(n // r), r)
    columns = mixture.encode(cells)
    averages = mixture.averages(columns, groups, r)
    there = ~columns.missing[:, 1]
    # Every average is a mean over a run of whole groups with at least r values: find each run by its value.
    for value in np.unique(averages[:, 1]):
        rows = there & np.isin(groups, np.flatnonzero(averages[:, 1] == value))
        assert rows.sum() >= r
        assert columns.numbers[rows, 1].mean() == pytest.approx(value)
    # A number that fewer than r rows have at all is not averaged: nothing of it is used.
    cells[:, 2] = MISSING
    cells[:5, 2] = 777
    assert (mixture.averages(mixture.encode(cells), groups, r)[:, 1] == 0.5).all()


@given(st.lists(st.integers(0, 9), min_size=1, max_size=60), st.integers(1, 12))
def test_runs_are_joined_until_they_are_large_enough(counts, least):
    runs = join_until(np.array(counts), least)
    assert runs[0] == 0
    assert set(np.diff(runs)) <= {0, 1}
    assert np.bincount(runs, counts).min() >= min(least, sum(counts))


def test_groups_that_agree_on_a_number_are_counted(schema):
    table = people(300).with_columns(age=pl.lit(40, dtype=pl.Int64))
    synth = AnonymousSynthesizer(10, schema=schema).fit(table)
    agreeing = synth.homogeneity()
    assert agreeing["age"] == synth.groups
    assert agreeing["since"] == 0
    assert list(agreeing) == ["sex", "age", "income", "since"]


def test_covey_anonymize_keeps_averages_of_numbers(tmp_path):
    table = people(200)
    table.write_csv(tmp_path / "people.csv")
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    common = ["anonymize", str(tmp_path / "people.csv"), "--schema", str(tmp_path / "schema.json"), "--seed", "1"]
    result = CliRunner().invoke(main, [*common, "--group-size", "200", "--out", str(tmp_path / "one")])
    assert result.exit_code == 0, result.output
    drawn = pl.read_csv(tmp_path / "one" / "synthetic.csv", try_parse_dates=True)
    # One group: every row carries the table's own averages, whole numbers on either side of them.
    assert set(drawn["age"]) == {int(np.floor(table["age"].mean())), int(np.ceil(table["age"].mean()))}
    assert drawn["age"].sum() == pytest.approx(table["age"].sum(), abs=1)
    assert drawn["income"].null_count() == table["income"].null_count()
    # Fewer than 200 rows have an income, so no average of incomes is used: what stands there is the middle of the bounds.
    assert drawn["income"].drop_nulls().unique().to_list() == [5000.0]
    result = CliRunner().invoke(main, [*common, "--group-size", "100", "--out", str(tmp_path / "two")])
    assert result.exit_code == 0, result.output
    incomes = pl.read_csv(tmp_path / "two" / "synthetic.csv")["income"].drop_nulls()
    assert incomes.mean() == pytest.approx(table["income"].mean(), abs=0.01)
    assert incomes.max() - incomes.min() < 0.11  # one step of the precision that the bounds imply
    assert CliRunner().invoke(main, ["verify", str(tmp_path / "two")]).exit_code == 0


def test_special_values_are_shares_of_groups_and_no_numbers():
    codec = Codec(Schema((Field("x", "integer", 0, 100, special=("N", "?")),)))
    cells, _ = codec.encode({"x": ["50", "N", "?", None, "100"]}, "cells")
    columns = MixedCoding(codec).encode(cells)
    assert columns.categories.argmax(axis=1).tolist() == [0, 1, 2, 3, 0]
    assert columns.missing[:, 0].tolist() == [False, True, True, True, False]
    table = pl.DataFrame({"x": ["N"] * 50 + ["80"] * 50})
    drawn = AnonymousSynthesizer(10, schema=codec.schema, seed=1).fit(table).sample(400)
    assert set(drawn["x"].to_list()) == {"N", "80"}

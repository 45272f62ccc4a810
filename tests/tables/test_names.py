"""Columns may have any name: of a function of a library, of a word of a language, and names that look alike."""

import csv
import json
import shlex
import sqlite3

import numpy as np
import pandas as pd
import polars as pl
import pytest

import covey
from covey.desk.web.pictures import pictures
from covey.tables.codec import Codec
from covey.tables.drafting import draft
from covey.tables.schema import Schema
from covey.tables.sources.databases import Database
from covey.workflow import evaluate
from fuzz.names import ALL
from tests.commands import ok

ROWS = 40
# One or two of each kind, for what takes its time with every column.
NASTY = ("count", "len", "*", "^a$", "None", "__proto__", "Age", "AGE", "e\u0301", "é", "שלום", 'a"b', "row", "person")


def texts(names, rows=ROWS):
    """A column of words, of numbers with missing cells or of dates for every name, as text."""
    g = np.random.default_rng(1)
    kinds = (
        lambda: g.choice(["u", "v", "=w"], rows),
        lambda: g.choice(["", "1", "2", "30"], rows),
        lambda: g.choice(["2024-01-05", "2024-02-29"], rows),
    )
    return {name: [str(cell) for cell in kinds[j % 3]()] for j, name in enumerate(names)}


def fields(names):
    limits = (
        ("string", {"enum": ["u", "v", "=w"]}),
        ("integer", {"minimum": 0, "maximum": 40}),
        ("date", {"minimum": "2024-01-01", "maximum": "2024-12-31"}),
    )
    return [
        dict(zip(("name", "type", "constraints"), (name, *limits[j % 3]), strict=True)) for j, name in enumerate(names)
    ]


def as_sqlite(columns, path):
    """SQLite sees no capitals."""
    with sqlite3.connect(path) as connection:
        names = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
        connection.execute(f"CREATE TABLE t ({names})")
        holes = ", ".join("?" * len(columns))
        connection.executemany(f"INSERT INTO t VALUES ({holes})", list(zip(*columns.values(), strict=True)))
    connection.close()
    return Database(str(path), table="t")


def written(columns, path, write):
    write(pl.DataFrame(columns), path)
    return path


SOURCES = {
    "columns": lambda columns, folder: columns,
    "polars": lambda columns, folder: pl.DataFrame(columns),
    "pandas": lambda columns, folder: pd.DataFrame(columns),
    "categories": lambda columns, folder: pd.DataFrame(columns).astype("category"),
    "pyarrow": lambda columns, folder: pl.DataFrame(columns).to_arrow(),
    "csv": lambda columns, folder: written(columns, folder / "t.csv", pl.DataFrame.write_csv),
    "parquet": lambda columns, folder: written(columns, folder / "t.parquet", pl.DataFrame.write_parquet),
    "arrow": lambda columns, folder: written(columns, folder / "t.arrow", pl.DataFrame.write_ipc),
    "workbook": lambda columns, folder: written(columns, folder / "t.xlsx", pl.DataFrame.write_excel),
    "sqlite": lambda columns, folder: as_sqlite(columns, folder / "t.sqlite"),
}


def read_by(kind):
    """The names that a kind of source can have: workbooks take two that differ in case for one, as SQLite does."""
    blind = kind in ("sqlite", "workbook")
    names = {name.lower() if blind else name: name for name in reversed(ALL)}
    return [name for name in names.values() if kind != "workbook" or len(name) <= 255]


@pytest.mark.parametrize("kind", SOURCES)
def test_every_kind_of_source_reads_and_drafts_columns_of_any_name(kind, tmp_path):
    names = read_by(kind)
    plain = [f"plain {j}" for j in range(len(names))]
    columns = texts(names)
    source = SOURCES[kind](columns, tmp_path)
    usual = dict(zip(plain, columns.values(), strict=True))
    wanted = Codec(Schema.from_dict({"fields": fields(plain)})).encode(usual)[0]
    assert np.array_equal(Codec(Schema.from_dict({"fields": fields(names)})).encode(source)[0], wanted)
    drafted = {field.name: field for field in draft(source).fields}
    for name, before in zip(names, draft(usual).fields, strict=True):
        assert drafted[name].type == before.type


@pytest.fixture
def nasty(at_home):
    """A table of such columns, its schema, and a ledger."""
    pl.DataFrame(texts(NASTY)).write_csv("table.csv")
    (at_home / "schema.json").write_text(json.dumps({"fields": fields(NASTY)}))
    ok("ledger open people --budget 100")
    return at_home


@pytest.mark.usefixtures("few_steps")
@pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")
def test_a_table_of_such_columns_goes_its_whole_way(nasty):
    ok("init table.csv -o draft.json")
    assert [field["name"] for field in json.loads((nasty / "draft.json").read_text())["fields"]] == list(NASTY)
    ok("check table.csv --schema schema.json")
    ok("plan schema.json --rows 40 --epsilon 10")
    ok("release table.csv --schema schema.json --epsilon 10 --delta 1e-7 --dataset people --out bundle")
    ok("verify bundle")
    with (nasty / "bundle" / "synthetic.csv").open(newline="", encoding="utf-8") as file:
        assert next(csv.reader(file)) == list(NASTY)
    for name in NASTY:
        ok("ask", "bundle", f"share {shlex.quote(name)}=missing")
    ok("tables bundle -o tables")
    ok("sample bundle --rows 5 --where count=u --where '^a$=u' -o some.csv")
    assert evaluate(nasty / "table.csv", nasty / "bundle", predicting=False).figures
    ok("anonymize table.csv --schema schema.json --group-size 5 --out anonymous")


@pytest.mark.usefixtures("few_steps")
@pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")
@pytest.mark.parametrize("name", ["count", "^a$", "person", "weight", "a=b"])
def test_such_columns_may_say_whose_a_row_is(name, tmp_path):
    columns = texts(["len", "index", "value"]) | {name: [f"p{k // 2}" for k in range(ROWS)]}
    schema = Schema.from_dict({"fields": fields(["len", "index", "value"])})
    synth = covey.PrivateSynthesizer(10.0, 1e-6, schema=schema, person=name, seed=1).fit(pd.DataFrame(columns))
    assert synth.n == ROWS / 2
    assert list(synth.sample(9).columns) == ["len", "index", "value"]


def test_the_app_draws_pictures_of_such_columns(nasty):
    schema = Schema.load(nasty / "schema.json")
    found = pictures(nasty / "table.csv", schema, schema.fields)
    assert set(found["count"].labels) == {"u", "v", "=w"}
    assert list(found) == list(NASTY)

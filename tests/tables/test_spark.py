"""Row groups are shared out so that each is read once, by one task; what may not be the whole table is refused."""

import re
from dataclasses import replace
from datetime import date
from types import SimpleNamespace

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import covey
from covey.errors import InputError, ParameterError
from covey.tables.codec import Codec
from covey.tables.columns import Words
from covey.tables.dialects import Spelling
from covey.tables.reading import Reader
from covey.tables.schema import Field, Schema
from covey.tables.spark import frames as sparkfiles
from covey.tables.spark.frames import BatchEncoder, SparkParquet, plan
from tests.clinic import PACKAGE
from tests.entries import schema_of

OF_FILES = schema_of(
    Field("who", "integer", 0, 999, bins=10, required=True, confirmed=True),
    Field("mood", "string", enum=("good", "bad"), required=True, confirmed=True),
)
SESSION = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=2))


def table(start, end):
    return pl.DataFrame({"mood": ["good", "bad", "odd"] * end, "note": "x", "who": range(3 * end)})[start:end]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Three files with 4, 1 and 3 row groups of up to 7 rows, the second under no telling name, and what Spark leaves beside."""
    monkeypatch.setattr(sparkfiles, "LEAST_CELLS", 1)
    table(0, 28).write_parquet(tmp_path / "a.parquet", row_group_size=7)
    table(28, 33).drop("note").with_columns(more=1).write_parquet(tmp_path / "b_0")
    table(33, 50).write_parquet(tmp_path / "c.parquet", row_group_size=7)
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".a.parquet.crc").touch()
    table(0, 9).write_parquet(tmp_path / "d.parquet._COPYING_")  # half of a file that is still being copied
    return tmp_path


def read(made, tasks=None):
    """Who is in the parts that tasks read, one task after the other."""
    parts = [part for k in tasks or range(len(made.tasks)) for part in made([pa.record_batch({"id": [k]})])]
    assert all(part.ignored == ("note", "more") for part in parts)
    assert all(isinstance(part.columns["mood"], Words) for part in parts)
    return [who for part in parts for who in part.columns["who"].to_list()]


def test_every_row_group_is_read_once_by_one_task(folder, monkeypatch):
    """A plan that skips a row group or hands one out twice, here made by hand, would be noticed."""
    for cells, count in ((1, 8), (20, 4), (34, 3), (90, 2), (10**9, 1)):
        monkeypatch.setattr(sparkfiles, "LEAST_CELLS", cells)
        monkeypatch.setattr(sparkfiles, "TASK_CELLS", cells)
        made = plan(SparkParquet(SESSION, folder), OF_FILES)
        assert (len(made.tasks), made.n) == (count, 50)
        assert read(made) == list(range(50))
        first, *others = made.tasks
        skipped = (*others, (replace(first[0], groups=first[0].groups[1:]), *first[1:]))
        twice = (*others, (*first, first[0]))
        assert sorted(read(replace(made, tasks=skipped))) != list(range(50))
        assert sorted(read(replace(made, tasks=twice))) != list(range(50))
    listed = plan(SparkParquet(SESSION, [folder / "c.parquet", str(folder / "b_0")]), OF_FILES)
    assert read(listed) == [*range(33, 50), *range(28, 33)]


def test_processors_share_the_work(folder):
    made = plan(SparkParquet(SESSION, folder), OF_FILES)
    assert len(made.tasks) == 7  # of at least 50 rows / (2 processors · 4), in whole row groups


def test_what_may_not_be_the_table_is_refused(folder, tmp_path):
    def refused(path, said, kind=InputError):
        with pytest.raises(kind, match=re.escape(said)):
            plan(SparkParquet(SESSION, path), OF_FILES)

    refused("hdfs:///survey", "is an address", ParameterError)
    refused(3, "takes a folder or names of files, got int", ParameterError)
    refused([folder / "a.parquet", folder / ".." / folder.name / "a.parquet"], "is named twice", ParameterError)
    refused([folder, folder / "a.parquet"], "is named twice", ParameterError)
    (folder / "twin").hardlink_to(folder / "a.parquet")
    refused(folder, "is named twice", ParameterError)
    (folder / "twin").unlink()
    refused(folder / "d.parquet", "there is no file")
    (folder / "_delta_log").mkdir()
    refused(folder, "has folders in it")
    refused(folder / "_delta_log", "has no Parquet file in it")
    refused(folder / "_SUCCESS", "is not a file that can be read as a table")
    table(0, 0).write_parquet(folder / "none.parquet")
    refused(folder / "none.parquet", "a header and no rows")
    table(0, 9).drop("mood").write_parquet(folder / "other.parquet")
    refused([folder / "a.parquet", folder / "other.parquet"], "the table has no column 'mood'")


def test_a_file_that_changes_after_it_was_looked_at_is_refused(folder):
    made = plan(SparkParquet(SESSION, folder), OF_FILES)
    table(0, 28).write_parquet(folder / "a.parquet", row_group_size=9)
    with pytest.raises(InputError, match="the table changed while it was read"):
        read(made)
    (folder / "a.parquet").unlink()
    with pytest.raises(InputError, match="an executor of Spark sees no file"):
        read(made)


def test_persons_need_a_frame(folder):
    files = SparkParquet(SESSION, folder)
    with pytest.raises(ParameterError, match=re.escape("Give the frame instead: spark.read.parquet(…)")):
        covey.PrivateSynthesizer(1.0, schema=OF_FILES, person="who").prepare(files)
    with pytest.raises(ParameterError, match=re.escape("Give the frame instead: spark.read.parquet(…)")):
        Reader(PACKAGE).prepare({"patients": files, "visits": files})


def test_text_is_spelled_as_the_schema_says():
    """Dates with dots, in a column of few words and in one of many: read as in a frame on this machine."""
    schema = Schema((Field("d", "date", "2020-01-01", "2030-12-31", spelling=Spelling(date_format="%d.%m.%Y")),))
    codec, days = Codec(schema), pl.date_range(date(2021, 1, 1), date(2025, 1, 1), eager=True).dt.to_string("%d.%m.%Y")
    for words in (days[:50], days):
        wanted, log = codec.encode(pl.DataFrame({"d": words}))
        found, seen = BatchEncoder(codec, codec.encode_part, ())(pa.record_batch({"d": words.to_list()}))
        assert np.array_equal(found, wanted)
        assert seen == log
        assert not log.columns["d"].unparseable

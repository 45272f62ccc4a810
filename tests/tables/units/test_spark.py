"""What is particular to Spark: where things run, what reaches the driver, and what happens when a worker dies."""

import decimal
import importlib.util
import json
import os
import pickle
import signal
from datetime import UTC, date, datetime
from pathlib import Path
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest

import covey
import covey.engine.exact
from audits.gates import opened
from covey.engine.codes.domain import CodeCounts, PairTables
from covey.errors import CoveyWarning, InputError, ParameterError
from covey.tables.codec import Codec
from covey.tables.schema import Constant, Field
from covey.tables.spark import frames as sparkfiles
from tests.entries import schema_of

from .test_engines import FLAGS, NUMBERS, SCHEMA, N, flags, survey, visits

pytestmark = pytest.mark.usefixtures("few_steps")


def synth(schema=SCHEMA, seed=7):
    return covey.PrivateSynthesizer(2.0, 1e-6, schema=schema, seed=seed)


def spread(spark, frame, parts=3):
    return spark.createDataFrame(frame.to_arrow()).repartition(parts)


@pytest.fixture
def files(spark, tmp_path, monkeypatch):
    """The same as files that the executors read themselves: two of them, in row groups of 40 rows and a task for each or so."""
    monkeypatch.setattr(sparkfiles, "LEAST_CELLS", 1)

    def put(frame):
        folder = tmp_path / "files"
        folder.mkdir()
        for name, part in (("a", frame[:170]), ("b", frame[170:])):
            part.write_parquet(folder / f"{name}.parquet", row_group_size=40)
        return covey.SparkParquet(spark, folder)

    return put


def same(a, b):
    same_points = a.centres.points.tobytes() == b.centres.points.tobytes()
    return same_points and (a.certificate, a.privacy) == (b.certificate, b.privacy)


@pytest.fixture
def collected(spark, monkeypatch):
    """Every row that the driver asks for."""
    seen = []
    frame = type(spark.range(1))

    def watched(name):
        real = getattr(frame, name)

        def call(self, *arguments, **options):
            found = real(self, *arguments, **options)
            seen.append((name, self.columns, found))
            return found

        monkeypatch.setattr(frame, name, call)

    for name in ("collect", "toArrow", "toPandas", "toLocalIterator", "take", "count", "foreach"):
        watched(name)
    return seen


@pytest.mark.parametrize(("table", "schema"), [(survey, SCHEMA), (flags, FLAGS)])
def test_nothing_but_sums_reaches_the_driver(spark, collected, table, schema):
    """One binary cell per pass, as large for a thousand rows as for five hundred."""
    lengths = []
    for n in (N, 2 * N):
        tracker, group = spark.sparkContext.statusTracker(), f"fit {n}"
        frame = spread(spark, table(n))
        spark.sparkContext.setJobGroup(group, group)
        synth(schema).fit(frame)
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
        assert tracker.getJobIdsForGroup(group)
        assert {name for name, _, _ in collected} == {"collect"}
        assert all(columns == ["sums"] and len(rows) == 1 for _, columns, rows in collected)
        assert all(isinstance(rows[0].sums, bytes | bytearray) for _, _, rows in collected)
        values = [pickle.loads(rows[0].sums) for _, _, rows in collected]
        arrays = [a for value in values for a in arrays_in(value)]
        assert arrays
        lengths.append([a.shape for a in arrays])
        collected.clear()
    assert lengths[0] == lengths[1]


def arrays_in(value):
    """All arrays inside a value."""
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, dict):
        return [a for v in value.values() for a in arrays_in(v)]
    if isinstance(value, tuple | list):
        return [a for v in value for a in arrays_in(v)]
    return arrays_in(vars(value)) if hasattr(value, "__dict__") else []


def test_files_that_executors_read_give_the_release_of_one_file(files, collected):
    """Bit for bit, with the same private log, and with sums alone in the driver."""
    synths = [synth(), synth()]
    here, there = (one.prepare(given) for one, given in zip(synths, (survey(), files(survey())), strict=True))
    assert there.log == here.log
    assert same(*(one.fit(prepared) for one, prepared in zip(synths, (here, there), strict=True)))
    assert collected
    assert all(columns == ["sums"] and len(rows) == 1 for _, columns, rows in collected)


def test_numbers_in_files_that_executors_read_keep_their_precision(files):
    here, there = (synth(NUMBERS).prepare(given) for given in (visits(), files(visits())))
    assert there.log == here.log
    order = [opened(prepared.rows.whole(lambda X: X[np.lexsort(X.T)])) for prepared in (here, there)]
    assert (order[0] == order[1]).all()


@pytest.mark.parametrize("fault", ["skipped", "twice"])
def test_a_row_group_that_is_skipped_or_read_twice_is_noticed(files, monkeypatch, fault):
    real = sparkfiles._shared_out

    def faulty(opened, rows):
        first, *others = real(opened, rows)
        return tuple(others) if fault == "skipped" else (first, first, *others)

    monkeypatch.setattr(sparkfiles, "_shared_out", faulty)
    with pytest.raises(InputError, match="the table changed while it was read"):
        synth().prepare(files(survey()))


def test_files_that_executors_cannot_read_are_refused_in_the_words_for_one_file(files):
    """Before any noise. The footer is whole, and what it points to is not."""
    table = files(survey())
    path = table.files[0]
    data = path.read_bytes()
    path.write_bytes(data[:100] + bytes(len(data) // 2 - 100) + data[len(data) // 2 :])
    fitting, said = synth(), []
    for given in (path, table):
        with pytest.raises(InputError, match="is not a file that can be read as a table") as refusal:
            fitting.fit(given)
        said.append(str(refusal.value))
    assert said[0] == said[1]
    assert fitting._streams_taken == 0


def test_a_worker_that_is_killed_in_the_middle_changes_nothing(files, tmp_path):
    """In a task that reads files; below, in one that reads a frame."""
    rows = synth().prepare(files(survey())).rows
    marker, sizes = str(tmp_path / "killed"), Codec(SCHEMA).domain_sizes
    tables = CodeCounts(tuple(range(len(sizes))), sizes)

    def deadly(batch):
        found = tables(batch)
        if not os.path.exists(marker):
            Path(marker).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    with patch.object(covey.engine.exact, "_check"):  # a kernel that kills is not pure
        found = opened(rows.reduce(deadly)).values
    assert os.path.exists(marker)
    whole = tables(Codec(SCHEMA).encode(survey())[0]).values
    assert all((one == other).all() for one, other in zip(found, whole, strict=True))
    assert sum(counts.sum() for counts in found) == N * len(sizes)


def test_a_release_survives_workers_that_are_killed(spark, tmp_path):
    """The frame itself is computed by a worker that dies after its first batch, three times in different passes."""
    folder, limit = str(tmp_path), 3

    def deadly(batches):
        for batch in batches:
            yield batch
            killed = len(os.listdir(folder))
            if killed < limit:
                Path(folder, f"{killed} {os.getpid()}").touch()
                os.kill(os.getpid(), signal.SIGKILL)

    frame = spread(spark, flags())
    wanted = synth(FLAGS).fit(flags())
    assert same(synth(FLAGS).fit(frame.mapInArrow(deadly, frame.schema)), wanted)
    assert len(list(tmp_path.iterdir())) >= limit


def test_text_that_is_not_utf8_is_refused_before_any_noise(spark):
    frame = spread(spark, survey())
    broken = frame.selectExpr("if(age = 33, cast(X'ff41' as string), mood) as mood", "age", "smokes", "seen")
    fitting = synth()
    with pytest.raises(InputError, match="column 'mood' holds text that is not UTF-8"):
        fitting.fit(broken)
    assert fitting.privacy is None
    assert fitting._streams_taken == 0


def test_a_file_that_spark_cannot_read_is_refused_before_any_noise(spark, tmp_path):
    path = tmp_path / "t.parquet"
    survey().write_parquet(path)
    frame = spark.read.parquet(str(path))
    data = path.read_bytes()
    path.write_bytes(data[:100] + bytes(len(data) - 100))
    fitting = synth()
    with pytest.raises(InputError, match="Spark could not read the table"):
        fitting.fit(frame)
    assert fitting._streams_taken == 0


def test_a_frame_without_rows_or_without_a_column_is_refused(spark):
    frame = spread(spark, survey())
    with pytest.raises(InputError, match="no rows"):
        synth().prepare(frame.filter("age > 1000"))
    with pytest.raises(InputError, match="no column 'mood'"):
        synth().prepare(frame.drop("mood"))


def test_a_frame_that_changes_between_passes_is_refused(spark, tmp_path):
    marker = str(tmp_path / "first")

    def shrinking(batches):
        for batch in batches:
            yield batch.slice(1) if os.path.exists(marker) else batch

    frame = spread(spark, survey())
    rows = synth().prepare(frame.mapInArrow(shrinking, frame.schema)).rows
    Path(marker).touch()
    with pytest.raises(InputError, match="changed"):
        rows.reduce(CodeCounts((0, 1, 2, 3), (50,) * 4))
    with pytest.raises(InputError, match="changed"):
        rows.whole(len)


def test_columns_are_found_whatever_they_are_called(spark):
    """Dots, marks, names that differ in case only, and passed-over columns of the same name."""
    data = pl.DataFrame({"a.b": ["x", "y"] * 20, "A.b": ["y"] * 40, "`c`": [1, 2, 3, 4] * 10, "d": [0] * 40})
    frame = spark.createDataFrame(data.to_arrow())
    frame = frame.select("*", frame["d"].alias("D")).toDF("a.b", "A.b", "`c`", "d d", "d d")
    schema = schema_of(
        Field("`c`", "integer", 1, 4, bins=4, required=True, confirmed=True),
        Field("a.b", "string", enum=("x", "y"), required=True, confirmed=True),
        Field("A.b", "string", enum=("x", "y"), required=True, confirmed=True),
    )
    with pytest.warns(CoveyWarning, match="a column is called 'd d_2'"):
        rows = synth(schema).prepare(frame).rows
    codes = Codec(schema).encode(data)[0]
    kernel = PairTables(Codec(schema).domain_sizes)
    found, wanted = opened(rows.reduce(kernel)).integers(), kernel(codes).integers()
    assert all((a == b).all() for a, b in zip(found, wanted, strict=True))


def test_spark_types_are_read_as_they_are_elsewhere(spark):
    """Decimals, instants in the session's zone, times without a zone, days, bytes, nested values and holes."""
    late, early = datetime(2024, 3, 1, 23, 30), datetime(2024, 3, 2, 0, 30)
    rows = [
        (decimal.Decimal("1.50"), late, late, date(2024, 3, 1), b"x", [1], 1.0),
        (decimal.Decimal("2.25"), early, early, None, b"y", [2, 3], float("nan")),
        (None, None, None, date(2024, 3, 9), b"\xff", None, None),
    ]
    kinds = "d decimal(9,2), at timestamp, plain timestamp_ntz, day date, raw binary, nested array<int>, number double"
    spark.conf.set("spark.sql.session.timeZone", "GMT+02:00")
    try:
        frame = spark.createDataFrame(rows, kinds)
        schema = schema_of(
            Field("d", "number", 0, 4, bins=4, decimals=2, confirmed=True),
            Field("at", "datetime", "2024-03-01T00:00:00", "2024-03-10T00:00:00", bins=9, confirmed=True),
            Field("plain", "datetime", "2024-03-01T00:00:00", "2024-03-10T00:00:00", bins=9, confirmed=True),
            Field("day", "date", "2024-03-01", "2024-03-10", bins=10, confirmed=True),
            Field("raw", "string", enum=("x", "y"), confirmed=True),
            Field("nested", "string", enum=("[1]", "[2, 3]"), confirmed=True),
            Field("number", "integer", 0, 3, bins=4, confirmed=True),
        )
        codec = Codec(schema)
        prepared = synth(schema).prepare(frame)
        found = opened(prepared.rows.whole(lambda X: X[np.lexsort(X.T)]))
        wanted, log = codec.encode(frame.toArrow())
        assert (found == wanted[np.lexsort(wanted.T)]).all()
        assert prepared.log == log
        # The day of an instant is that of UTC, wherever the session is.
        instants = [row[0].astimezone(UTC).date() for row in frame.select("at").collect() if row[0] is not None]
        hole = codec.domain_sizes[1] - 1
        assert sorted(found[:, 1]) == sorted([*(day.day - 1 for day in instants), hole])
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.parametrize(("table", "schema", "parts"), [(survey, SCHEMA, 0), (flags, FLAGS, 1)])
def test_executors_draw_the_rows_that_the_driver_would(spark, table, schema, parts):
    """Part by part, in order, with the types of the schema; and the same rows whenever the frame is computed."""
    fitted = [synth(schema).fit(table()) for _ in range(2)]
    rows = parts * covey.release.drawing.MakeRows.size + 321
    here = pl.DataFrame(fitted[0].sample(rows))
    there = fitted[1].sample_spark(spark, rows)
    assert there.columns == list(schema.names)
    assert pl.from_arrow(there.toArrow()).equals(here.select(there.columns))
    assert there.agg({"*": "count"}).first()[0] == rows
    assert not schema.validate(there.limit(100).toArrow())


def test_executors_draw_every_kind_of_column(spark):
    """Constants, numbers, times and names that need quoting; holes stay holes."""
    schema = schema_of(
        Field("a.b `c`", "string", enum=("x", "y"), confirmed=True),
        Field("size", "number", 0, 4, bins=4, decimals=1, confirmed=True),
        Field("at", "datetime", "2024-03-01T00:00:00", "2024-03-10T00:00:00", bins=9, confirmed=True),
        Field("source", "string", constant=Constant("Ω"), confirmed=True),
        Field("nothing", "date", constant=Constant(None), confirmed=True),
    )
    table = {"a.b `c`": ["x", None] * 500, "size": [1.5, 2.5] * 500, "at": ["2024-03-02T10:11:12", None] * 500}
    fitted = [synth(schema).fit(table) for _ in range(2)]
    found = fitted[0].sample_spark(spark, 300).toArrow()
    wanted = pl.DataFrame(fitted[1].sample(300))
    assert pl.from_arrow(found).with_columns(pl.col("at").dt.cast_time_unit("ms")).equals(wanted)
    assert found.column("a.b `c`").null_count > 0
    assert found.column("nothing").null_count == 300


def test_only_a_synthesizer_with_a_schema_draws_on_executors_and_groups_need_the_records_here(spark):
    with pytest.raises(ParameterError, match="memory of this machine"):
        covey.AnonymousSynthesizer(5, schema=SCHEMA).fit(spread(spark, survey()))
    with pytest.raises(ParameterError, match="Give schema"):
        covey.PrivateSynthesizer(2.0, seed=1).fit(flags().to_numpy().astype(np.uint8)).sample_spark(spark, 10)
    with pytest.raises(ParameterError, match="fit"):
        synth().sample_spark(spark, 10)


@pytest.mark.parametrize("spread_out", [False, True])
def test_what_is_sent_to_executors_holds_no_cell_of_the_table(spark, tmp_path, spread_out):
    """Neither the fitted synthesizer nor its parts remember what was read, not even words that no schema declares."""
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")
    secret = survey().with_columns(mood=pl.when(pl.col("age") == 33).then(pl.lit("unheard of")).otherwise("mood"))
    secret.write_parquet(tmp_path / "t.parquet")
    fitting = synth()
    prepared = fitting.prepare(spread(spark, secret) if spread_out else tmp_path / "t.parquet")
    assert prepared.log.columns["mood"].unknown > 0
    fitting.fit(prepared)
    for thing in (fitting, fitting.draw(10), fitting._codec):
        sent = cloudpickle.dumps(thing)
        assert b"so so" in sent
        assert b"unheard of" not in sent


def test_the_example_makes_a_release(spark, tmp_path):
    place = Path(__file__).parents[3] / "examples" / "spark_job.py"
    spec = importlib.util.spec_from_file_location("spark_job", place)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    survey(2000).write_parquet(tmp_path / "t.parquet")
    SCHEMA.save(tmp_path / "schema.json")
    ledger = covey.ledger.Ledger(tmp_path / "ledger.sqlite")
    ledger.open_dataset("survey", 3)
    arguments = ["t.parquet", "schema.json", "survey", "ledger.sqlite", "out"]
    example.release(spark, *(name if name == "survey" else str(tmp_path / name) for name in arguments), files=True)
    assert spark.read.parquet(str(tmp_path / "out" / "rows")).count() == 2000
    said = json.loads((tmp_path / "out" / "bundle" / "privacy.json").read_text())
    assert said["epsilon"] == "1"
    (status,) = ledger.datasets()
    assert status.remaining.epsilon == 2


@pytest.mark.parametrize("person", [None, "person"])
def test_columns_may_be_called_as_the_reader_calls_its_own(spark, person):
    """Rows are counted by person in columns of the reader's own; Spark sees no capitals and takes a point for a part."""
    names = ("count", "weight", "rows", "persons", "a.b", "*", "Age", "AGE", "`q`", "c0")
    g = np.random.default_rng(0)
    columns = {name: g.choice(["u", "v"], 60).tolist() for name in names} | {
        "person": [f"p{k // 2}" for k in range(60)]
    }
    schema = schema_of(*(Field(name, "string", enum=("u", "v"), required=True) for name in names))
    wanted = covey.PrivateSynthesizer(5.0, 1e-6, schema=schema, person=person, seed=1)
    found = covey.PrivateSynthesizer(5.0, 1e-6, schema=schema, person=person, seed=1)
    frame = pl.DataFrame(columns)
    rows = wanted.fit(frame).sample(9)
    assert found.fit(spread(spark, frame)).sample(9).equals(rows)
    drawn = found.sample_spark(spark, 9).toArrow()
    assert drawn.column_names == list(names)
    assert drawn.num_rows == 9

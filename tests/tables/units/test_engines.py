"""One suite for every engine: the same table, wherever its rows are, gives the same sums and, seed for seed, the same release."""

from functools import cache, partial

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pytest

import covey
from audits.gates import opened
from covey.engine.codes.counts import column_counts, moments, size_counts
from covey.engine.codes.domain import CodeCounts, RangeCounts
from covey.engine.units import local
from covey.engine.units.rows import Mapped
from covey.errors import InputError, InternalError
from covey.paper.records import trimmed
from covey.tables import columns
from covey.tables import reading as reading
from covey.tables.codec import Codec
from covey.tables.fields import Follows
from covey.tables.schema import Field, Schema
from covey.tables.sources import csvfile, databases
from covey.tables.spark import units as spark
from tests.entries import schema_of
from tests.tables.examples import sqlite_table

pytestmark = pytest.mark.usefixtures("few_steps")

N = 250  # several parts of every engine


def survey(n=N, seed=1):
    """A small table with categories, numbers, dates and holes."""
    generator = np.random.default_rng(seed)
    mood = generator.integers(0, 3, n)
    return pl.DataFrame(
        {
            "mood": [["bad", "so so", "good"][k] for k in mood],
            "age": [None if k % 17 == 0 else int(20 + 10 * m + k % 9) for k, m in enumerate(mood)],
            "smokes": [bool(k % 3 == 0) for k in range(n)],
            "seen": [f"2024-0{1 + k % 9}-11" for k in range(n)],
            "note": ["not in the schema"] * n,
        }
    )


SCHEMA = schema_of(
    Field("mood", "string", enum=("bad", "so so", "good"), confirmed=True),
    Field("age", "integer", 18, 60, bins=7, confirmed=True),
    Field("smokes", "boolean", required=True, confirmed=True),
    Field("seen", "date", "2024-01-01", "2024-12-31", bins=6, confirmed=True),
)

# Numbers at their own precision, one of them too fine to be counted code by code, and a date that follows another one.
NUMBERS = schema_of(
    Field("mood", "string", enum=("bad", "so so", "good"), confirmed=True),
    Field("age", "number", 0, 10**6, decimals=3, confirmed=True),
    Field("smokes", "boolean", required=True, confirmed=True),
    Field("seen", "date", "2024-01-01", "2024-12-31", confirmed=True),
    Field("left", "date", "2024-01-01", "2025-12-31", follows=Follows("seen"), confirmed=True),
)


def visits():
    """The survey, with a day on which the visit ended."""
    return survey().with_columns(left=pl.Series([f"2024-{10 + k % 3}-0{1 + k % 9}" for k in range(N)]))


def flags(n=N, p=9, seed=2):
    bits = np.random.default_rng(seed).random((n, p)) < np.linspace(0.1, 0.9, p)
    return pl.DataFrame({f"f{i}": bits[:, i] for i in range(p)})


FLAGS = Schema(tuple(Field(f"f{i}", "boolean", required=True, confirmed=True) for i in range(9)))


def as_frame(frame, folder):
    return frame


def as_csv(frame, folder):
    frame.write_csv(folder / "t.csv")
    return folder / "t.csv"


def as_parquet(frame, folder):
    frame.write_parquet(folder / "t.parquet", row_group_size=123)
    return folder / "t.parquet"


def as_arrow_file(frame, folder):
    feather.write_feather(frame.to_arrow(), folder / "t.arrow", chunksize=77)
    return folder / "t.arrow"


def as_arrow_stream(frame, folder):
    with pa.ipc.new_stream(folder / "s.arrow", frame.to_arrow().schema) as writer:
        writer.write_table(frame.to_arrow(), max_chunksize=77)
    return folder / "s.arrow"


def as_sqlite(frame, folder):
    path = folder / f"{len(list(folder.iterdir()))}.db"
    sqlite_table(path, f"t ({', '.join(frame.columns)})", frame.rows())
    return covey.Database(f"sqlite:///{path}", table="t")


# Each engine puts a frame somewhere and returns what `prepare` and `fit` take.
ENGINES = {
    "frame": as_frame,
    "csv": as_csv,
    "parquet": as_parquet,
    "arrow": as_arrow_file,
    "arrow stream": as_arrow_stream,
    "sqlite": as_sqlite,
}


@pytest.fixture(params=[*ENGINES, "postgresql", "spark"])
def place(request, tmp_path, monkeypatch):
    """Small parts, so that every table has several."""
    if request.param == "spark":
        session = request.getfixturevalue("spark")
        monkeypatch.setattr(spark, "BATCH_ROWS", 60)
        return lambda frame: session.createDataFrame(frame.to_arrow()).repartition(3)
    monkeypatch.setattr(columns, "PART_ROWS", 64)
    monkeypatch.setattr(csvfile, "BLOCK", 1000)
    monkeypatch.setattr(databases, "SQLITE_ROWS", 75)
    monkeypatch.setattr(databases, "BATCH_BYTES", 4096)
    if request.param == "postgresql":
        server = request.getfixturevalue("postgresql")
        return lambda frame: covey.Database(server.url(), table=server.load(frame))
    return lambda frame: ENGINES[request.param](frame, tmp_path)


@pytest.fixture(params=["kept", "read again"])
def memory(request, monkeypatch):
    if request.param == "read again":
        if "spark" in request.node.callspec.params.values():
            pytest.skip("Spark keeps its own records: there is nothing to read again")
        monkeypatch.setattr(reading, "KEEP_BYTES", 0)


def test_numbers_that_are_counted_by_ranges_are_read_once(tmp_path, monkeypatch):
    monkeypatch.setattr(csvfile, "BLOCK", 1000)
    synth = covey.PrivateSynthesizer(1.0, schema=NUMBERS)
    (wide,) = (kernel.columns for kernel in synth._regain().first_pass if isinstance(kernel, RangeCounts))
    codes = Codec(NUMBERS).encode(visits(), coding="numbers")[0]
    kernel = RangeCounts(wide, tuple(np.array([0, 5, 10**4, int(codes[:, j].max()) + 1]) for j in wide))
    seen = []
    for room, again in ((1 << 29, False), (900, True)):  # for 250 codes of four bytes
        monkeypatch.setattr(local, "SORTED_BYTES", room)
        rows = synth.prepare(as_csv(visits(), tmp_path)).rows
        rows._batch = lambda part, read=rows._batch: seen.append(len(part)) or read(part)
        found, wanted = opened(rows.reduce(kernel)).integers(), kernel(codes).integers()
        assert all((a == b).all() for a, b in zip(found, wanted, strict=True))
        assert bool(seen) is again


def test_bits_and_steps_on_records(place, memory):
    X = flags().to_numpy().astype(np.uint8)
    rows = covey.PrivateSynthesizer(1.0, schema=FLAGS).prepare(place(flags())).rows
    assert (opened(rows.reduce(moments)).second == moments(X).second).all()
    assert (opened(rows.reduce(size_counts)).values[0] == size_counts(X).values[0]).all()
    limit = partial(trimmed, limits=(((0, 3, 5), 1),))
    assert (opened(Mapped(rows, limit).reduce(column_counts)).values[0] == column_counts(limit(X)).values[0]).all()
    assert (opened(Mapped(rows, limit).whole(lambda Z: Z.sum(axis=0))) == limit(X).sum(axis=0)).all()


def test_no_engine_takes_a_kernel_that_could_keep_what_it_sees(place):
    seen = []
    rows = covey.PrivateSynthesizer(1.0, schema=SCHEMA).prepare(place(survey())).rows
    for ask in (rows.reduce, rows.whole, Mapped(rows, np.sort).reduce, Mapped(rows, np.sort).whole):
        with pytest.raises(InternalError, match="could keep or tell"):
            ask(lambda batch: seen.append(batch))
    with pytest.raises(InternalError, match="could keep or tell"):
        Mapped(rows, lambda batch: seen.append(batch) or batch).reduce(column_counts)
    assert not seen


def unknown():
    """The survey, of which nothing is declared: labels, limits and relations are learned."""
    return survey(2 * N)


LEARNED = Schema(tuple(Field(f.name, f.type, learn=True) for f in SCHEMA.fields), relations="learn")
TABLES = {survey: SCHEMA, flags: FLAGS, visits: NUMBERS, unknown: LEARNED}


def release(source, schema, delta):
    """What is made of a table, and the private log of its reading."""
    epsilon = 2.0 if schema in (SCHEMA, FLAGS) else 30.0  # so that no advice is given
    made = covey.PrivateSynthesizer(epsilon, delta or 1e-6 * bool(schema.learns), schema=schema, seed=7)
    prepared = made.prepare(source)
    return made.fit(prepared), prepared.log


@cache
def of_a_frame(table, delta):
    """What the same table gives as a frame that is kept, and rows of it."""
    plain, log = release(table(), TABLES[table], delta)
    return plain, log, pl.DataFrame(plain.sample(50))


@pytest.mark.parametrize(("table", "schema"), TABLES.items())
def test_the_release_is_the_same_bit_for_bit(place, memory, table, schema):
    delta = 0.0 if reading.KEEP_BYTES else 1e-6  # both laws, and both ways to hold the records
    (plain, log, rows), (other, found) = of_a_frame(table, delta), release(place(table()), schema, delta)
    assert found == log
    assert plain.schema == other.schema
    if table is survey:
        assert (log, log.columns["age"].missing, log.ignored) == (Codec(SCHEMA).encode(survey())[1], 15, ("note",))
    if table is unknown:
        assert plain.privacy.learned
        assert plain.schema.found
    assert plain.centres.points.tobytes() == other.centres.points.tobytes()
    assert plain.centres.weights.tobytes() == other.centres.weights.tobytes()
    assert plain.certificate == other.certificate
    assert plain.privacy == other.privacy
    assert rows.equals(pl.DataFrame(other.sample(50)).select(rows.columns))


def test_a_table_that_grows_while_it_is_read_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "KEEP_BYTES", 0)
    path = as_csv(survey(), tmp_path)
    rows = covey.PrivateSynthesizer(1.0, schema=SCHEMA).prepare(path).rows
    survey(N + 1).write_csv(path)
    with pytest.raises(InputError, match="changed"):
        rows.reduce(CodeCounts((0, 1, 2, 3), (50,) * 4))

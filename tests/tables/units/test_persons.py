"""Rows of one person, scattered over parts, weigh as much as one person: in every engine, to the last bit."""

from collections import Counter
from functools import cache, partial

import numpy as np
import polars as pl
import pytest

import covey
from audits.gates import opened
from covey.engine.codes.counts import (
    Coding,
    coded_moments,
    column_counts,
    moments,
    norm_counts,
    parity_sums,
    score_counts,
    size_counts,
)
from covey.engine.codes.distance import subset_counts
from covey.engine.codes.domain import CodeCounts, PairTables, RangeCounts
from covey.engine.codes.events import WEIGHT_STEPS
from covey.engine.units import persons
from covey.engine.units.persons import PersonCounts, classes, new_keyring, remainders, row_weights
from covey.errors import InputError, InternalError, ParameterError
from covey.tables import reading as reading
from covey.tables.codec import Codec
from covey.tables.columns import named
from covey.tables.reading import Reader
from covey.tables.schema import AtMost, Field, Schema
from covey.tables.sources import csvfile
from covey.tables.spark import units as spark_rows
from tests.clinic import PACKAGE, clinic

from .test_engines import FLAGS, NUMBERS, SCHEMA, TABLES, flags, place, survey  # noqa: F401 # a fixture
from .test_spark import collected  # noqa: F401 # a fixture

pytestmark = pytest.mark.usefixtures("few_steps")

NOBODY = (None, "", "  ", "NaN")


def visits(table, seed=3, most=9):
    """A table whose rows belong to persons with one to nine of them, in no order, and some to nobody."""
    generator = np.random.default_rng(seed)
    whose = generator.integers(0, len(table) // most * 2, len(table)) ** 2 // 40
    names = [NOBODY[k % 4] if k % 23 == 0 else f"{' ' * (k % 2)}p{w}" for k, w in enumerate(whose)]
    return table.with_columns(pl.Series("patient", names, dtype=pl.String))


def by_hand(kernel, frame, schema):
    """Σ over persons of Σ over their rows ⌊2^20/N⌋·kernel(row), and what is left to the public record, in whole numbers."""
    codes = Codec(schema).encode(frame)[0]
    bare = [None if name is None or name.strip().lower() in ("", "nan") else name.strip() for name in frame["patient"]]
    total, record = None, np.zeros((1, codes.shape[1]), dtype=np.uint8)
    for name in {name for name in bare if name}:
        rows = codes[[k for k, other in enumerate(bare) if other == name]]
        weight = WEIGHT_STEPS // len(rows)
        own = kernel(rows).times(weight) + kernel(record).times(WEIGHT_STEPS - weight * len(rows))
        total = own if total is None else total + own
    return total, len({name for name in bare if name})


def same(a, b):
    values = (
        [(a.first, b.first), (a.second, b.second)] if hasattr(a, "second") else zip(a.values, b.values, strict=True)
    )
    return all(np.array_equal(x, y) and x.dtype == np.int64 for x, y in values)


def synth(schema=SCHEMA, person="patient", epsilon=6.0, **options):
    return covey.PrivateSynthesizer(epsilon, 1e-6, schema=schema, person=person, seed=7, **options)


def centre(p):
    return Coding(np.full(p, 100), 600_000, clips=True)


KERNELS = {
    "moments": moments,
    "coded moments": lambda batch: coded_moments(batch, centre(batch.shape[1])),
    "parities": parity_sums,
    "columns": column_counts,
    "sizes": size_counts,
    "norms": lambda batch: norm_counts(batch, np.full(9, 100), np.array([300_000, 900_000])),
    "scores": lambda batch: score_counts(batch, np.ones((9, 1)), np.array([[2, 4]])),
    "subsets": partial(subset_counts, degree=3),
    "codes": CodeCounts((0, 4), (2, 3)),
    "ranges": RangeCounts((1, 2), (np.array([0, 1, 2]), np.array([0, 2]))),
}


@cache
def in_another_order(table):
    """What a shuffled frame gives that is kept."""
    return synth(TABLES[table], epsilon=60.0).fit(visits(table()).sample(fraction=1, shuffle=True, seed=1))


def test_every_engine_releases_the_same(place):  # noqa: F811
    """Seed for seed, whatever the order and the parts; numbers by their trees too."""
    for table, schema in [*TABLES.items()][:3]:  # learned by person: tests/synthesizers
        one = synth(schema, epsilon=60.0).fit(place(visits(table())))  # enough that no advice is given
        two = in_another_order(table)
        assert one.centres.points.tobytes() == two.centres.points.tobytes()
        assert (one.certificate, one.privacy) == (two.certificate, two.privacy)
        assert bool(getattr(one._law, "cells", ())) == (schema is NUMBERS)


@pytest.mark.parametrize("name", KERNELS)
def test_weighted_sums_are_exact_for_every_kernel(name):
    frame = visits(flags(300))
    expected, _ = by_hand(KERNELS[name], frame, FLAGS)
    assert same(opened(synth(FLAGS).prepare(frame).rows.reduce(KERNELS[name])), expected)


def test_a_table_too_large_to_be_kept_is_read_again(tmp_path, monkeypatch):
    frame = visits(survey())
    frame.write_csv(tmp_path / "t.csv")
    monkeypatch.setattr(reading, "KEEP_BYTES", 2000)
    monkeypatch.setattr(csvfile, "BLOCK", 1000)
    prepared = synth().prepare(tmp_path / "t.csv")
    kernel = PairTables((4, 8, 2, 7))
    expected, _ = by_hand(kernel, frame, SCHEMA)
    assert same(opened(prepared.rows.reduce(kernel)), expected)
    for changed in (frame[:-30], frame.with_columns(patient=pl.lit("somebody else"))):
        changed.write_csv(tmp_path / "t.csv")
        with pytest.raises(InputError, match="the table changed while it was read"):
            prepared.rows.reduce(kernel)


def test_many_different_weights_are_counted_digit_by_digit():
    weights = row_weights(np.arange(0, 3000))
    for some in (weights, weights[:8], weights[:1]):
        found = np.zeros(len(some), dtype=np.int64)
        parts = list(classes(some))
        for weight, chosen in parts:
            found[chosen] += weight
        assert (found == some).all()
        assert len(parts) <= 21


def test_the_weights_of_a_person_sum_to_one_whatever_their_rows():
    for rows in (1, 2, 3, 7, 1000, WEIGHT_STEPS - 1, WEIGHT_STEPS, WEIGHT_STEPS + 1, 10 * WEIGHT_STEPS):
        one = np.array([rows])
        assert rows * int(row_weights(one)[0]) + remainders(one) == WEIGHT_STEPS
        assert 0 <= remainders(one) < rows + (rows > WEIGHT_STEPS)


def test_persons_who_share_half_a_key_stay_apart():
    counts = PersonCounts()
    keys = np.array([[5, 1], [5, 2], [5, 2], [7, 1], [5, 9], [0, 0]], dtype=np.uint64)
    counts.add(keys)
    counts.merge()
    assert counts.persons == 4
    assert (counts.weights(keys) == row_weights(np.array([1, 2, 2, 1, 1, 0]))).all()
    for stranger in ([5, 3], [6, 1], [9, 9], [7, 2]):
        with pytest.raises(InputError, match="changed"):
            counts.weights(np.array([stranger], dtype=np.uint64))


def test_counts_are_merged_now_and_then(monkeypatch):
    monkeypatch.setattr(persons, "MERGE_ROWS", 10)
    ring, counts, generator = new_keyring(), PersonCounts(), np.random.default_rng(0)
    whose = generator.integers(0, 40, (30, 7))
    names = [f"p{k}" for k in range(40)]
    parts = [ring(names, part) for part in whose]
    for part in parts:
        counts.add(part)
    counts.merge()
    expected = row_weights(np.bincount(whose.ravel(), minlength=40))
    assert counts.persons == len(set(whose.ravel().tolist()))
    assert all((counts.weights(part) == expected[rows]).all() for part, rows in zip(parts, whose, strict=True))


def test_one_rule_says_who_nobody_is():
    words = ["A", " A ", "a", None, "", " ", "nan", "NULL", "-99", " -99", "x\0", "'A"]
    names, places = named(pl.Series(words), ("-99",))
    assert [names[k] for k in places] == ["A", "A", "a", *[None] * 8, "'A"]
    names, places = named(pl.Series([1.0, 2.5, None, float("nan"), 1.0]), ("",))
    assert [names[k] for k in places] == ["1", "2.5", None, None, "1"]


def test_rows_of_nobody_change_nothing():
    frame = visits(survey())
    named_rows = frame.filter(pl.Series([(n or "").strip().lower() not in ("", "nan") for n in frame["patient"]]))
    assert synth().fit(frame).centres.points.tobytes() == synth().fit(named_rows).centres.points.tobytes()
    with pytest.raises(InputError, match="identifies the person is empty in every row"):
        synth().fit(frame.with_columns(patient=pl.lit("")))
    with pytest.raises(InputError, match="has a header and no rows"):
        synth().fit(frame[:0])
    with pytest.raises(InputError, match="the table has no column 'somebody'"):
        synth(person="somebody").fit(frame)
    # How many rows there are is not public, so no public number says that they fit.
    with pytest.raises(InternalError, match="only added up"):
        synth().prepare(frame).rows.whole(len)


def test_the_column_of_persons_leaves_the_schema():
    named_too = Schema((*SCHEMA.fields, Field("patient", "string", enum=("p1", "p2"), confirmed=False)))
    fitted = synth(named_too).fit(visits(survey()))
    assert fitted.schema.names == SCHEMA.names
    assert not fitted.schema.drafted
    assert fitted.sample(5).columns == list(SCHEMA.names)
    two = (Field("a", "boolean", required=True), Field("b", "boolean", required=True))
    with pytest.raises(ParameterError, match="a rule uses 'a'"):
        synth(Schema(two, rules=(AtMost(("a", "b"), 1),)), person="a")
    with pytest.raises(ParameterError, match="no column besides 'a'"):
        synth(Schema(two[:1]), person="a")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"schema": None}, "it needs schema"),
        ({"rows_per_person": 2}, "not both"),
        ({"rows_per_person": "all"}, "rows_per_person must be a whole number"),
        ({"person": ""}, "person must name the column"),
        ({"person": 3}, "person must name the column"),
    ],
)
def test_wrong_combinations_are_refused(options, words):
    with pytest.raises(ParameterError, match=words):
        covey.PrivateSynthesizer(1.0, **({"schema": SCHEMA, "person": "patient"} | options))


def test_the_driver_of_spark_sees_the_persons_and_sums_alone(spark, collected):  # noqa: F811
    """No name, no count of rows: the number of persons, what rounding leaves, and binary sums."""
    frame = visits(survey())
    fitted = synth().fit(spark.createDataFrame(frame.to_arrow()).repartition(3))
    assert {name for name, _, _ in collected} == {"collect"}
    counts = [rows for _, columns, rows in collected if columns == ["persons", "remainder"]]
    assert [rows[0].persons for rows in counts] == [fitted.n]
    assert all(columns == ["sums"] and len(rows) == 1 for _, columns, rows in collected if len(columns) == 1)
    assert {len(columns) for _, columns, _ in collected} == {1, 2}


def test_weights_in_spark_are_rounded_down_as_elsewhere(spark):
    """A person's rows never weigh more than one person; what rounding leaves is counted."""
    rows = (1, 2, 3, 7, 9, 11)
    frame = spark.createDataFrame([("x", f"p{count}") for count in rows for _ in range(count)], ["value", "person"])
    weighed, n, left = spark_rows._by_person(frame, ())
    weights = Counter(row.weight for row in weighed.collect())
    assert n == len(rows)
    assert weights == {WEIGHT_STEPS // count: count for count in rows}
    assert left == sum(WEIGHT_STEPS % count for count in rows) == remainders(np.array(rows))


def test_persons_and_events_in_spark_are_linked_as_those_of_files(spark):
    """Rows of a person lie in several partitions; a frame of the order they happen to have would cut other events."""
    tables = {
        name: spark.createDataFrame(pl.DataFrame({**columns, "more": columns[key]}).to_arrow()).repartition(3)
        for (name, columns), key in zip(clinic(40).items(), ("id", "who"), strict=True)
    }
    found, same = Reader(PACKAGE).open(tables)[0], Reader(PACKAGE).open(clinic(40))[0]

    def told(linked):
        own = [tuple(map(tuple, linked.events[linked.owner == k])) for k in range(linked.n)]
        return sorted(
            (tuple(person), tuple(sorted(events))) for person, events in zip(linked.persons, own, strict=True)
        )

    assert told(found) == told(same)


def test_frames_of_spark_come_back_in_types_of_the_schema(spark):
    """Spark's readers find integers of 32 bits, or of 64 where one cell is larger, and moments or text."""
    tables = clinic(40)

    def forms(kind):
        days = np.array(tables["visits"]["day"]).astype(kind)
        columns = {"patients": tables["patients"], "visits": {**tables["visits"], "day": days}}
        frames = {name: spark.createDataFrame(pl.DataFrame(part).to_arrow()) for name, part in columns.items()}
        return [table.form for table in Reader(PACKAGE).prepare(frames).tables]

    assert forms(np.int32) == forms(np.int16) == forms(np.int64) == forms(str)

"""Frames come back as they went in, as far as their form is their owner's choice and no record's."""

import ast
import copy
import datetime as dt
import io
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pytest
from scipy.sparse import csr_array

from covey import AnonymousSynthesizer, PrivateSynthesizer
from covey.engine.bodies import ProductOfSimplices
from covey.errors import InputError
from covey.tables.fields import Constant, Field
from covey.tables.sources.frames import FrameForm, Type, remember
from tests.clinic import PACKAGE, as_csv, clinic
from tests.entries import schema_of

pytestmark = pytest.mark.usefixtures("few_steps")
SCHEMA = schema_of(
    Field("when", "datetime", dt.datetime(2020, 1, 1), dt.datetime(2029, 12, 31)),
    Field("ward", "string", enum=("a", "b", "c")),
    Field("count", "integer", 0, 200),
    Field("whole", "integer", 0, 9, required=True),
    Field("share", "number", 0.1, 0.9, decimals=1),
    Field("flag", "boolean", required=True),
    Field("unit", "string", constant=Constant("mg")),
)
N = 60


def columns():
    return {
        "share": [0.1 + 0.1 * (i % 9) for i in range(N)],
        "ward": ["ab"[i % 2] for i in range(N)],
        "when": [dt.datetime(2024, 1, 1, i % 24) for i in range(N)],
        "count": [i % 200 for i in range(N)],
        "whole": [i % 10 for i in range(N)],
        "flag": [i % 3 == 0 for i in range(N)],
    }


def sampled(frame, schema=SCHEMA):
    return AnonymousSynthesizer(3, schema=schema, seed=1).fit(frame).sample(40)


def test_pandas_types_come_back():
    chosen = {"share": "float32", "ward": "category", "count": "Int16", "whole": "UInt8", "flag": "Int8"}
    chosen["when"] = "datetime64[ns, Europe/Berlin]"
    frame = pd.DataFrame(columns())
    frame["when"] = pd.to_datetime(frame["when"]).dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin")
    frame = frame.astype({name: kind for name, kind in chosen.items() if name != "when"})
    out = sampled(frame)
    assert list(out.columns) == [*frame.columns, "unit"]  # the frame's order, then what it lacks
    usual = pd.to_datetime(["2000-01-01"]).unit
    kinds = {name: str(kind) for name, kind in out.dtypes.items()}
    assert {**kinds, "unit": ""} == {**chosen, "when": f"datetime64[{usual}, Europe/Berlin]", "unit": ""}
    assert list(out["ward"].cat.categories) == ["a", "b", "c"]  # the schema's: those of the frame are two
    assert isinstance(out.index, pd.RangeIndex)
    assert SCHEMA.validate(out.assign(share=out["share"].astype(float).round(1))) == []
    hours = out["when"].dropna().dt.tz_convert("UTC").dt.hour
    assert hours.between(0, 23).all()
    assert (out["unit"] == "mg").all()


def test_polars_and_arrow_types_come_back():
    types = {"share": pl.Float32, "ward": pl.Enum(["b", "a"]), "when": pl.Datetime("us", "Europe/Berlin")}
    types |= {"count": pl.UInt8, "whole": pl.Int8, "flag": pl.UInt8}
    frame = pl.DataFrame(columns()).with_columns(
        pl.col("when").dt.replace_time_zone("UTC").dt.convert_time_zone("Europe/Berlin"), pl.col("flag").cast(pl.UInt8)
    )
    frame = frame.cast({name: kind for name, kind in types.items() if name != "when"}).cast({"when": types["when"]})
    out = sampled(frame)
    assert dict(out.schema) == {**types, "ward": pl.Enum(["a", "b", "c"]), "unit": pl.String}
    plain = out.with_columns(pl.col("share").cast(pl.Float64).round(1), pl.col("flag").cast(pl.Boolean))
    assert SCHEMA.validate(plain) == []
    arrow = pa.table(
        {
            "ward": pa.array(columns()["ward"]).dictionary_encode(),
            "count": pa.array(columns()["count"], pa.int16()),
            "whole": pa.array(columns()["whole"], pa.int64()),
            "share": pa.array(columns()["share"], pa.float32()),
            "when": pa.array(columns()["when"], pa.timestamp("us", "Europe/Berlin")),
            "flag": columns()["flag"],
        }
    )
    out = sampled(arrow)
    assert out.column_names == [*arrow.column_names, "unit"]
    for name in ("count", "whole", "share", "when", "flag"):
        assert out.schema.field(name).type == arrow.schema.field(name).type, name
    assert pa.types.is_dictionary(out.schema.field("ward").type)
    assert out.column("ward").chunk(0).dictionary.to_pylist() == ["a", "b", "c"]


def test_arrow_types_of_pandas_come_back():
    chosen = {"count": "int8[pyarrow]", "whole": "uint16[pyarrow]", "share": "Float32"}
    out = sampled(pd.DataFrame(columns()).astype(chosen))
    assert [str(out.dtypes[name]) for name in ("whole", "share")] == ["uint16[pyarrow]", "Float32"]
    assert str(out.dtypes["count"]) == "Int64"  # the schema allows 200, which the type does not hold


def test_no_record_decides_a_type():
    """Neighbours: one record turns integers into floats or objects, and an ordinary list of labels into another."""

    def types(change):
        frame = pd.DataFrame(columns())
        frame["when"] = pd.to_datetime(frame["when"])
        frame["ward"] = frame["ward"].astype("category")
        for name, value in change.items():
            frame[name] = [value, *list(frame[name])[1:]]
        return sampled(frame, SCHEMA)

    alone = types({})
    assert str(alone.dtypes["count"]) == "Int64"
    assert str(alone.dtypes["whole"]) == "int64"
    for change in ({"count": None}, {"count": "x"}, {"whole": None}, {"flag": "?"}, {"share": "?"}, {"when": "x"}):
        assert types(change).dtypes.astype(str).to_dict() == alone.dtypes.astype(str).to_dict(), change
    frame, other = pd.DataFrame(columns()), pd.DataFrame(columns())
    frame["ward"] = frame["ward"].astype("category")
    other["ward"] = pd.Categorical(["zzz", *other["ward"][1:]])
    for out in (sampled(frame), sampled(other)):
        assert list(out["ward"].cat.categories) == ["a", "b", "c"]
    # An index of names stays behind, and so does what pandas made of its type.
    frame.index = [f"patient {i}" for i in range(N)]
    assert list(sampled(frame).index) == list(range(40))


def test_what_is_remembered_holds_no_value():
    kinds = [
        remember("pandas", pd.CategoricalDtype(["Mrs Miller"], ordered=True)),
        remember("polars", pl.Enum(["Mrs Miller"])),
        remember("pyarrow", pa.array(["Mrs Miller"]).dictionary_encode().type),
    ]
    assert all(kind.labels and "Miller" not in repr(kind) for kind in kinds)


# Types that one cell makes or unmakes: of numbers, of flags, of text, of moments, in every way that libraries read them.
TAKEN_FROM_CELLS = {
    "pandas": [
        *("object", "bool", "boolean", "str", "string", "string[pyarrow]", "bool[pyarrow]", "double[pyarrow]"),
        *("int64", "uint64", "float64", "Int64", "UInt64", "Float64", "int64[pyarrow]", "uint64[pyarrow]"),
        *("int32", "Int32", "int32[pyarrow]", "int8", "uint8", "int16", "uint16", "uint32"),
        *("datetime64[s]", "datetime64[ms]", "datetime64[us]", "datetime64[ns]", "datetime64[s, UTC]"),
        *("timestamp[s][pyarrow]", "timestamp[ns, tz=UTC][pyarrow]", "datetime64[ns, UTC+02:00]"),
    ],
    "polars": [
        *(
            pl.Int64(),
            pl.UInt64(),
            pl.Int128(),
            pl.Float64(),
            pl.Int32(),
            pl.Boolean(),
            pl.String(),
            pl.Null(),
            pl.Date(),
        ),
        *(pl.Datetime("ms"), pl.Datetime("us", "UTC"), pl.Datetime("ns", "+02:00"), pl.Decimal(10, 2), pl.Object()),
    ],
    "pyarrow": [
        *(pa.int64(), pa.uint64(), pa.float64(), pa.int32(), pa.bool_(), pa.string(), pa.large_string(), pa.null()),
        *(pa.timestamp("s"), pa.timestamp("ns"), pa.timestamp("s", "UTC"), pa.date32(), pa.decimal128(5, 1)),
    ],
}


@pytest.mark.parametrize(("origin", "dtype"), [(o, kind) for o, kinds in TAKEN_FROM_CELLS.items() for kind in kinds])
def test_no_type_that_a_reader_takes_from_cells_is_remembered(origin, dtype):
    kind = pd.Series([], dtype=dtype).dtype if origin == "pandas" else dtype
    assert remember(origin, kind) is None


def test_a_type_is_kept_only_where_the_schema_fits_it():
    assert Type(pl.Int8).fits(Field("a", "integer", 0, 127))
    assert not Type(pl.Int8).fits(Field("a", "integer", 0, 128))
    assert not Type(pl.UInt64).fits(Field("a", "integer", -1, 5))
    assert not Type(pl.Int16).fits(Field("a", "integer", 0, 5, special=("NA",)))
    assert not Type(pl.Float32).fits(Field("a", "integer", 0, 2**24 + 2))
    assert not Type(pl.Datetime("us", "UTC")).fits(Field("a", "date", dt.date(2020, 1, 1), dt.date(2021, 1, 1)))
    # 0.1 and 0.9 lie between floats of four bytes: the nearest ones are beyond the limits.
    out = FrameForm("polars", {"share": Type(pl.Float32)}).restore({"share": [0.1, 0.9]}, SCHEMA.fields)
    assert out["share"].dtype == pl.Float32
    assert out["share"].min() >= 0.1
    assert out["share"].max() <= 0.9


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_a_frame_of_zeros_and_ones_comes_back_as_a_frame(kind):
    rng = np.random.default_rng(0)
    bits = {"b": rng.integers(0, 2, 300).astype(np.int8), "a": rng.integers(0, 2, 300).astype(np.float32)}
    frame = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[kind](bits)
    for synth in (PrivateSynthesizer(5.0, 1e-4, seed=1), AnonymousSynthesizer(5, seed=1)):
        out = synth.fit(frame).sample(7)
        assert type(out) is type(frame)
        if kind == "pyarrow":
            assert out.schema == frame.schema
        else:
            assert list(out.columns) == ["b", "a"]
            assert list(out.dtypes) == list(frame.dtypes)
    codes = PrivateSynthesizer(5.0, domain=[2, 2], seed=1).fit(frame).sample(5)
    assert type(codes) is type(frame)


# A table and its neighbours, each of which differs in one cell, as every reader sees them.
READ = schema_of(
    Field("age", "integer", 0, 99),
    Field("code", "string", enum=("1", "2", "3"), other="other"),
    Field("day", "datetime", dt.datetime(2020, 1, 1), dt.datetime(2020, 12, 31)),
    Field("flag", "boolean"),
)
USUAL_ROW = {"age": "41", "code": "2", "day": "2020-01-05T00:00:01", "flag": "true"}
ODD_CELLS = [
    *[("age", cell) for cell in ("41.5", str(2**63), str(2**31), "", "x")],
    *[("code", cell) for cell in ("A", "", "2.5")],
    *[
        ("day", cell)
        for cell in ("2020-01-05T00:00:01.5", "2020-01-05T00:00:01Z", "2020-01-05T00:00:01+02:00", "", "x")
    ],
    *[("flag", cell) for cell in ("x", "", "1")],
]
READERS = {
    "pandas": lambda text: pd.read_csv(io.StringIO(text)),
    "pandas, dates": lambda text: pd.read_csv(io.StringIO(text), parse_dates=["day"]),
    "pandas, nullable": lambda text: pd.read_csv(io.StringIO(text), dtype_backend="numpy_nullable"),
    "pandas, arrow": lambda text: pd.read_csv(io.StringIO(text), dtype_backend="pyarrow"),
    "pandas, by arrow": lambda text: pd.read_csv(io.StringIO(text), dtype_backend="pyarrow", engine="pyarrow"),
    "pandas, converted": lambda text: pd.read_csv(io.StringIO(text)).convert_dtypes(),
    "pandas, moments": lambda text: (read := pd.read_csv(io.StringIO(text))).assign(
        day=pd.to_datetime(read.day, format="ISO8601", errors="coerce", utc=True)
    ),
    "pandas, json": lambda text: pd.read_json(io.StringIO(pd.read_csv(io.StringIO(text)).to_json(orient="records"))),
    "pandas, small": lambda text: small(text).to_pandas(),
    "polars": lambda text: pl.read_csv(io.StringIO(text), infer_schema_length=None, try_parse_dates=True),
    "polars, objects": lambda text: pl.DataFrame(objects(text), strict=False),
    "polars, small": lambda text: pl.DataFrame(small(text)),
    "pyarrow": lambda text: arrow_csv.read_csv(io.BytesIO(text.encode())),
    "pyarrow, small": lambda text: small(text),
    "mapping": lambda text: objects(text),
    "mapping of arrays": lambda text: {name: np.array(cells) for name, cells in objects(text).items()},
}


def objects(text):
    """Columns of Python's own objects: whole numbers, floats, None, text."""
    read = pd.read_csv(io.StringIO(text)).astype(object)
    return {str(name): [None if cell != cell else cell for cell in read[name]] for name in read}


def small(text):
    """Ages as integers of 16 bits, whose holes are no values of that type."""
    ages = pd.to_numeric(pd.read_csv(io.StringIO(text)).age, errors="coerce").where(lambda age: age < 100)
    rest = arrow_csv.read_csv(io.BytesIO(text.encode()))
    return rest.set_column(0, "age", pa.array(ages.round().astype("Int16"), pa.int16()))


def table_text(row):
    lines = [",".join(row.values())]
    lines += [
        f"{i % 99},{1 + i % 3},2020-01-{1 + i % 28:02}T00:00:{i % 59:02},{str(i % 2 == 0).lower()}" for i in range(N)
    ]
    return "\n".join([",".join(row), *lines]) + "\n"


def types_of(frame):
    if isinstance(frame, pa.Table):
        return [str(kind) for kind in frame.schema.types]
    return [str(kind) for kind in (frame.dtypes if hasattr(frame, "dtypes") else [frame.dtype])]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.filterwarnings("ignore")  # readers complain of mixed columns
def test_no_cell_decides_a_type_whatever_reads_the_table(reader):
    def types(row):
        return types_of(sampled(READERS[reader](table_text(row)), READ))

    usual = types(USUAL_ROW)
    for column, cell in ODD_CELLS:
        assert types({**USUAL_ROW, column: cell}) == usual, (column, cell)


@pytest.mark.filterwarnings("ignore")
def test_no_cell_decides_a_type_of_a_private_sample():
    def types(row):
        read = pd.read_csv(io.StringIO(table_text(row)), dtype_backend="pyarrow", engine="pyarrow")
        return types_of(PrivateSynthesizer(1.0, schema=READ).fit(read).sample(5))

    assert all(types({**USUAL_ROW, column: cell}) == types(USUAL_ROW) for column, cell in ODD_CELLS[::4])


@pytest.mark.filterwarnings("ignore")
def test_no_cell_decides_a_type_of_persons_and_events():
    def frames(backend, **odd):
        texts = {
            name: as_csv({word: [odd.get(word, cells[0]), *cells[1:]] for word, cells in columns.items()})
            for name, columns in clinic(60).items()
        }
        return {name: pd.read_csv(io.BytesIO(text), dtype_backend=backend) for name, text in texts.items()}

    synth = PrivateSynthesizer(1.0, schema=PACKAGE).fit(frames("pyarrow"))
    drawn = [synth.draw(5).part(0)]

    def types(backend, **odd):
        restored = synth.prepare(frames(backend, **odd)).restore(drawn)
        return {name: types_of(frame) for name, frame in restored.items()}

    for column, cell in (("age", "41.5"), ("age", str(2**63)), ("age", "x"), ("day", "7.0"), ("ward", "2")):
        for backend in ("pyarrow", "numpy_nullable"):
            assert types(backend, **{column: cell}) == types(backend), (backend, column, cell)


BIT_READERS = {
    "pandas": lambda text: pd.read_csv(io.StringIO(text)),
    "pandas, nullable": lambda text: pd.read_csv(io.StringIO(text), dtype_backend="numpy_nullable"),
    "pandas, arrow": lambda text: pd.read_csv(io.StringIO(text), dtype_backend="pyarrow"),
    "polars": lambda text: pl.read_csv(io.StringIO(text), infer_schema_length=None),
    "pyarrow": lambda text: arrow_csv.read_csv(io.BytesIO(text.encode())),
    "numpy": lambda text: pd.read_csv(io.StringIO(text)).to_numpy(),
    "numpy, objects": lambda text: np.array([[ast.literal_eval(cell) for cell in row] for row in cells_of(text)]),
    "lists": lambda text: [[ast.literal_eval(cell) for cell in row] for row in cells_of(text)],
    "sparse": lambda text: csr_array(pd.read_csv(io.StringIO(text)).to_numpy()),
}


def matrix_of(drawn):
    if isinstance(drawn, pa.Table):
        drawn = drawn.to_pandas()
    return drawn.toarray() if isinstance(drawn, csr_array) else np.asarray(drawn)


def cells_of(text):
    return [line.split(",") for line in text.splitlines()[1:]]


@pytest.mark.parametrize("reader", BIT_READERS)
@pytest.mark.parametrize(
    "make",
    [
        lambda: PrivateSynthesizer(1.0, seed=1),
        lambda: AnonymousSynthesizer(5, seed=1),
        lambda: PrivateSynthesizer(1.0, domain=[2, 2, 2], seed=1),
        lambda: AnonymousSynthesizer(5, domain=[2, 2, 2], seed=1),
        lambda: PrivateSynthesizer(1.0, body=ProductOfSimplices([2, 1]), seed=1),
        lambda: AnonymousSynthesizer(5, body=ProductOfSimplices([2, 1]), seed=1),
    ],
)
def test_no_cell_decides_the_type_of_zeros_and_ones(reader, make):
    whole = any(make().get_params()[word] for word in ("body", "domain"))
    if reader == "sparse" and (whole or isinstance(make(), AnonymousSynthesizer)):
        return  # not taken
    bits = np.random.default_rng(0).integers(0, 2, (100, 3))
    bits[:, 1] = 1 - bits[:, 0]

    def sample(*lines):
        return make().fit(BIT_READERS[reader]("\n".join(["a,b,c", *lines]) + "\n")).sample(20)

    numbers = [",".join(map(str, row)) for row in bits]
    flags = [",".join(str(bool(cell)) for cell in row) for row in bits]
    usual, odd, alike = sample("1,0,1", *numbers), sample("1.0,0,1", *numbers), sample("True,False,True", *flags)
    for other in (odd, alike):  # the same table: neither the type nor any row may differ, rounded or not
        assert type(other) is type(usual)
        assert types_of(other) == types_of(usual)
        assert np.array_equal(matrix_of(other), matrix_of(usual))


def test_a_fitted_synthesizer_is_pickled_with_the_form_of_its_frame():
    frame = pd.DataFrame(columns()).astype({"ward": "category", "count": "int16[pyarrow]", "share": "float32"})
    synth = AnonymousSynthesizer(3, schema=SCHEMA, seed=1).fit(frame)
    again = pickle.loads(pickle.dumps(synth))
    assert list(again.sample(5).dtypes) == list(synth.sample(5).dtypes)
    bits = PrivateSynthesizer(5.0, seed=1).fit(pd.DataFrame({"a": [0, 1] * 50, "b": [1, 0] * 50}))
    assert list(copy.deepcopy(bits).sample(3).columns) == ["a", "b"]


def test_nullable_flags_come_back_and_certify_takes_a_frame():
    frame = pd.DataFrame({7: pd.array([0, 1] * 50, dtype="Int8"), "x": [True, False] * 50})
    synth = PrivateSynthesizer(5.0, 1e-4, seed=1).fit(frame)
    out = synth.sample(20)
    assert list(out.columns) == [7, "x"]
    assert [str(t) for t in out.dtypes] == ["Int8", "int64"]  # one cell more, and the second were integers
    assert synth.certify(out) == synth.certify(out.to_numpy(dtype=np.uint8))


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"age": [1, 0], "sex": ["f", "m"]}),
        pd.DataFrame({"age": [1.0, None]}),
        pl.DataFrame({"age": [1, None]}),
        pl.DataFrame({"day": [dt.date(2020, 1, 1)]}),
        pa.table({"sex": ["f", "m"]}),
        pd.DataFrame({"sex": pd.Categorical([0, 1])}),
    ],
)
def test_a_mixed_frame_without_a_schema_is_told_how_to_get_one(frame):
    for synth in (PrivateSynthesizer(1.0), AnonymousSynthesizer(2)):
        with pytest.raises(InputError, match=r"schema=….*covey\.Schema\.draft\(frame\)"):
            synth.fit(frame)

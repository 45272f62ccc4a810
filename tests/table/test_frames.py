"""Frames come back as they went in, as far as their form is their owner's choice and no record's."""

import copy
import datetime as dt
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from covey import AnonymousSynthesizer, PrivateSynthesizer
from covey.errors import InputError
from covey.table.fields import Constant, Field
from covey.table.frames import FrameForm, Type, remember
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
    chosen = {"share": "float32", "ward": "category", "count": "Int16", "whole": "uint8", "flag": "boolean"}
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
    types = {"share": pl.Float32, "ward": pl.Enum(["b", "a"]), "when": pl.Datetime("ns", "Europe/Berlin")}
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
            "when": pa.array(columns()["when"], pa.timestamp("s", "Europe/Berlin")),
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
    frame = pd.DataFrame(columns()).astype({"count": "int8[pyarrow]", "ward": "string[pyarrow]", "share": "Float32"})
    out = sampled(frame)
    assert [str(out.dtypes[name]) for name in ("ward", "share")] == [str(frame.dtypes[n]) for n in ("ward", "share")]
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
    for dtype in ("object", "int64", "float64", "bool", pd.Series(["a"]).dtype, pd.to_datetime(["2020-01-01"]).dtype):
        assert remember("pandas", pd.Series([], dtype=dtype).dtype) is None
    for dtype in (pl.Int64(), pl.Float64(), pl.String(), pl.Boolean(), pl.Null()):
        assert remember("polars", dtype) is None
    offset = pd.to_datetime(pd.Series(["2024-03-19T10:15:00+02:00"])).dtype
    assert remember("pandas", offset).kind.time_zone == "UTC"


def test_a_type_is_kept_only_where_the_schema_fits_it():
    assert Type(pl.Int8).fits(Field("a", "integer", 0, 127))
    assert not Type(pl.Int8).fits(Field("a", "integer", 0, 128))
    assert not Type(pl.UInt64).fits(Field("a", "integer", -1, 5))
    assert not Type(pl.Int64).fits(Field("a", "integer", 0, 5, special=("NA",)))
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
    bits = {"b": rng.integers(0, 2, 300).astype(np.int8), "a": rng.integers(0, 2, 300).astype(bool)}
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
    assert [str(t) for t in out.dtypes] == ["Int8", "bool"]
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

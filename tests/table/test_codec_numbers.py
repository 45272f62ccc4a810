"""Codes at full resolution, and fields that follow others."""

import numpy as np
import polars as pl
import pytest

from covey.core.numbers.grid import Category, NumberGrid
from covey.errors import ParameterError
from covey.table.codec import Codec
from covey.table.follows import Follows
from covey.table.schema import Field, LessEqual, Schema

FIELDS = (
    Field("income", "number", -10, 1000, decimals=2, special=("refused", "-99")),
    Field("age", "integer", 0, 120, required=True),
    Field("height", "number", 0, 3, bins=6),
    Field("born", "date", "1900-01-01", "2030-12-31"),
    Field("left", "datetime", "2020-01-01T00:00:00", "2020-12-31T23:59:59"),
    Field("clock", "time", "00:00:00", "23:59:59", required=True),
    Field("ward", "string", enum=("A", "B")),
)
ROWS = {
    "income": ["12.34", "refused", "", "-99", "1e9", "inf", "-inf", "nan"],
    "age": ["3", "120", "121", "-5", "", "x", "7.4", "0"],
    "height": ["1.8", "", "2.99", "3", "0", "1", "nan", "5"],
    "born": ["1999-12-31", "", "0000-01-01", "2031-01-01", "1900-01-01", "x", "2000-02-29", "2030-12-31"],
    "left": ["2020-06-06T12:00:00", "2020-06-06", "", "1066-01-01T00:00:00", "x", "2020-12-31T23:59:59", "", ""],
    "clock": ["12:30:05", "00:00:00", "23:59:59", "24:00:00", "", "7:00", "x", "11:11:11"],
    "ward": ["A", "B", "", "C", "A", "A", "B", "B"],
}


@pytest.fixture(scope="module")
def codec():
    return Codec(Schema(FIELDS))


def test_numbers_without_bins_are_grids_and_the_others_categories(codec):
    kinds = dict(zip(codec.names, codec.kinds, strict=True))
    assert kinds["income"] == NumberGrid(101_001, 3, (3, 1003, 101_003))
    assert kinds["age"] == NumberGrid(121, 0, (0, 120))
    assert kinds["height"] == Category(7, True)
    assert isinstance(kinds["left"], NumberGrid)
    assert kinds["left"].steps == 366 * 86400
    assert kinds["ward"] == Category(3)


def test_values_come_back_as_cells_read_them(codec):
    table = pl.DataFrame(ROWS)
    codes, log = codec.encode(table, "numbers")
    cells, _ = codec.encode(table, "cells")
    assert (codes < [a.size for a in codec.kinds]).all()
    back = codec.decode(codes, np.random.default_rng(0), "numbers")
    again = codec.encode(pl.DataFrame(back), "cells")[0]
    fine = [j for j, name in enumerate(codec.names) if name != "height"]
    assert (again[:, fine] == cells[:, fine]).all()
    assert log.columns["income"].clipped == 3
    assert back["income"][1] == "refused"
    assert back["income"][3] == "-99"


def test_a_record_is_encoded_by_itself(codec):
    whole, _ = codec.encode(pl.DataFrame(ROWS), "numbers")
    for i in range(8):
        one, _ = codec.encode({name: [column[i]] for name, column in ROWS.items()}, "numbers")
        assert one.tolist() == whole[[i]].tolist()


def stay(**of_end):
    return (
        Field("came", "date", "2020-01-01", "2021-12-31"),
        Field("left", "date", "2020-01-01", "2022-12-31", **of_end),
        Field("paid", "date", "2020-01-01", "2023-12-31"),
    )


def random_codes(codec, n=500, seed=0):
    generator = np.random.default_rng(seed)
    return np.column_stack([generator.integers(0, a.size, n) for a in codec.kinds])


@pytest.mark.parametrize("how", ["after", "rule", "chain"])
def test_order_holds_in_every_decoded_row_and_without_a_link_it_does_not(how):
    rules = (LessEqual("came", "left"),) if how == "rule" else ()
    rules += (LessEqual("left", "paid"),) if how == "chain" else ()
    schema = Schema(stay(follows=None if how == "rule" else Follows("came")), rules=rules)
    codec = Codec(schema)
    assert set(codec.links) == {"left", "paid"} if how == "chain" else {"left"}
    frame = pl.DataFrame(codec.decode(random_codes(codec), np.random.default_rng(1), "numbers"))
    both = frame.drop_nulls()
    assert len(both) > 100
    assert (both["came"] <= both["left"]).all()
    if how == "chain":
        assert (both["left"] <= both["paid"]).all()
    free = Codec(Schema(stay()))
    frame = pl.DataFrame(free.decode(random_codes(free), np.random.default_rng(1), "numbers")).drop_nulls()
    assert (frame["came"] > frame["left"]).mean() > 0.2


def test_differences_are_what_is_encoded():
    codec = Codec(Schema(stay(follows=Follows("came", 0, 30))))
    table = {
        "came": ["2020-03-01", "2020-03-01", "2020-03-01", "", "2020-03-01", "2021-12-31"],
        "left": ["2020-03-04", "2020-02-01", "2021-03-01", "2020-05-05", "", "2021-12-31"],
        "paid": [""] * 6,
    }
    codes, _ = codec.encode(table, "numbers")
    at = codec.names.index("left")
    assert codec.kinds[at] == NumberGrid(31, 2, (2,))
    assert codes[:, at].tolist() == [
        5,
        2,
        32,
        1,
        0,
        2,
    ]  # after 3 days, moved to 0, moved to 30, without a base, missing, 0
    back = codec.decode(codes, np.random.default_rng(2), "numbers")
    assert [str(v) for v in back["left"][:3]] == ["2020-03-04", "2020-03-01", "2020-03-31"]
    assert back["left"][4] is None
    assert back["left"][3] is not None


def test_differences_of_numbers_with_finer_ends_and_negative_bounds():
    fields = (
        Field("net", "integer", 0, 1000, required=True),
        Field("gross", "number", 0, 2000, decimals=2, required=True, follows=Follows("net", -5, 900.5, signed=True)),
    )
    codec = Codec(Schema(fields))
    assert codec.links["gross"].times == 100
    codes, _ = codec.encode({"net": ["100", "100", "1000"], "gross": ["99.25", "50", "2000"]}, "numbers")
    back = codec.decode(codes, np.random.default_rng(0), "numbers")
    assert back["gross"].to_list() == [99.25, 95.0, 1900.5]


def test_schemas_keep_what_they_say_of_differences():
    schema = Schema(stay(follows=Follows("came", 0, 30)))
    assert Schema.from_dict(schema.to_dict()) == schema
    assert schema.to_dict()["fields"][1]["covey"] == {"after": "came", "difference": {"minimum": 0, "maximum": 30}}


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ({"after": "nobody"}, "not another field"),
        ({"after": "left"}, "not another field"),
        ({"after": "came", "bins": 5}, "without declared bins"),
        ({"after": "came", "difference_from": "came"}, "has after and difference_from"),
        ({"difference": {"maximum": 3}}, "Say from which field"),
        ({"after": "came", "difference": {"minimum": 9, "maximum": 3}}, "above maximum"),
        ({"after": "came", "difference": {"minimum": -9}}, "Use .difference_from."),
        ({"after": "came", "difference": {"least": 9}}, "least"),
        ({"after": "came", "difference": 9}, "must be an object"),
        ({"after": "paid"}, "raise the later maximum"),
        ({"after": 3}, "named by text"),
        ({"after": "came", "difference": {"maximum": "3"}}, "Give numbers"),
        ({"after": "came", "difference": {"maximum": True}}, "Give numbers"),
    ],
)
def test_differences_that_cannot_hold_are_refused_by_name(own, words):
    document = Schema(stay()).to_dict()
    document["fields"][1]["covey"] = own
    with pytest.raises(ParameterError, match=words):
        Schema.from_dict(document)


def test_circles_are_refused():
    fields = (
        Field("a", "integer", 0, 9, follows=Follows("b")),
        Field("b", "integer", 0, 9, follows=Follows("a")),
    )
    with pytest.raises(ParameterError, match="follows itself"):
        Schema(fields)
    with pytest.raises(ParameterError, match="Both need one type"):
        Schema((Field("a", "integer", 0, 9), Field("b", "date", "2020-01-01", "2020-02-01", follows=Follows("a"))))
    with pytest.raises(ParameterError, match="as many"):
        Schema((Field("a", "number", 0, 9, decimals=3), Field("b", "number", 0, 9, decimals=1, follows=Follows("a"))))
    with pytest.raises(ParameterError, match="must be a number, date or time"):
        Schema(tuple(Field(n, "string", enum=("x", "y"), follows=Follows("b") if n == "a" else None) for n in "ab"))


def test_rules_that_grids_do_not_allow_are_left_to_repair():
    fields = (Field("a", "integer", 0, 9), Field("b", "integer", 0, 5), Field("c", "integer", 0, 9, bins=2))
    schema = Schema(fields, rules=(LessEqual("a", "b"), LessEqual("a", "c")))
    assert schema.links == {}
    codec = Codec(schema)
    frame = pl.DataFrame(codec.decode(random_codes(codec), np.random.default_rng(3), "numbers")).drop_nulls()
    assert (frame["a"] <= frame["b"]).all()


def test_a_field_may_follow_one_that_has_a_single_value():
    """The base is not encoded, so that it stands in no column of codes."""
    fields = (
        Field("opened", "integer", 5, 5, required=True),
        Field("closed", "integer", 0, 50, follows=Follows("opened", maximum=20)),
    )
    fine = Codec(Schema(fields))
    codes, _ = fine.encode({"opened": ["5"] * 4, "closed": ["7", "50", "1", ""]}, "numbers")
    assert fine.decode(codes, np.random.default_rng(0), "numbers")["closed"].to_list() == [7, 25, 5, None]

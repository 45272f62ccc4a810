import numpy as np

from covey.table.codec import Codec
from covey.table.schema import Field, Schema
from tests.table.examples import one, rng


def test_numbers_in_frames_are_clipped_and_holes_are_missing():
    codes, log = one(Field("x", "integer", 0, 9), np.array([1.0, np.nan, np.inf, -np.inf, 1e300]))
    assert codes == [1, 10, 9, 0, 9]
    assert (log.missing, log.clipped, log.unparseable) == (1, 3, 0)


def test_a_required_field_takes_its_default_or_the_first_category():
    assert one(Field("x", "integer", 0, 9, required=True), ["", "x", "4"])[0] == [0, 0, 4]
    assert one(Field("x", "integer", 0, 9, required=True, default=5), ["", "x", "4"])[0] == [5, 5, 4]
    assert one(Field("x", "string", enum=("a", "b"), required=True, default="b"), ["", "a", "?"])[0] == [1, 0, 1]
    assert one(Field("x", "boolean", required=True, default=True), ["", "no"])[0] == [1, 0]


def test_unknown_categories_go_to_other_then_default_then_missing():
    cells = ["a", " b ", "zebra", "", "null", "a\0", None]
    codes, log = one(Field("x", "string", enum=("a", "b"), other="rest"), cells)
    assert codes == [0, 1, 2, 3, 3, 3, 3]
    assert (log.unknown, log.missing) == (1, 4)
    assert one(Field("x", "string", enum=("a", "b"), other="b"), cells)[0] == [0, 1, 1, 2, 2, 2, 2]
    assert one(Field("x", "string", enum=("a", "b"), default="a"), cells)[0] == [0, 1, 0, 2, 2, 2, 2]
    assert one(Field("x", "string", enum=("a", "b")), cells)[0] == [0, 1, 2, 2, 2, 2, 2]


def test_categories_may_be_numbers_in_the_frame():
    field = Field("x", "string", enum=("1", "2"))
    assert one(field, [1, 2, None])[0] == [0, 1, 2]
    assert one(field, np.array([1.0, 2.0, np.nan]))[0] == [0, 1, 2]
    assert one(field, ["1", 2, 2.0, None, (3,)])[0] == [0, 1, 1, 2, 2]


def test_flags_are_read_in_any_case():
    cells = ["true", "FALSE", "Yes", "no", "1", "0", " True ", "maybe", ""]
    codes, log = one(Field("x", "boolean"), cells)
    assert codes == [1, 0, 1, 0, 1, 0, 1, 2, 2]
    assert (log.unparseable, log.missing) == (1, 1)
    assert one(Field("x", "boolean"), [True, False, None])[0] == [1, 0, 2]
    assert one(Field("x", "boolean"), [1, 0, 7])[0] == [1, 0, 2]
    assert one(Field("x", "boolean"), ["t", "F", "y", "N", "x"])[0] == [1, 0, 1, 0, 2]  # PostgreSQL writes t and f


def test_declared_missing_values_hold_for_text_and_numbers():
    assert one(Field("x", "integer", -99, 9, bins=3), ["-99", "1", " -99 "], missing_values=("", "-99"))[0] == [3, 2, 3]
    assert one(Field("x", "integer", -99, 9, bins=3), [-99, 1], missing_values=("", "-99"))[0] == [3, 2]
    assert one(Field("x", "string", enum=("a",), other="o"), ["a", "?"], missing_values=("?",))[0] == [0, 2]


def test_values_are_uniform_inside_their_bin_at_the_declared_precision():
    codec = Codec(Schema((Field("x", "number", 0, 1, bins=2, decimals=1, required=True),)))
    values = codec.decode(np.zeros((20_000, 1), dtype=int), rng())["x"].to_numpy()
    found, counts = np.unique(values, return_counts=True)
    assert found.tolist() == [0.0, 0.1, 0.2, 0.3, 0.4]
    assert np.all(np.abs(counts - 4000) < 5 * np.sqrt(4000))

from covey.table.codec import Codec
from covey.table.schema import Schema
from tests.table.examples import PEOPLE, RULED, repaired, rng, some_codes


def test_validation_sees_each_broken_rule_and_rows_that_obey_are_left_alone():
    schema = Schema.from_dict(RULED)
    codec = Codec(schema)
    free = Codec(Schema.from_dict({**RULED, "covey": {}}))
    raw = free.decode(some_codes(free, 2000, 1), rng())
    assert len(schema.validate(raw)) == 7
    good = repaired(codec, raw, rng())
    again = repaired(codec, good, rng(9))
    assert all(good[name].equals(again[name]) for name in good)


def test_validation_names_what_is_wrong():
    schema = Schema.from_dict(PEOPLE)
    codec = Codec(schema)
    good = codec.decode(some_codes(codec, 50, 0), rng())
    assert schema.validate(good) == []
    short = {name: series for name, series in good.items() if name != "age"}
    assert schema.validate(short) == ["column 'age' is missing"]
    for name, value, word in [
        ("age", 300, "clipped"),
        ("age", "old", "unparseable"),
        ("sex", None, "missing"),
        ("job", "king", "unknown"),
        ("dose", 0.123, "decimals"),
        ("site", "south", "constant"),
    ]:
        wrong = {**good, name: [value] * 50}
        assert any(name in line and word in line for line in schema.validate(wrong)), (name, word)

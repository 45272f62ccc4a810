"""Every decoded row keeps what its schema promises: rules, expectations, distances, computed columns and words, all at once."""

import random
from collections import Counter

import numpy as np
import pytest

from covey.errors import ParameterError
from covey.tables.codec import Codec
from covey.tables.schema import Schema
from covey.tables.sources import writing_csv
from tests.entries import entry

LIMITS = {
    "integer": [(0, 0), (0, 12), (-5, 95), (1, 4)],
    "number": [(0, 1), (-2.5, 18), (0, 100)],
    "date": [("2020-01-01", "2020-01-05"), ("2020-01-01", "2021-03-01")],
    "datetime": [("2020-01-01T00:00:00", "2020-01-01T00:05:00")],
    "time": [("08:00:00", "17:30:00")],
}
NUMBERS = ("integer", "number")
LABELS = ("A", "B", "1", "-5", "other", "\\N", "2 x", "=q")
MISSING = ([""], ["", "NA"], ["", "3"], ["", "2020-01-03", "5"])


def drawn_field(draw, name, others):
    """A field of any type, which may follow from those before it."""
    kind = draw.choice([*LIMITS, *NUMBERS, "string", "boolean"])
    if kind == "boolean":
        return entry(name, kind, required=draw.choice([None, True]))
    if kind == "string":
        own = entry(name, kind, enum=draw.sample(LABELS, draw.choice([1, 2, 4])), required=draw.choice([None, True]))
    else:
        own = entry(name, kind, *draw.choice(LIMITS[kind]), required=draw.choice([None, True]))
    said = own.setdefault("covey", {})
    if kind == "number" and draw.random() < 0.8:
        said["decimals"] = draw.choice([0, 1, 2])
    if kind in LIMITS and draw.random() < 0.3:
        said["special"] = draw.choice([["\\N"], ["none", "-99"], ["7"]])
    if kind in LIMITS and draw.random() < 0.25:
        said["bins"] = draw.choice([1, 2, 3])
    return following(draw, own, [other for other in others if "derived" not in other.get("covey", {})])


def following(draw, own, others):
    """The field as it is, or with a distance from another one, or computed or expected from others."""
    kind, said, turn = own["type"], own["covey"], draw.random()
    alike = [other["name"] for other in others if other["type"] == kind and kind in LIMITS]
    numbers = [other["name"] for other in others if other["type"] in NUMBERS]
    if alike and turn < 0.3:
        apart = {"field": draw.choice(alike), "minimum": -2, "maximum": 3}
        said |= draw.choice([{"after": draw.choice(alike)}, {"difference_from": apart}])
    how, what = draw.choice(["expected", "expected", "derived"]), None
    if kind in NUMBERS and numbers:
        a, b = draw.choice(numbers), draw.choice(numbers)
        what = {"expression": draw.choice([a, f"{a} + {b}", f"{a} - 3", f"{a} / {b}", f"{a} * 1.5"])}
    elif kind in ("date", "datetime") and alike:
        what = {"expression": f"{draw.choice(alike)} + 86400"}
    elif kind == "string" and (labelled := [other for other in others if other["type"] == "string"]):
        base, labels = draw.choice(labelled), own["constraints"]["enum"]
        places = base["constraints"]["enum"]
        what = {"from": [base["name"]], "map": {label: draw.choice(labels) for label in places}}
    if what is None or not 0.3 <= turn < 0.7:
        return own
    if how == "derived":
        return entry(own["name"], kind, derived=what, **{k: v for k, v in said.items() if k == "decimals"})
    return {**own, "covey": {k: v for k, v in said.items() if k != "bins"} | {"expected": what}}


def drawn_condition(draw, field):
    limits, kind = field.get("constraints", {}), field["type"]
    if draw.random() < 0.2:
        return [None]
    if kind == "boolean":
        return [draw.random() < 0.5]
    if kind == "string":
        return draw.sample(limits["enum"], 1)
    if words := field.get("covey", {}).get("special"):
        return words[:1]
    return draw.choice([[limits["minimum"]], {draw.choice(["minimum", "maximum"]): limits["maximum"]}])


def drawn_rule(draw, fields):
    """A rule of any kind; None where there are too few fields for it."""
    free = [field for field in fields if "derived" not in field.get("covey", {})]
    numbers = [field["name"] for field in free if field["type"] in NUMBERS]
    flags = [field["name"] for field in free if field["type"] == "boolean"]
    kind = draw.choice(["forbid", "requires", "requires", "less_equal", "linear", "linear", "body", "one_of"])
    several = {"linear": numbers, "body": numbers, "one_of": flags}.get(kind, free)
    if len(several) < 2:
        return None
    chosen = draw.sample(several, min(len(several), draw.choice([2, 3])))
    if kind == "forbid":
        return {kind: {field["name"]: drawn_condition(draw, field) for field in chosen[:2]}}
    if kind == "requires":
        one, two = ({field["name"]: drawn_condition(draw, field)} for field in chosen[:2])
        return {kind: {"if": one, "then": two}}
    if kind == "less_equal":
        linked = draw.choice([{}, {"linked": False}])
        return {kind: {"left": chosen[0]["name"], "right": chosen[1]["name"], **linked}}
    if kind == "linear":
        return {
            kind: {"coefficients": {n: draw.choice([1, -1, 2, 0.5]) for n in chosen}, "maximum": draw.choice([5, 30.5])}
        }
    if kind == "body":
        return {kind: {"fields": chosen, **draw.choice([{"increasing": True}, {"sum": {"maximum": 20}}, {"sum": 10}])}}
    return {kind: chosen[:2]}


def drawn_schema(seed):
    draw, fields = random.Random(seed), []
    for k in range(draw.choice([3, 5, 8])):
        fields.append(drawn_field(draw, f"f{k}", fields))
    rules = [drawn_rule(draw, fields) for _ in range(draw.choice([1, 2, 3, 4]))]
    return {
        "fields": fields,
        "covey": {"rules": [rule for rule in rules if rule]},
        "missingValues": draw.choice(MISSING),
    }


def some_codes(codec, generator, rows=100):
    """Codes of every kind: the last, which is missing or as expected, the first few, and any."""
    columns = []
    for size in codec.sizes:
        turn, anywhere = generator.random(rows), generator.integers(0, size, rows)
        columns.append(np.select([turn < 0.3, turn < 0.5], [size - 1, np.minimum(anywhere, 4)], anywhere))
    return np.stack(columns, axis=1)


def broken_promises(schema, folder, seed):
    """What decoded rows break of their schema once both were written to files, as in a bundle."""
    codec, generator = Codec(schema), np.random.default_rng(seed)
    rows = codec.decode(some_codes(codec, generator), generator, codec.coding)
    with writing_csv(folder / "rows.csv") as write:
        write(rows)
    schema.save(folder / "schema.json")
    return Schema.load(folder / "schema.json").validate(folder / "rows.csv")


def test_every_decoded_row_keeps_all_that_its_schema_promises(tmp_path):
    """Of what else a file says, too: a word for missing that is a number between the limits broke one schema of nine."""
    seen = Counter()
    for seed in range(200):
        try:
            schema = Schema.from_dict(drawn_schema(seed))
            codec = Codec(schema)
        except ParameterError:  # it contradicts itself
            continue
        assert broken_promises(schema, tmp_path, seed) == [], seed
        seen.update({"schemas": 1, "expected": bool(codec.expected), "linked": bool(codec.links)})
        seen.update({"computed": bool(schema.derived), "ruled": bool(schema.rules)})
    assert min(seen.values()) > 20, seen


THREE_SUMS = {
    "fields": [
        *(entry(name, "integer", 0, 20, required=True) for name in "ab"),
        entry("c", "integer", 0, 40, required=True, expected={"expression": "a + b"}),
        entry("d", "integer", 0, 20, required=True),
    ],
    "covey": {
        "rules": [
            {"linear": {"coefficients": {"a": 1, "d": 1}, "maximum": 15}},
            {"linear": {"coefficients": {"b": -1, "d": 1}, "maximum": 0}},
            {"linear": {"coefficients": {"c": 1}, "maximum": 12}},
        ]
    },
}


def test_a_field_that_follows_a_base_which_a_rule_has_moved_keeps_its_own_rules(tmp_path):
    """Rules were kept, and then what follows from moved cells was computed anew; nobody looked at the rules again."""
    schema = Schema.from_dict(THREE_SUMS)
    assert broken_promises(schema, tmp_path, 0) == []
    # Where rules leave room, the field is still what it is expected to be.
    codec = Codec(schema)
    usual = np.array([[a, b, codec.kinds[2].size // 2, 0] for a in range(7) for b in range(6)])
    rows = codec.decode(usual, np.random.default_rng(0), "numbers")
    assert (rows["c"] == rows["a"] + rows["b"]).all()


def test_a_row_that_is_mended_twice_counts_once():
    codec = Codec(Schema.from_dict(THREE_SUMS))
    codes = some_codes(codec, np.random.default_rng(1), 500)
    codec.decode(codes, np.random.default_rng(1), "numbers")
    assert 0 < codec.book.mended <= 500


@pytest.mark.parametrize("words", [{"missing_values": ("", "3")}, {"special": ("3",)}])
def test_a_number_that_means_something_else_is_not_drawn(words):
    field = entry("x", "integer", 0, 6, required=True, **{k: list(v) for k, v in words.items() if k == "special"})
    data = {"fields": [field, entry("y", "boolean")], "missingValues": list(words.get("missing_values", [""]))}
    schema = Schema.from_dict(data)
    codec = Codec(schema)
    codes = some_codes(codec, np.random.default_rng(0), 300)
    rows = codec.decode(codes, np.random.default_rng(0), "numbers")
    assert schema.validate(rows) == []
    assert set(rows["x"].cast(str).unique()) >= {"0", "1", "2", "4", "5", "6"}


def test_a_required_field_without_a_number_that_means_itself_is_refused():
    data = {"fields": [entry("x", "integer", 3, 3, required=True), entry("y", "boolean")], "missingValues": ["3"]}
    with pytest.raises(ParameterError, match="all its numbers mean missing or special"):
        Codec(Schema.from_dict(data))

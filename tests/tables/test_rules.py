"""Rules are read, refused and kept; numbers in a body too."""

from decimal import Decimal
from itertools import combinations, product

import numpy as np
import polars as pl
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import covey
from covey.errors import ParameterError
from covey.tables import models
from covey.tables.codec import Codec
from covey.tables.repair import RuleBook
from covey.tables.schema import BodyRule, Field, Schema, Sum
from covey.tables.zeros import structural_zeros
from tests.entries import entry, frame_of
from tests.tables.examples import RULED, repaired, rng, some_codes

SHARES = {"body": {"fields": ["a", "b", "c"], "sum": 1}}


@given(st.integers(0, 2**32), st.sets(st.integers(0, 6)))
@settings(max_examples=20)
def test_rules_hold_in_every_output(seed, kept):
    data = {**RULED, "covey": {"rules": [RULED["covey"]["rules"][j] for j in sorted(kept)]}}
    schema = Schema.from_dict(data)
    codec = Codec(schema)
    codes = some_codes(codec, 200, seed)
    columns = codec.decode(codes, rng(seed))
    assert schema.validate(columns) == []
    raw = Codec(Schema.from_dict({**RULED, "covey": {}})).decode(codes, rng(seed))
    assert schema.validate(repaired(codec, raw, rng(seed))) == []


def test_pairs_are_ordered_inside_their_bins_where_these_have_room():
    fields = [Field(n, "integer", 0, 99, bins=10, required=True).to_dict() for n in "ab"]
    codec = Codec(schema(fields, {"less_equal": {"left": "a", "right": "b"}}))
    codes = np.sort(some_codes(codec, 2000, 3), axis=1)
    assert np.array_equal(codec.encode(codec.decode(codes, rng()))[0], codes)


def test_a_forbidden_value_between_two_steps_forbids_nothing():
    data = {"fields": [{"name": "x", "type": "number", "covey": {"bins": [0, 1], "decimals": 1}}]}
    data["covey"] = {"rules": [{"forbid": {"x": [0.25, 0.3]}}]}
    schema = Schema.from_dict(data)
    assert schema.validate({"x": [0.2]}) == []
    assert len(schema.validate({"x": [0.3]})) == 1


def test_codes_outside_the_domain_are_refused():
    codec = Codec(Schema((Field("x", "boolean"),)))
    for codes in ([[3]], [[-1]], [[0, 0]], [[0.5]]):
        with pytest.raises(ParameterError):
            codec.decode(np.array(codes), rng())


def test_sums_of_large_whole_numbers_are_kept_to_the_last_one():
    """A slack of 10^-9 let sums of a billion be two too large."""
    field = Field("a", "integer", 10**9, 10**9 + 9, bins=2).to_dict()
    rule = {"linear": {"coefficients": {"a": 1}, "maximum": 10**9}}
    drawn = Codec(schema([field], rule)).decode(np.zeros((50, 1), dtype=np.int64), rng())
    assert drawn["a"].drop_nulls().unique().to_list() == [10**9]


def number(name, high=1.0, decimals=2, required=True, **own):
    constraints = {"minimum": 0, "maximum": high, "required": required}
    return {"name": name, "type": "number", "constraints": constraints, "covey": {"decimals": decimals, **own}}


def schema(fields, *rules):
    return Schema.from_dict({"fields": fields, "covey": {"rules": list(rules)}})


def exact_sum(columns, names):
    return {sum(Decimal(repr(columns[name][i])) for name in names) for i in range(len(columns[names[0]]))}


def test_a_release_keeps_shares_exactly_and_the_other_columns(few_steps):
    generator = np.random.default_rng(3)
    cut = np.sort(generator.integers(0, 101, (400, 2)), axis=1)
    parts = np.diff(cut, prepend=0, append=100, axis=1) / 100
    poor = parts[:, 0] > 0.5
    frame = pl.DataFrame({"a": parts[:, 0], "b": parts[:, 1], "c": parts[:, 2], "poor": poor, "age": cut[:, 0]})
    fields = [number("a"), number("b"), number("c"), {"name": "poor", "type": "boolean"}]
    fields.append({"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 100}})
    table = schema(fields, SHARES)
    assert table.validate(frame) == []
    rows = covey.PrivateSynthesizer(8.0, schema=table, seed=2).fit(frame).sample(300)
    assert exact_sum(rows, ["a", "b", "c"]) == {1}
    assert table.validate(rows) == []
    assert rows["a"].filter(rows["poor"]).mean() > rows["a"].filter(~rows["poor"]).mean() + 0.1
    free = covey.PrivateSynthesizer(8.0, schema=schema(fields), seed=1).fit(frame).sample(300)
    assert exact_sum(free, ["a", "b", "c"]) != {1}  # without the rule they are not


@pytest.mark.parametrize(
    ("rule", "holds"),
    [
        ({"fields": ["a", "b", "c"], "increasing": True}, lambda a, b, c: (a <= b) & (b <= c)),
        ({"fields": ["a", "b", "c"], "sum": {"maximum": 1.5}}, lambda a, b, c: a + b + c <= 1.5 + 1e-9),
        ({"fields": ["a", "b", "c"], "sum": {"minimum": 1, "maximum": 2}}, lambda a, b, c: a + b + c >= 1 - 1e-9),
        (
            {
                "fields": ["a", "b", "c"],
                "increasing": True,
                "linear": [{"coefficients": {"a": 1, "b": 2, "c": -3}, "minimum": -1.5}],
            },
            lambda a, b, c: (a <= b) & (b <= c) & (a + 2 * b - 3 * c >= -1.5 - 1e-9),
        ),
        (
            {"fields": ["a", "b", "c"], "linear": [{"coefficients": {"a": 1, "b": 1, "c": -1}, "equals": 0}]},
            lambda a, b, c: np.abs(a + b - c) < 1e-9,
        ),
    ],
)
def test_every_kind_of_body_holds_in_every_row_and_survives_its_file(rule, holds):
    table = schema([number("a", decimals=1), number("b"), number("c", decimals=3)], {"body": rule})
    assert Schema.from_dict(table.to_dict()) == table
    codec = Codec(table)
    rows = codec.decode(some_codes(codec, 500, 5), rng())
    assert holds(*(rows[name].to_numpy() for name in "abc")).all()
    assert table.validate(rows) == []
    loose = schema([number("a", decimals=1), number("b"), number("c", decimals=3)])
    raw = Codec(loose).decode(some_codes(codec, 500, 5), rng())
    assert not holds(*(raw[name].to_numpy() for name in "abc")).all()
    assert "rows break the rule" in " ".join(table.validate(raw))


def test_a_body_binds_where_nothing_is_missing():
    table = schema([number("a"), number("b", required=False), number("c")], SHARES)
    rows = {"a": [0.2, 0.9, 0.9], "b": [0.3, None, 0.3], "c": [0.5, 0.9, 0.5]}
    assert [line.split()[0] for line in table.validate(rows)] == ["1"]
    mended = repaired(Codec(table), rows, rng())
    assert [mended[name].to_list()[:2] for name in "abc"] == [[0.2, 0.9], [0.3, None], [0.5, 0.9]]
    assert exact_sum({name: mended[name][2:] for name in "abc"}, ["a", "b", "c"]) == {1}


def test_an_increasing_body_is_measured_by_its_distances():
    table = schema([number("a"), number("b"), number("c")], {"body": {"fields": ["a", "b", "c"], "increasing": True}})
    links = Codec(table).links
    assert {name: link.base for name, link in links.items()} == {"b": "a", "c": "b"}


def test_linear_rules_on_declared_bins_are_repaired_inside_them():
    fields = [number("a", bins=4), number("b", bins=4)]
    rule = {"linear": {"coefficients": {"a": 1, "b": 1}, "maximum": 1}}
    codec = Codec(schema(fields, rule))
    assert codec.book.regions == []
    many = {"linear": {"coefficients": {"a": 1e8, "b": 1e-12}, "maximum": 1}}  # more digits than whole numbers have
    assert Codec(schema([number("a"), number("b")], many)).book.regions == []
    assert len(Codec(schema([number("a"), number("b")], rule)).book.regions) == 1


def test_a_body_reads_as_a_sentence():
    rule = BodyRule(("a", "b"), (Sum((("a", 1.0), ("b", 2.0)), None, 3.0), Sum((("a", 1.0),), 1.0, 1.0)), True)
    assert rule.words == "Together: a ≤ b; a + 2 × b is at most 3; a is 1."


HOUSING = [
    {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 99}},
    {"name": "status", "type": "string", "constraints": {"enum": ["N", "single", "married"], "required": True}},
    {"name": "pay", "type": "integer", "constraints": {"minimum": 0, "maximum": 900}, "covey": {"special": ["none"]}},
    {"name": "rooms", "type": "integer", "constraints": {"minimum": 1, "maximum": 8}, "covey": {"bins": 4}},
    {"name": "beds", "type": "integer", "constraints": {"minimum": 0, "maximum": 8}, "covey": {"bins": [0, 2, 4, 8]}},
    {"name": "own", "type": "boolean"},
    {"name": "rent", "type": "boolean", "constraints": {"required": True}},
]
CHILD = {"requires": {"if": {"age": {"maximum": 14}}, "then": {"status": ["N"], "pay": ["none"]}}}
ADULT = {"requires": {"if": {"age": {"minimum": 15}}, "then": {"status": ["single", "married"]}}}
HOUSING_RULES = [
    CHILD,
    ADULT,
    {"forbid": {"status": ["married"], "age": {"maximum": 17}, "own": True}},
    {"forbid": {"pay": [0, 17], "rent": True}},
    {"forbid": {"age": [None], "status": ["single"]}},
    {"forbid": {"rooms": {"maximum": 3}, "own": [True, None]}},
    {"at_most": {"fields": ["own", "rent"], "limit": 1}},
    {"less_equal": {"left": "beds", "right": "rooms"}},
    {"linear": {"coefficients": {"beds": 2.0, "rooms": -1.0}, "maximum": 5.0}},
]


def with_rules(rules):
    return Schema.from_dict({"fields": HOUSING, "covey": {"rules": rules}})


def random_codes(fine, n, seed):
    generator = np.random.default_rng(seed)
    return np.stack([generator.integers(0, attribute.size, n) for attribute in fine.kinds], axis=1)


@pytest.mark.parametrize("rule", HOUSING_RULES, ids=lambda rule: next(iter(rule)))
def test_rows_in_a_box_break_the_rule_and_other_rows_break_it_inside_bins_alone(rule):
    own = with_rules([rule])
    fine = Codec(own)
    boxes = structural_zeros(fine)
    assert boxes
    codes = random_codes(fine, 20_000, 1)
    inside = np.zeros(len(codes), dtype=bool)
    for box in boxes.boxes:
        inside |= np.logical_and.reduce(
            [np.logical_or.reduce([(codes[:, j] >= a) & (codes[:, j] < b) for a, b in side]) for j, side in box.items()]
        )
    free = Codec(with_rules([]))
    cells, _ = free.encode(pl.DataFrame(free.decode(codes, np.random.default_rng(2), "numbers")), "cells")
    broken = RuleBook(own).broken(own.rules[0], {name: cells[:, j] for j, name in enumerate(free.names)})
    assert broken[inside].all()
    binned = {"rooms", "beds"} & set(own.rules[0].fields)
    assert inside.any()
    assert binned or not broken[~inside].any()


def test_what_codes_do_not_say_is_left_to_repair():
    dates = [entry(name, "date", "2020-01-01", "2020-12-31") for name in "ab"]
    rules = [{"less_equal": {"left": "a", "right": "b"}}, {"forbid": {"b": {"minimum": "2020-06-01"}, "c": True}}]
    own = Schema.from_dict({"fields": [*dates, {"name": "c", "type": "boolean"}], "covey": {"rules": rules}})
    assert not structural_zeros(Codec(own))  # b is coded by its distance from a


def test_rules_that_contradict_each_other_are_refused():
    both = [{"requires": {"if": {"rent": v}, "then": {"own": not v}}} for v in (True, False)]
    never = [{"forbid": {"own": [True, False, None], "rent": [True, False]}}]
    Codec(with_rules(both))
    with pytest.raises(ParameterError, match="contradict"):
        Codec(with_rules(never))


def people(n):
    generator = np.random.default_rng(3)
    age = generator.integers(0, 100, n)
    child = age < 15
    own = generator.random(n) < 0.3
    rooms = np.where(own, generator.integers(4, 9, n), generator.integers(1, 9, n))
    return frame_of(
        age=age,
        status=np.where(child, "N", np.where((age > 25) & (generator.random(n) < 0.7), "married", "single")),
        pay=np.where(child, "none", (20 + 8 * age).astype(str)),
        rooms=rooms,
        beds=np.minimum(rooms, generator.integers(0, 5, n)),
        own=own,
        rent=~own & (generator.random(n) < 0.8),
    )


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_release_keeps_rules_in_the_fit_and_hardly_repairs(delta, monkeypatch, few_steps):
    """The wrong program: a fit that does not know the rules. Its rows break them, and repair has to move them."""
    mended = []
    real = RuleBook._take_turns

    def counting(self, cells, generator):
        mended.append(np.mean(np.logical_or.reduce([self.broken(rule, cells) for rule in self.rules])))
        return real(self, cells, generator)

    table, rules = people(4000), HOUSING_RULES[:4]
    synth = covey.PrivateSynthesizer(2.0, delta, schema=with_rules(rules), seed=4).fit(table)
    monkeypatch.setattr(RuleBook, "_take_turns", counting)
    rows = synth.sample(4000)
    assert mended == [0]
    assert not with_rules(rules).validate(rows)
    monkeypatch.setattr(models, "structural_zeros", lambda fine: covey.engine.codes.zeros.NO_BOXES)
    covey.PrivateSynthesizer(2.0, delta, schema=with_rules(rules), seed=4).fit(table).sample(4000)
    assert mended[1] > 0.02


CONDITIONS = st.lists(st.sampled_from([True, False, None]), min_size=1, max_size=2, unique=True)


@st.composite
def exclusive(draw):
    """A schema with columns that exclude each other, some of which may be missing, and rules that name them."""
    flags = [
        f"eyes_{word}"
        for word in draw(st.sampled_from([("blue", "brown"), ("none", "NA", "grey"), ("=a", "b", "c", "d")]))
    ]
    fields = [entry(name, "boolean", required=draw(st.booleans())) for name in (*flags, "tall")]
    named = draw(st.lists(st.sampled_from([*flags, "tall"]), min_size=2, max_size=4, unique=True))
    conditions = [{name: draw(CONDITIONS)} for name in named]
    cut = draw(st.integers(0, len(named) - 1))
    parts = [{k: v for one in part for k, v in one.items()} for part in (conditions[:cut], conditions[cut:])]
    more = {"requires": {"if": parts[0], "then": parts[1]}} if cut else {"forbid": parts[1]}
    one_of = {"one_of": {"fields": flags, "none": True} if draw(st.booleans()) else flags}
    data = {
        "fields": fields,
        "missingValues": ["", "eyes_NA"],
        "covey": {"rules": [one_of, *([more] if draw(st.booleans()) else [])]},
    }
    return Schema.from_dict(data), flags


@given(exclusive())
@settings(max_examples=60)
def test_columns_that_exclude_each_other_are_one_category_record_by_record(drawn):
    """Against all rows that there are: what a rule says of columns, it says of the category."""
    given_schema, flags = drawn
    assert Schema.from_dict(given_schema.to_dict()) == given_schema
    try:
        codec = Codec(given_schema)
    except ParameterError:
        reject()  # the rules contradict each other
    one, required = given_schema.rules[0], {field.name: field.required for field in given_schema.fields}
    rows = list(product(["true", "false", ""], repeat=len(flags) + 1))
    table = dict(zip([*flags, "tall"], map(list, zip(*rows, strict=True)), strict=True))
    cells, log = codec.encode(table, "cells")
    for k in (0, len(rows) // 2):  # no other row changes how one is coded
        alone = codec.encode({name: [column[k]] for name, column in table.items()}, "cells")[0]
        assert np.array_equal(alone[0], cells[k])
    read, optional = codec.columns(dict(zip(codec.names, cells.T, strict=True))), not all(map(required.get, flags))
    kept = np.ones(len(rows), dtype=bool)
    for k, row in enumerate(rows):
        meant = {
            name: "true" if cell == "true" else "" if not (cell or required[name]) else "false"
            for name, cell in zip(table, row, strict=True)
        }
        own, got = (
            [part[name] for name in flags]
            for part in (meant, {n: "" if c[k] < 0 else "true" if c[k] else "false" for n, c in read.items()})
        )
        kept[k] = own.count("true") == 1 or ("true" not in own and (one.none or "" in own))
        assert got.count("true") == ("true" in own or not (one.none or optional))
        if kept[k] and all((cell == "") <= (cell == meant[name]) for name, cell in zip(flags, got, strict=True)):
            assert got == own or "" in own
    assert log.broken[one] == int((~kept).sum())
    for rule in given_schema.rules[1:]:
        wanted = codec.given.broken(rule, read)
        found = [codec.book.broken(own, codec.book.complete(cells.T)) for own in codec.book.rules]
        assert np.array_equal(np.any(found, axis=0) if found else np.zeros(len(rows), dtype=bool), wanted)
    drawn_rows = codec.decode(some_codes(codec, 200, 1), rng(1))
    assert given_schema.validate(drawn_rows) == []
    again = codec.encode(codec.decode(some_codes(codec, 200, 1), rng(1)))[0]
    assert np.array_equal(codec.encode(codec.decode(again, rng(2)))[0], again) or given_schema.rules[1:]


def test_rules_that_let_columns_exclude_each_other_make_them_one_category():
    fields = [*(entry(f"f{j}", "boolean", required=True) for j in range(5)), entry("x", "boolean")]

    def coded(*rules, fields=fields):
        return Schema.from_dict({"fields": fields, "covey": {"rules": list(rules)}}).grouped().coded.names

    pairs = [{"forbid": {f"f{a}": True, f"f{b}": True}} for a, b in combinations(range(4), 2)]
    assert coded({"at_most": {"fields": ["f0", "f1", "f2"], "limit": 1}}) == ("f", "f3", "f4", "x")
    assert coded(*pairs) == ("f", "f4", "x")
    assert coded(*pairs[:-1]) == ("f", "f3", "f4", "x")  # the first three still do
    plain = tuple(own["name"] for own in fields)
    for rules in (
        [{"at_most": {"fields": ["f0", "f1"], "limit": 1}}],
        [{"at_most": {"fields": ["f0", "f1", "f2"], "limit": 2}}],
        pairs[:2],
    ):
        assert coded(*rules) == plain
    assert coded({"at_most": {"fields": ["f0", "f1", "x"], "limit": 1}}) == plain  # one may be missing by itself
    flags = [entry(f"g{j}", "boolean", required=True) for j in range(5)]
    few = {"at_most": {"fields": ["f0", "f1", "f2"], "limit": 1}}
    assert coded(few, fields=[*fields[:5], *flags]) == (
        *plain[:5],
        *(f"g{j}" for j in range(5)),
    )  # too few of many flags
    assert coded(few, fields=[*fields[:5], *flags[:4]])[0] == "f"


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ([{"one_of": ["a", "b"]}, {"at_most": {"fields": ["b", "c"], "limit": 1}}], "another rule one_of or at_most"),
        ([{"one_of": ["a", "b"]}, {"one_of": ["b", "c"]}], "another rule one_of or at_most"),
        ([{"one_of": ["a", "d"]}], '"expected"'),
        ([{"one_of": ["a"]}], "two fields at least"),
        ([{"one_of": ["a", "s"]}], "type string"),
        ([{"one_of": {"fields": ["a", "b"], "limit": 1}}], "limit"),
        ([{"one_of": ["a", "b"]}, {"forbid": {"a": True}}, {"forbid": {"b": True}}], "contradict"),
    ],
)
def test_more_than_one_category_can_keep_is_refused(rules, words):
    fields = [*(entry(name, "boolean", required=True) for name in "abc"), entry("s", "string", enum=["u", "v"])]
    fields += [entry("d", "boolean", expected={"from": "s", "map": {"u": "true"}}, required=True)]
    with pytest.raises(ParameterError, match=words):
        Codec(Schema.from_dict({"fields": fields, "covey": {"rules": rules}}))

"""Learned domains from end to end: messy tables, every reader, refusals before the charge, and nothing rare that leaves."""

import json
import warnings
from fractions import Fraction
from itertools import pairwise

import numpy as np
import polars as pl
import pytest

import covey
import covey.engine.units.persons as persons_engine
from audits.gates import opened
from covey.engine.budget import make_budget
from covey.engine.codes.events import WEIGHT_STEPS
from covey.engine.codes.learned import Counting, Noise, kept_counts
from covey.engine.noise.law import GAUSSIAN
from covey.engine.relations.search import SHARE_OF_RELATIONS
from covey.errors import CoveyWarning, InputError, ParameterError
from covey.release.bundle import write_bundle
from covey.release.facts import statement, verify_claims
from covey.release.statements import private_facts
from covey.release.verify import verify_bundle
from covey.synthesizers.learning import (
    SHARE,
    Learned,
    _learned_field,
    check_learning,
    expected_codec,
    learned_columns,
    learning_cost,
    too_wide,
)
from covey.tables import reading as reading
from covey.tables.description import Description
from covey.tables.provisional import LearnedColumn
from covey.tables.reading import Reader
from covey.tables.resources import Parent, Resource
from covey.tables.schema import Field, Linear, Schema
from tests.entries import entry

N = 3000


def schema(**types):
    return Schema(tuple(Field(name, type_, learn=True) for name, type_ in types.items()))


MESSY = schema(
    age="integer", cost="number", seen="date", at="datetime", clock="time", id="string", ward="string", text="string",
    one="string", void="string", flag="boolean", odd="integer",
)  # fmt: skip


def messy(n=N, seed=0):
    """A table as people have it: codes among numbers, identifiers, free text, holes, guarded labels, dates from nowhere."""
    g = np.random.default_rng(seed)
    age = g.integers(18, 90, n)
    table = {
        "age": [["N", "?", str(a)][min(u, 2)] for a, u in zip(age, g.integers(0, 12, n), strict=True)],
        "cost": [f"{c:.2f}" for c in g.lognormal(6, 1, n)],
        "seen": [f"{2010 + y}-03-1{y}" for y in g.integers(0, 8, n)],
        "at": [f"20{10 + y}-11-05T1{y}:30:00+02:00" for y in g.integers(0, 8, n)],
        "clock": [f"{h:02d}:15" for h in g.integers(0, 24, n)],
        "id": [f"person-{j}" for j in range(n)],
        "ward": [[" North ", "'=South", 'Östlich, "A"', "rare-ward"][min(w, 3)] for w in g.geometric(0.5, n) - 1],
        "text": [f"note {j}: " + "words " * 40 for j in range(n)],
        "one": ["yes"] * n,
        "void": [["", "NaN", "null"][j % 3] for j in range(n)],
        "flag": [["true", "no", ""][j % 3] for j in range(n)],
        "odd": [["0", "-0", "true"][j % 3] for j in range(n)],
    }
    for name, cell in {
        "age": "1e300",
        "cost": "inf",
        "seen": "1066-10-14",
        "at": "9999-12-31",
        "ward": "solo\0",
    }.items():
        table[name][0] = cell
    table["ward"][1] = "the only one"
    return table


@pytest.fixture(scope="module")
def fitted():
    with pytest.warns(CoveyWarning, match="left out"):
        return covey.PrivateSynthesizer(4.0, 1e-6, schema=MESSY, seed=1).fit(messy())


def test_a_messy_table_gets_a_complete_schema(fitted):
    found = fitted.schema
    assert found.names == ("age", "cost", "seen", "at", "clock", "ward", "one", "flag", "odd")
    assert fitted.privacy.left_out == ("id", "text", "void")
    assert fitted.privacy.learned == ("age", "cost", "seen", "at", "ward", "one", "odd")
    assert (found["age"].minimum, found["age"].maximum) == (0, 200)  # a bin more at each end, where sixty rows may hide
    assert found["age"].special == ("?", "N")
    assert found["cost"].minimum == 0
    assert 1000 <= found["cost"].maximum <= 20_000
    assert "1970-01-01" < str(found["seen"].minimum) <= "2010-01-01"  # as far as 32 years beside what stands out
    assert "2017-12-31" <= str(found["seen"].maximum) < "2050"
    assert str(found["at"].maximum)[4:] == "-12-31 23:59:59"
    assert (found["ward"].enum, found["ward"].other) == (("=South", "North", "rare-ward", 'Östlich, "A"'), "other")
    assert found["one"].enum == ("yes",)
    assert (found["odd"].minimum, found["odd"].maximum) == (0, 2)
    assert [f.name for f in found.fields if f.learned] == list(fitted.privacy.learned)
    assert Schema.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    rows = fitted.sample(500)
    assert found.validate(rows) == []
    assert set(rows["ward"].drop_nulls()) <= {*found["ward"].labels}


def test_the_charge_has_a_line_of_its_own(fitted):
    (domains, relations, *rest), budget = fitted.privacy.charges, make_budget(4.0, 1e-6, labels=True)
    assert (domains.purpose, domains.amount, domains.delta) == ("domains", budget.amount * SHARE, budget.selection)
    assert relations.purpose == "relations"
    assert 0 < relations.amount <= budget.amount * SHARE_OF_RELATIONS
    assert sum(charge.amount for charge in rest) == budget.amount * (1 - SHARE - SHARE_OF_RELATIONS)
    assert fitted.privacy.budget == budget


def test_a_second_table_is_learned_anew():
    synth = covey.PrivateSynthesizer(20.0, 1e-6, schema=schema(a="integer"), seed=1)
    low = synth.fit({"a": [str(j % 5) for j in range(2000)]}).schema
    high = synth.fit({"a": [str(500 + j % 5) for j in range(2000)]}).schema
    assert low["a"].maximum < 500 <= high["a"].minimum
    assert synth.sample(50)["a"].min() >= 500
    prepared = synth.prepare({"a": ["7"] * 900})
    assert synth.fit(prepared).schema["a"].maximum == 7


def test_pure_privacy_learns_numbers_and_dates_and_refuses_texts_before_any_table():
    with pytest.raises(ParameterError, match=r"'ward' is a text .* Give a small delta, such as 1e-9, or list"):
        covey.PrivateSynthesizer(1.0, schema=schema(age="integer", ward="string"))
    pure = schema(age="integer", seen="date", flag="boolean")
    found = covey.PrivateSynthesizer(20.0, schema=pure, seed=1).fit(messy()).schema
    assert (found["age"].maximum, found["age"].special) == (100, ())
    assert str(found["seen"].minimum) == "2010-01-01"


def test_no_advice_asks_for_a_list_of_names():
    """A list of names that somebody declares goes out with the schema."""
    with pytest.raises(ParameterError, match=r"names of persons\. Leave it out\.$") as refused:
        check_learning(schema(surname="string"), Fraction(0))
    assert "list its categories" not in str(refused.value)
    with pytest.raises(ParameterError, match="list its categories"):
        check_learning(schema(ward="string"), Fraction(0))
    known = Schema((Field("ward", "string", enum=("a", "b")),))
    said = Learned(known, (), ("first", "town")).advice
    assert said.endswith("'first', 'town'. Declare limits or categories to keep 'town'.")
    assert "categories" not in Learned(known, (), ("first",)).advice


def test_flags_and_times_need_no_learning():
    fields = Field("year", "integer", 7, 7, required=True), Field("flag", "boolean", learn=True)
    # As a release knows the flag, so a plan.
    check_learning(Schema(fields, rules=(Linear((("year", 1.0),), 9.0),)), Fraction(0))
    synth = covey.PrivateSynthesizer(1.0, schema=schema(flag="boolean", clock="time"), seed=1).fit(messy())
    assert all(charge.purpose != "domains" for charge in synth.privacy.charges)
    assert synth.schema.learns == ()


@pytest.mark.usefixtures("few_steps")
@pytest.mark.parametrize("kind", ["string", "integer", "number", "date", "datetime"])
@pytest.mark.parametrize("required", [False, True])
def test_where_nothing_stands_out_of_the_noise_the_release_is_a_guess_and_not_lost(kind, required):
    """The budget is spent by then. No word of the table is named."""
    cells = {"string": "word", "date": "2020-05-01", "datetime": "2020-05-01T10:00:00"}.get(kind, "7")
    wanted = Schema((Field("id", kind, learn=True, required=required),))
    with pytest.warns(CoveyWarning) as said:
        synth = covey.PrivateSynthesizer(0.01, 1e-6, schema=wanted, seed=1).fit({"id": [cells] * 20})
    assert any("noise hides the values of every column" in str(warning.message) for warning in said)
    assert synth.schema.fields[0].categories > 1
    assert synth.schema.validate(synth.sample(50)) == []
    assert "word" not in set(synth.sample(50)["id"])
    told = private_facts(synth.privacy, "0")
    assert told["guessed"] is True
    assert statement(told).guessed


@pytest.mark.usefixtures("few_steps")
def test_what_matters_most_is_forgotten_where_nothing_of_it_stands_out():
    """The budget is spent by then: a schema that still named the column would lose the release."""
    g = np.random.default_rng(0)
    table = {"age": g.integers(20, 60, 900).astype(str).tolist(), "id": [f"p{j}" for j in range(900)]}
    table["ward"] = g.choice(["A", "B"], 900).tolist()
    wished = schema(age="integer", id="string", ward="string").focus("id", ("age", "ward"), target="id")
    with pytest.warns(CoveyWarning, match="'id'"):
        synth = covey.PrivateSynthesizer(5.0, 1e-6, schema=wished, seed=1).fit(table)
    assert (synth.schema.important, synth.schema.target) == ((("age", "ward"),), None)


def test_a_declared_column_may_be_expected_from_a_learned_one_beside_rules():
    """Rules are tried on declared columns alone before the table is opened, where the learned one is not there."""
    fields = [entry("age", "integer", learn=True), entry("next", "integer", 0, 99, expected={"expression": "age + 1"})]
    rule = {"less_equal": {"left": "next", "right": "last"}}
    data = {"fields": [*fields, entry("last", "integer", 0, 99)], "covey": {"rules": [rule]}}
    schema = Schema.from_dict(data)
    assert covey.PrivateSynthesizer(1.0, 1e-6, schema=schema).schema == schema


def test_other_ways_refuse_what_is_to_be_learned():
    with pytest.raises(ParameterError, match="Only a private release learns"):
        covey.AnonymousSynthesizer(10, schema=schema(a="integer"))
    named = Schema((Field("a", "string", learn=True),), ("", "other"))
    with pytest.raises(ParameterError, match="declared missing"):
        covey.PrivateSynthesizer(1.0, 1e-6, schema=named)


def test_whatever_the_noise_a_valid_field_comes_out():
    """After the charge nothing may fail: noise of every size, on every grid."""
    g, made = np.random.default_rng(3), 0
    fields = [Field("x", t, learn=True) for t in ("integer", "number", "date", "datetime")]
    fields += [Field("x", "number", decimals=d, learn=True) for d in (0, 2, 15)]
    fields += [Field("x", "integer", bins=b, learn=True, required=True) for b in (1, 7, 500)]
    for field in fields:
        column = LearnedColumn(field, ("",))
        for scale in (1.0, 60.0, 1e6) * 12:
            counts = np.rint(g.standard_t(1.2, column.bins) * scale).astype(np.int64)
            noise = Noise(scale, kept_counts(scale, GAUSSIAN, column.bins), 1000)
            found = _learned_field(column, counts, noise, {"N": 9})
            made += found is not None
            assert found is None or found.categories >= 1 + (not field.required)
    assert made > 200


def test_whole_numbers_up_to_ten_keep_their_own_bins():
    codes = {"a": [str(1 + j % 2) for j in range(1000)], "b": [str(-1 - j % 3) for j in range(1000)], "c": ["0"] * 1000}
    found = covey.PrivateSynthesizer(20.0, schema=schema(a="integer", b="integer", c="integer"), seed=1).fit(codes)
    limits = [(f.minimum, f.maximum, f.bins) for f in found.schema.fields]
    assert limits == [(1, 2, None), (-3, -1, None), (0, 0, None)]
    assert set(found.sample(300)["a"].drop_nulls()) == {1, 2}


def many_labels(share, n=4000):
    """A text of which two labels hold a share of what is there, and a thousand others the rest; half of the cells are missing."""
    words = ["A", "B"] * int(share * n / 4) + [f"w{j % 1000}" for j in range(int((1 - share) * n / 2))]
    return {"s": words + [""] * (n - len(words)), "a": ["7", "9"] * (n // 2)}


@pytest.mark.usefixtures("few_steps")
@pytest.mark.parametrize(("share", "kept"), [(0.7, True), (0.3, False)])
def test_a_text_is_left_out_where_named_labels_hold_less_than_half_of_what_is_there(share, kept):
    """A program that divides by all rows would leave both out, one that asks for any label would keep both."""
    synth = covey.PrivateSynthesizer(8.0, 1e-6, schema=schema(s="string", a="integer"), seed=1)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        synth.fit(many_labels(share))
    assert ("s" in synth.schema.names) is kept
    if kept:
        assert synth.schema["s"].enum == ("A", "B")
    else:
        assert any("less than half" in str(w.message) for w in heard)


def test_decimals_are_read_as_types_are_and_the_statement_says_so():
    g = np.random.default_rng(1)
    weights = [f"{w:.1f}" for w in g.normal(70, 10, 3000)]
    weights[7] = "70.123"  # one odd cell in a thousand decides nothing
    drafted = Schema.draft({"weight": weights, "age": [str(a) for a in g.integers(20, 60, 3000)]}).to_learn()
    synth = covey.PrivateSynthesizer(8.0, 1e-6, schema=drafted, seed=1).fit({"weight": weights, "age": ["30"] * 3000})
    assert synth.schema["weight"].decimals == 1
    drawn = synth.sample(500)["weight"].drop_nulls().to_numpy()
    assert np.array_equal(drawn, np.round(drawn, 1))
    assert any("'weight' (number, 1 decimal)" in line for line in synth.privacy.assumed)


def test_costs_follow_from_public_numbers_as_the_design_says():
    """About 3% and a few hundred rows for 24 learned columns of 27,000 rows at (1, 1e-9); less for fewer columns."""
    many, few = (schema(**{f"c{j}": ("string", "integer")[j % 2] for j in range(q)}) for q in (24, 5))
    budget = make_budget(1, Fraction(1, 10**9), labels=True)
    dear, cheap = (learning_cost(s, 27_000, budget) for s in (many, few))
    assert 0.02 < cheap["other_share"] * 2 < dear["other_share"] < 0.045
    assert 150 < cheap["tail_rows"] < dear["tail_rows"] < 800
    assert learning_cost(many, 27_000, make_budget(1))["other_share"] is None
    assert learning_cost(schema(flag="boolean"), 100, budget) is None
    assert expected_codec(schema(a="integer", s="string", f="boolean")).domain_sizes == (21, 12, 3)


def test_a_budget_carries_so_many_columns_and_an_order_is_offered():
    """Twelve of forty columns of 11,757 rows at (1, 1e-9); where more are learned, labels of a twentieth are not named."""
    wide = schema(**{f"c{j}": "string" for j in range(40)})
    budget, double = (make_budget(epsilon, Fraction(1, 10**9), labels=True) for epsilon in (1, 2))

    def cost(n=11_757, budget=budget, q=40):
        return learning_cost(wide.only([f"c{j}" for j in range(q)]), n, budget)

    assert cost()["carried"] == 12
    assert cost(q=12)["other_share"] <= 0.05 < cost(q=13)["other_share"]
    assert cost(budget=make_budget(1))["carried"] < 12 < cost(budget=double)["carried"]
    assert (cost(10**6)["carried"], cost(50)["carried"]) == (40, 0)
    said = too_wide(wide.focus("c7", ("c9", "c3")), 11_757, budget)
    assert "40 columns are to be learned, and this budget carries about 12" in said
    assert said.endswith("such as c7, c9, c3, c0, c1, c2, c4, c5, c6, c8, c10, c11.")
    assert too_wide(wide, 10**6, budget) == ""
    assert wide.only(("c3", "c1")).names == ("c1", "c3")
    with pytest.raises(ParameterError, match="no field 'c99'"):
        wide.only(("c99",))


def test_several_rows_of_a_person_cost_as_many_times_the_noise(few_steps):
    """Limits for persons with five rows: five times the clipped rows (a program that forgets it has as many), and valid rows."""
    one, five = (make_budget(1, Fraction(1, 10**9), k, labels=True) for k in (1, 5))
    own = schema(age="integer", cost="number")
    once, more = (learning_cost(own, 27_000, budget) for budget in (one, five))
    assert 4.9 * once["tail_rows"] < more["tail_rows"] < 5.1 * once["tail_rows"]
    table = {name: messy()[name] for name in ("age", "cost")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CoveyWarning)
        synth = covey.PrivateSynthesizer(9.0, 1e-6, rows_per_person=5, schema=own, seed=1).fit(table)
    assert synth.privacy.learned == ("age", "cost")
    assert not synth.schema.validate(synth.sample(300))


def test_claims_of_delta_are_verified(fitted):
    facts = json.loads(json.dumps(private_facts(fitted.privacy, "0")))
    assert facts["charges"][0]["delta"] == "1/10000000"
    assert (facts["learned"], facts["left_out"]) == (list(fitted.privacy.learned), ["id", "text", "void"])
    for wrong, words in (
        ({"amount": str(make_budget(4.0, 1e-6).amount)}, "larger amount"),
        ({"charges": [facts["charges"][0] | {"delta": "1/1000000"}]}, "more of δ"),
    ):
        with pytest.raises(InputError, match=words):
            verify_claims(facts | wrong)


def test_learned_rows_keep_flags_and_whole_numbers_and_rules_speak_of_them():
    g = np.random.default_rng(3)
    phone = g.random(2000) < 0.9
    lines = np.where(phone, g.choice(["Yes", "No"], 2000), "No phone")
    columns = {"phone": np.where(phone, "Yes", "No"), "lines": lines, "old": g.integers(0, 2, 2000)}
    frame = pl.DataFrame(columns | {"score": g.integers(1, 11, 2000).astype(str)})
    schema = Schema.draft(frame).to_learn()
    forbidden = {"forbid": {"phone": "No", "old": "1"}}
    ruled = Schema.from_dict(schema.to_dict() | {"covey": {"rules": [forbidden]}})
    release = covey.PrivateSynthesizer(4, 1e-6, schema=ruled, seed=1).fit(frame).release(500)
    rows = release.rows("polars")
    assert set(rows["phone"]) - {None} == {"No", "Yes"}
    assert rows["old"].dtype.is_integer()
    assert rows["score"].dtype.is_integer()
    assert not rows.filter((pl.col("phone") == "No") & (pl.col("old") == 1)).height
    truth = (frame["phone"] == "Yes").mean()
    for words in ("Yes", True, "yes"):
        assert release.share({"phone": words}).value == pytest.approx(truth, abs=0.05)
    assert any("'phone' (boolean, No or Yes)" in line for line in release.privacy.assumed)


OF_PERSONS = Description(
    (
        Resource("people", schema(age="integer", town="string"), "id"),
        Resource("visits", schema(cost="number", ward="string"), parent=Parent("people", "who", 6)),
    )
)
ONE_TABLE = Description.of(schema(cost="number", ward="string"))


def with_person(described, attributes, rows):
    """Sixty persons with up to three rows each, and person 0 as given."""
    g = np.random.default_rng(5)
    own = [(0, *row) for row in rows]
    own += [(k, str(10 * (k % 7)), f"ward {k % 3}") for k in range(1, 61) for _ in range(g.integers(1, 4))]
    visits = dict(zip(("who", "cost", "ward"), map(list, zip(*own, strict=True)), strict=True))
    visits["who"] = [f"p{k}" for k in visits["who"]]
    if described.schema is not None:
        return visits
    ages, towns = zip(attributes, *((str(20 + k), "ab"[k % 2]) for k in range(1, 61)), strict=True)
    return {"people": {"id": [f"p{k}" for k in range(61)], "age": list(ages), "town": list(towns)}, "visits": visits}


def learned_counts(described, table):
    """What is counted of each learned column, bins and words together, before the noise."""
    reader = Reader(described, person=None if described.schema is None else "who")
    bins = tuple(column.bins for _, column in learned_columns(described))
    found = opened(reader.prepare(table).rows.reduce(Counting(bins)))
    return [dict(enumerate(h.tolist())) | w for h, w in zip(found.histograms, found.words, strict=True)]


def moved(described, persons):
    """How far replacing each person by the next one moves a column at most: ℓ1, ℓ2², and what labels of one alone weigh."""
    tables = [learned_counts(described, with_person(described, *person)) for person in persons]
    l1 = l2 = brought = 0
    for one, other in pairwise(tables):
        for a, b in zip(one, other, strict=True):
            change = np.array([a.get(k, 0) - b.get(k, 0) for k in {*a, *b}]) / WEIGHT_STEPS
            l1, l2 = max(l1, np.abs(change).sum()), max(l2, (change**2).sum())
            brought = max(brought, sum(a[k] for k in a if isinstance(k, str) and k not in b) / WEIGHT_STEPS)
    return l1, l2, brought


@pytest.mark.parametrize("described", [ONE_TABLE, OF_PERSONS], ids=["a column of persons", "a package"])
def test_one_person_with_all_rows_moves_learned_counts_by_two_at_most(described, monkeypatch):
    """Brute force over random persons, among them the worst: all rows alike, all different, and many more than others have."""
    g = np.random.default_rng(1)
    cells = lambda: (str(g.choice([1, 50, 10**9, ""])), str(g.choice(["ward 1", "new", "other", ""])))  # noqa: E731
    persons = [((str(g.integers(0, 99)), str(g.choice(["a", "z"]))), [cells() for _ in range(g.integers(1, 9))])]
    persons += [((str(g.integers(0, 99)), "z"), [cells() for _ in range(g.integers(1, 9))]) for _ in range(25)]
    persons += [(("1", "x"), [("1", "x")] * 40), (("2", "y"), [("50", "y")]), (("3", ""), [("7", "x")] * 3)]
    persons += [(("4", "w"), [(str(10**j), f"label {j}") for j in range(13)]), (("", ""), [("", "")])]
    found = moved(described, persons)
    assert found == pytest.approx((2, 2, 1), rel=1e-4)  # the bounds are reached
    assert all(np.array(found) <= (2, 2, 1))
    for home in (reading, persons_engine):  # a program that counts every row as a person
        monkeypatch.setattr(home, "row_weights", lambda rows: np.where(rows > 0, WEIGHT_STEPS, 0))
    if described.schema is None:
        assert all(np.array(moved(described, persons)) > (2, 2, 1))


def test_a_person_without_events_counts_where_a_text_holds_nothing():
    person = (("30", "a"), [])
    found = learned_counts(OF_PERSONS, with_person(OF_PERSONS, *person))
    assert [column[0] / WEIGHT_STEPS for column in found[1::2]] == [0, 1]
    assert [round(sum(column.values()) / WEIGHT_STEPS, 3) for column in found] == [61, 61, 60, 61]


@pytest.mark.usefixtures("quick_persons")
@pytest.mark.parametrize("described", [ONE_TABLE, OF_PERSONS], ids=["a column of persons", "a package"])
@pytest.mark.parametrize("neighbours", ["replace-one", "add-or-remove-one"])
def test_domains_are_learned_by_person_from_a_file_to_a_bundle(described, neighbours, tmp_path):
    g = np.random.default_rng(0)
    who = np.repeat(np.arange(900), g.integers(1, 5, 900))
    visits = {
        "who": [f"p{k}" for k in who],
        "cost": [f"{10 * (k % 7)}" for k in who],
        "ward": [["north", "south"][k % 2] if k else f"only p0's {j}" for j, k in enumerate(who)],
    }
    people = {"id": [f"p{k}" for k in range(900)], "age": [str(20 + k % 50) for k in range(900)]}
    tables = {"people": people | {"town": ["ab"[k % 2] for k in range(900)]}, "visits": visits}
    options = {"person": "who"} if described.schema is not None else {}
    synth = covey.PrivateSynthesizer(8.0, 1e-5, schema=described, seed=2, neighbours=neighbours, **options)
    synth.fit(visits if described.schema is not None else tables)
    found = dict(Description.of(synth.schema or synth.described).fields)
    ward = found.get("ward") or found["visits.ward"]
    assert (ward.enum, ward.learned) == (("north", "south"), True)
    cost = found.get("cost") or found["visits.cost"]
    assert cost.minimum <= 0 < 60 <= cost.maximum < 1000
    assert set(synth.privacy.learned) == set(found)
    spent = {charge.purpose: charge for charge in synth.privacy.charges}
    assert spent["domains"].delta == synth._budget.selection > 0
    assert synth.privacy.spent <= synth._budget.amount
    folder = write_bundle(synth.release(50), tmp_path / "bundle")
    assert verify_bundle(folder).finished
    assert "only p0" not in "".join(p.read_text(errors="replace") for p in folder.iterdir())
    assert set(covey.load(folder).privacy.learned) == set(found)


@pytest.mark.parametrize("cell", ["x", "", "1e", "2024-01-01"])
def test_an_order_that_is_learned_has_a_value_in_every_row_or_nothing_is_charged(cell):
    """A word among numbers would be learned elsewhere. Here a single record would end the release after its charge."""
    order = Field("day", "integer", learn=True, required=True)
    events = Resource(
        "visits", Schema((order, *schema(ward="string").fields)), parent=Parent("people", "who", 6, "day")
    )
    described = Description((Resource("people", schema(age="integer"), "id"), events))
    people = {"id": [f"p{k}" for k in range(300)], "age": [str(k % 60) for k in range(300)]}
    visits = {"who": people["id"], "day": [str(k) for k in range(300)], "ward": ["a", "b"] * 150}
    synth = covey.PrivateSynthesizer(9.0, 1e-4, schema=described, seed=1)
    assert synth.prepare({"people": people, "visits": visits}).n == 300
    with pytest.raises(InputError, match="1 of 300 rows have no 'day', which orders them"):
        synth.prepare({"people": people, "visits": visits | {"day": [cell, *visits["day"][1:]]}})


def test_an_order_that_nothing_stands_out_of_stays_an_order_and_what_matters_is_forgotten_where_it_is_left_out():
    parts = (
        Resource("people", schema(age="integer"), "id"),
        Resource(
            "visits",
            Schema((Field("day", "integer", learn=True, required=True), *schema(ward="string", job="string").fields)),
            parent=Parent("people", "who", 6, "day"),
        ),
    )
    described = Description(parts, important=(("visits.job",), ("visits.ward",)), target="visits.job")
    g = np.random.default_rng(0)
    who = np.repeat(np.arange(400), 2)
    visits = {"who": [f"p{k}" for k in who], "day": [str(int(10 ** g.uniform(0, 14))) for _ in who]}
    visits |= {"ward": ["a" if k % 3 else "b" for k in who], "job": [f"job {k}" for k in range(800)]}
    people = {"id": [f"p{k}" for k in range(400)], "age": [str(k % 60) for k in range(400)]}
    with pytest.warns(CoveyWarning):
        synth = covey.PrivateSynthesizer(6.0, 1e-4, schema=described, seed=1).fit({"people": people, "visits": visits})
    assert synth.privacy.left_out == ("visits.job",)
    assert synth.described.important == (("visits.ward",),)
    assert synth.described.target is None
    assert synth.described.link.order == "day"

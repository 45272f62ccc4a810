"""Relations counted exactly, for the owner alone: what is there is proposed, chance is not, and nothing is used unconfirmed."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import covey
from covey.errors import ParameterError
from covey.synthesizers.proposed_relations import LOOKED_AT, exact_proposals
from covey.tables.schema import Field, LessEqual, Schema
from covey.tables.sources import read_table
from covey.workflow.preparing import draft, propose, with_proposal

WORDS = (
    "copy equals net",
    "total is net plus tax",
    "start is never above end",
    "height and weight are missing together",
    "If ward is maternity, then sex is f",
)


def related(n=3000, seed=1, shuffled=False):
    """A table with a copy, a sum, dates in order, cells that are missing together and an implication."""
    g = np.random.default_rng(seed)
    net, tax, gone = g.integers(0, 1000, n), g.integers(0, 300, n), g.random(n) < 0.3
    start = np.datetime64("2020-01-01") + g.integers(0, 900, n)
    ward = g.choice(["maternity", "surgery", "other ward"], n)
    found = {
        "net": net,
        "tax": tax,
        "total": net + tax,
        "copy": net,
        "start": start,
        "end": start + g.integers(0, 900, n),
        "ward": ward,
        "sex": np.where(ward == "maternity", "f", g.choice(["f", "m", "x"], n)),
        "height": [None if hole else int(h) for hole, h in zip(gone, g.integers(140, 200, n), strict=True)],
        "weight": [None if hole else int(h) for hole, h in zip(gone, g.integers(40, 120, n), strict=True)],
    }
    frame = pl.DataFrame(found)
    if shuffled:
        return pl.DataFrame({name: frame[name].shuffle(seed + j) for j, name in enumerate(frame.columns)})
    return frame


def proposed(frame, schema=None):
    return exact_proposals(schema or Schema.draft(frame), read_table(frame))


def confirmed(frame):
    return Schema.draft(frame).confirm(frame.columns)


def test_what_every_row_keeps_is_proposed_and_nothing_else():
    found = proposed(related())
    assert {proposal.words for proposal in found} == set(WORDS)
    assert all((proposal.broken, proposal.rows) == (0, 3000) for proposal in found)


@pytest.mark.parametrize("rows", [40, 700, 3000])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_shuffled_columns_have_no_relation(rows, seed):
    assert proposed(related(rows, seed, shuffled=True)) == ()


@pytest.mark.parametrize(("wrong", "kept"), [(15, True), (16, False)])
def test_half_a_percent_of_exceptions_is_counted_exactly_and_more_are_too_many(wrong, kept):
    frame = related()
    copy = pl.Series("copy", [x + (k < wrong) for k, x in enumerate(frame["net"].to_list())])
    found = {one.words: one.broken for one in proposed(frame.with_columns(copy))}
    assert found.get("copy equals net") == (wrong if kept else None)


def test_what_chance_would_hardly_break_is_no_news():
    g = np.random.default_rng(0)
    rare, x = g.random(5000) < 0.02, g.integers(0, 100, 5000)
    frame = pl.DataFrame(
        {"rare": np.where(rare, "a", "b"), "never": np.where(rare, "c", g.choice(["c", "d"], 5000)), "x": x}
    )
    assert proposed(frame) == ()  # "a" always goes with "c", and 1% of the rows would break that by chance


def test_a_threshold_or_a_list_that_would_be_read_off_the_rows_is_not_proposed():
    g = np.random.default_rng(0)
    area = g.choice(["north", "south", "east"], 4000)
    low = np.where(area == "north", g.integers(0, 40, 4000), g.integers(0, 100, 4000))
    density = np.select([area == "north", area == "south"], ["thin", "dense"], "middle")
    found = proposed(pl.DataFrame({"area": area, "low": low, "density": density}))
    assert found
    assert all(len(one.rules) and one.field is None and "low" not in one.columns for one in found)


def test_a_long_table_is_looked_at_in_part():
    found = proposed(related(LOOKED_AT + 5000))
    assert {proposal.words for proposal in found} == set(WORDS)
    assert {proposal.rows for proposal in found} == {LOOKED_AT}


def test_a_draft_holds_no_proposal_and_a_schema_only_what_was_added():
    frame = related()
    drafted = draft(frame)
    assert len(drafted.relations) == len(WORDS)
    assert drafted.description.schema == Schema.draft(frame)
    schema = confirmed(frame)
    found = propose(frame, schema)
    for proposal in found:
        after = with_proposal(schema, found, proposal.words)
        assert after != schema == confirmed(frame)
        assert after.validate(frame) == []
        assert Schema.from_dict(after.to_dict()) == after
        assert not any(word in str(after.to_dict()) for word in ("broken", "missing together", "never above"))
        assert proposal.words not in {one.words for one in propose(frame, after)}
    everything = schema
    for proposal in found:
        everything = with_proposal(everything, found, proposal.words)
    assert propose(frame, everything) == ()
    assert everything["copy"].derived.expression == "net"
    assert LessEqual("start", "end", linked=False) in everything.rules


def test_only_what_speaks_of_confirmed_columns_is_added():
    frame = related()
    found = proposed(frame)
    with pytest.raises(ParameterError, match="not confirmed as public for 'copy', 'net'"):
        with_proposal(Schema.draft(frame), found, WORDS[0])
    with pytest.raises(ParameterError, match="no relation was seen that says 'copy equals tax'"):
        with_proposal(confirmed(frame), found, "copy equals tax")
    with pytest.raises(ParameterError, match="not confirmed"):
        Schema.draft(frame).require_confirmed()


def test_an_order_that_is_declared_is_not_proposed_again():
    frame, schema = related(), confirmed(related())
    for linked in (True, False):
        ordered = Schema(schema.fields, rules=(LessEqual("start", "end", linked),))
        assert WORDS[2] not in {one.words for one in propose(frame, ordered)}


def test_a_package_of_tables_has_none(tmp_path):
    related(200).with_columns(who=pl.Series(np.arange(200) // 2)).write_csv(tmp_path / "events.csv")
    assert draft({"events.csv": tmp_path / "events.csv"}, person="who").relations == ()


def test_columns_of_many_required_categories_alone_are_looked_at_too():
    labels = [f"code {j}" for j in range(20)]  # too many for rules about single ones
    code = np.random.default_rng(0).choice(labels, 2000)
    frame = pl.DataFrame({"code": code, "again": code})
    schema = Schema(tuple(Field(name, "string", enum=tuple(labels), required=True) for name in frame.columns))
    assert [one.words for one in proposed(frame, schema)] == ["again equals code"]
    released = covey.PrivateSynthesizer(20.0, 1e-6, schema=replace(schema, relations="learn"), seed=1).fit(frame)
    assert released.sample(100).height == 100


def test_what_is_counted_is_what_the_schema_would_compute():
    g = np.random.default_rng(0)
    born = np.datetime64("1930-01-01") + g.integers(0, 33_000, 4000)
    code = g.choice(["A1", "A2", "B1", "B2"], 4000)
    years = 54.5 - born.astype(int) / 365.25
    letter = np.array([word[0] for word in code])
    letter[:7] = np.where(letter[:7] == "A", "B", "A")
    found = {"born": born, "age": np.floor(years).astype(int), "code": code, "letter": letter}
    frame = pl.DataFrame(found | {"birth year": born.astype("datetime64[Y]").astype(int) + 1970})
    schema = confirmed(frame)
    told = {one.words: one for one in propose(frame, schema)}
    # Ages by a formula that is half a year off would be near, and wrong in half of the rows.
    assert set(told) == {"birth year is the year of born", "letter is the first character of code"}
    assert told["letter is the first character of code"].broken == 7
    for one in told.values():
        problems = one.added_to(schema).validate(frame)
        assert bool(problems) == bool(one.broken)

"""Which numbers and dates a draft says follow others."""

import numpy as np
import polars as pl
import pytest

import covey
from covey.errors import ParameterError
from covey.table.column_dependencies import with_links_that_hold
from covey.table.follows import Follows
from covey.table.schema import Field, Schema


def stays(n=400, seed=0):
    """Admission ≤ operation ≤ discharge, net ≤ gross, an age and a rank that have nothing to do with each other."""
    g = np.random.default_rng(seed)
    came = np.datetime64("2021-01-01") + np.sort(g.integers(0, 900, n))
    cut = came + g.geometric(0.5, n) - 1
    left = cut + g.geometric(0.3, n) - 1
    net = np.round(np.exp(g.normal(6, 1, n)), 2)
    gross = np.round(net * (1 + g.choice([0.07, 0.19], n)), 2)
    return pl.DataFrame(
        {
            "came": came.astype(str),
            "operated": cut.astype(str),
            "left": left.astype(str),
            "net": net,
            "gross": gross,
            "age": g.integers(18, 90, n),
            "far": g.integers(1000, 5000, n),
            "score": np.round(g.normal(50, 10, n), 1),
        }
    )


def followed(frame):
    schema, notes = Schema.draft_with_notes(frame)
    return {field.name: field.follows.base for field in schema.fields if field.follows is not None}, notes


def test_chains_and_amounts_are_found_and_nothing_else():
    """Ages lie below 'far' in every row, by their ranges alone: no rule. Scores lie anywhere."""
    found, notes = followed(stays())
    assert found == {"operated": "came", "left": "operated", "gross": "net"}
    assert any("after 'operated'" in str(note) for note in notes if note.field == "left")


def test_what_is_drafted_can_be_confirmed_saved_and_released(tmp_path):
    frame = stays()
    schema = Schema.draft(frame).confirm(Schema.draft(frame).names)
    schema.save(tmp_path / "schema.json")
    again = Schema.load(tmp_path / "schema.json")
    assert set(again.links) == {"operated", "left", "gross"}
    rows = covey.PrivateSynthesizer(1.0, 1e-6, schema=again, seed=0).fit(frame).sample(300)
    assert (rows["came"] <= rows["operated"]).all()
    assert (rows["operated"] <= rows["left"]).all()
    assert (rows["net"] <= rows["gross"]).all()


def test_a_few_mistakes_of_typing_are_forgiven_and_many_are_not():
    frame = stays()
    days = frame["left"].to_list()
    for wrong, there in ((1, True), (20, False)):
        odd = ["2020-12-31"] * wrong + days[wrong:]
        found, _ = followed(frame.with_columns(pl.Series("left", odd)))
        assert ("left" in found) is there


def test_few_rows_and_missing_cells_propose_nothing():
    assert followed(stays(30))[0] == {}
    frame = stays()
    holes = frame.with_columns(pl.Series("left", [None] * 370 + frame["left"].to_list()[370:]))
    assert "left" not in followed(holes)[0]


def test_bounds_that_forbid_the_order_are_not_proposed():
    """The later date is clipped by its own limits: such a schema would be refused, so the draft does not make it."""
    fields = [field.to_dict() for field in Schema.draft(stays()).fields]
    for one in fields:
        one["covey"]["confirmed"] = True
        if one["name"] == "left":
            one["constraints"]["maximum"] = "2021-06-01"
    with pytest.raises(ParameterError, match="follows"):
        Schema.from_dict({"fields": fields})


def test_anonymous_averages_keep_the_order_too():
    """Group averages are rounded one by one, and dates may be missing: what comes after still does."""
    frame = stays(300)
    holes = pl.Series("left", [None if k % 3 == 0 else day for k, day in enumerate(frame["left"])])
    frame = frame.with_columns(holes)
    schema = Schema.draft(frame).confirm(Schema.draft(frame).names)
    rows = covey.AnonymousSynthesizer(5, schema=schema, seed=0).fit(frame).sample(300)
    assert not schema.validate(rows)
    assert (rows["came"] <= rows["operated"]).all()
    assert rows.filter(pl.col("left") < pl.col("operated")).is_empty()


def test_validation_names_rows_out_of_order():
    frame = stays(100)
    schema = Schema.draft(frame).confirm(Schema.draft(frame).names)
    assert not schema.validate(frame)
    turned = frame.with_columns(frame["came"].alias("operated"), frame["operated"].alias("came"))
    assert any("after" in found for found in schema.validate(turned))


def test_proposals_that_others_made_impossible_are_dropped_and_the_rest_stays():
    came = Field("came", "date", "2020-01-01", "2021-12-31")
    left = Field("left", "date", "2020-01-01", "2022-12-31", follows=Follows("came"))
    paid = Field("paid", "date", "2020-01-01", "2023-12-31", follows=Follows("left"))
    follows = lambda *fields: [f.follows and f.follows.base for f in with_links_that_hold(fields)]  # noqa: E731
    assert follows(came, left, paid) == [None, "came", "left"]
    assert follows(left, paid) == [None, "left"]  # its base was left out
    assert follows(Field("came", "date", "2020-01-01", "2021-12-31", bins=4), left, paid) == [None, None, "left"]
    assert follows(Field("came", "integer", 0, 9), left) == [None, None]
    assert follows(Field("came", "date", "2020-01-01", "2031-12-31"), left) == [None, None]
    assert with_links_that_hold(()) == ()


def test_columns_that_follow_from_one_column_are_hinted_at_without_their_values():
    generator = np.random.default_rng(1)
    area = generator.integers(0, 12, 600)
    table = pl.DataFrame(
        {
            "area": [f"area {a}" for a in area],
            "density": (area * 77 % 13) * 10.5 + 3,
            "region": [f"region {a // 4}" for a in area],
            "age": generator.integers(0, 90, 600),
            "group": generator.choice(["x", "y"], 600),
            "always": ["here"] * 600,
        }
    )
    schema, notes = Schema.draft_with_notes(table)
    hinted = {note.field: note.reason for note in notes if "derived" in note.reason}
    assert set(hinted) == {"density", "region"}
    assert all("each value of 'area' has one value of it" in reason for reason in hinted.values())
    assert all(field.derived is None for field in schema.fields)
    # One row that departs, or a base without repetitions, and nothing is said.
    table[0, "density"] = -1.0
    assert "derived" not in " ".join(
        note.reason for note in Schema.draft_with_notes(table)[1] if note.field == "density"
    )
    assert "derived" not in " ".join(note.reason for note in Schema.draft_with_notes(table.head(100))[1])

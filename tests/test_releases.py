"""Random releases on their whole way, a bounded part of `python -m fuzz releases`; and what longer runs found besides."""

import csv

import numpy as np
import polars as pl
import pytest

import covey
from covey.answers.asking import ask
from covey.answers.tables import write_tables
from covey.table.description import Description
from covey.table.following import Follows
from covey.table.schema import Field, Schema
from fuzz.releases import explore

# As `python -m fuzz releases` names them at its end: together they reach all that is named. To be renewed where one of them is
# refused since.
SEEDS = ()


def test_accepted_releases_are_finished_refusals_cost_nothing_and_rows_keep_their_schema():
    tally = explore(SEEDS)
    assert tally.finds == {}
    assert tally.unreached == []


@pytest.mark.usefixtures("few_steps")
@pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")
def test_noisy_tables_are_written_where_a_column_follows_another(tmp_path):
    """Its bins are distances, which have no label of their own; the refusal of a label refused all tables."""
    g = np.random.default_rng(0)
    first = g.integers(0, 50, 200)
    fields = Field("first", "integer", 0, 50), Field("last", "integer", 0, 99, follows=Follows("first"))
    synth = covey.PrivateSynthesizer(5.0, 1e-6, schema=Schema((*fields, Field("flag", "boolean"))), seed=1)
    table = {"first": first, "last": first + g.integers(0, 40, 200), "flag": g.random(200) < 0.5}
    columns, pairs = write_tables(synth.fit(pl.DataFrame(table)).release(10), tmp_path / "tables")
    with columns.open(newline="") as file:
        told = [(row["column"], row["category"]) for row in csv.DictReader(file)]
    assert {name for name, _ in told} == {"first", "last", "flag"}
    assert ("last", "distance, bin 1") in told
    assert "distance" in pairs.read_text()


@pytest.mark.usefixtures("few_steps")
@pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")
def test_rates_of_events_of_which_a_person_has_one_at_most():
    """Shares of such events are told by units, and rates by bins, of which there are fewer."""
    g = np.random.default_rng(1)
    fields = [{"name": "cost", "type": "integer", "constraints": {"minimum": 0, "maximum": 900}}]
    key = [{"fields": "who", "reference": {"resource": "people", "fields": "id"}}]
    resources = [
        {
            "name": "people",
            "schema": {"primaryKey": "id", "fields": [{"name": "id"}, {"name": "old", "type": "boolean"}]},
        },
        {
            "name": "events",
            "schema": {"foreignKeys": key, "fields": [{"name": "who"}, *fields]},
            "covey": {"at_most": 1},
        },
    ]
    ids = [f"p{k}" for k in range(400)]
    tables = {
        "people": {"id": ids, "old": (g.random(400) < 0.5).astype(str).tolist()},
        "events": {"who": ids[:300], "cost": g.integers(0, 900, 300).astype(str).tolist()},
    }
    package = Description.from_dict({"resources": resources})
    release = covey.PrivateSynthesizer(50.0, 1e-6, schema=package, seed=1).fit(tables).release(100)
    assert ask(release, "rate cost>=0", about="table").value == pytest.approx(0.75, abs=0.05)

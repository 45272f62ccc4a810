"""Rules that true rows break, and synthetic rows that are altered to keep rules, are counted and told."""

import json

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from covey.cli import main
from covey.table.schema import Schema

FIELDS = [
    {"name": "a", "type": "integer", "constraints": {"minimum": 0, "maximum": 50, "required": True}},
    {"name": "b", "type": "integer", "constraints": {"minimum": 0, "maximum": 50, "required": True}},
    {"name": "w", "type": "string", "constraints": {"enum": ["x", "y"], "required": True}},
]
SUM = {"linear": {"coefficients": {"a": 1, "b": 1}, "maximum": 60}}  # what the fit does not keep by itself
ZERO = {"forbid": {"a": {"minimum": 40}, "w": ["x"]}}


@pytest.fixture
def files(tmp_path):
    g = np.random.default_rng(0)
    a = g.integers(0, 51, 400)
    b = np.minimum(g.integers(0, 51, 400), 60 - a)
    w = np.where(a >= 40, "y", g.choice(["x", "y"], 400))
    a[:3], b[:3], w[:5] = 50, 50, "x"  # three rows break the sum; these and others that are 40 or more the zero
    pl.DataFrame({"a": a, "b": b, "w": w}).write_csv(tmp_path / "table.csv")
    Schema.from_dict({"fields": FIELDS, "covey": {"rules": [SUM, ZERO]}}).save(tmp_path / "schema.json")
    return tmp_path, int(((a >= 40) & (w == "x")).sum())


def told(*arguments):
    found = CliRunner().invoke(main, [str(x) for x in arguments])
    assert found.exit_code == 0, found.output
    return found.output


def test_check_counts_the_rows_that_break_a_rule(files):
    home, zero = files
    words = told("check", home / "table.csv", "--schema", home / "schema.json")
    assert "3 of 400  rows break the rule" in words
    assert f"{zero} of 400  rows break the rule" in words
    facts = json.loads(told("check", home / "table.csv", "--schema", home / "schema.json", "--json"))
    assert [one["rows"] for one in facts["broken_rules"]] == [3, zero]


@pytest.mark.usefixtures("few_steps")
def test_a_release_says_how_many_rows_were_altered(files):
    home, _ = files
    made = ("release", home / "table.csv", "--schema", home / "schema.json", "--epsilon", "2", "--seed", "1")
    words = told(*made, "--out", home / "bundle")
    count = json.loads((home / "bundle" / "privacy.json").read_text())["rows_altered_by_rules"]
    assert 0 < count < 400
    assert f"rules: {count} of 400 rows were altered after drawing" in words
    assert f"{count} were altered after drawing" in (home / "bundle" / "README.md").read_text()
    rows = pl.read_csv(home / "bundle" / "synthetic.csv")
    assert (rows["a"] + rows["b"]).max() <= 60

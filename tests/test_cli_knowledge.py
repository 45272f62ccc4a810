"""Triples, a target and a prior on the command line: what a plan says of them, and that a release takes them."""

import json

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from covey.cli import main

FIELDS = [{"name": f"c{j}", "type": "string", "constraints": {"enum": list("ab"), "required": j < 5}} for j in range(6)]


@pytest.fixture
def home(tmp_path):
    g = np.random.default_rng(0)
    codes = g.integers(0, 2, (600, 6))
    codes[:, 4] = codes[:, 1] ^ codes[:, 2]
    pl.DataFrame({f"c{j}": np.array(["a", "b"])[codes[:, j]] for j in range(6)}).write_csv(tmp_path / "table.csv")
    (tmp_path / "schema.json").write_text(json.dumps({"fields": FIELDS}))
    return tmp_path


def told(*arguments, code=0):
    found = CliRunner().invoke(main, [str(x) for x in arguments])
    assert found.exit_code == code, found.output
    return found.output


def test_a_plan_says_how_many_triples_would_be_looked_for(home):
    plan = ("plan", home / "schema.json", "--epsilon", 1, "--delta", "1e-9")
    assert "triples" not in told(*plan, "--rows", 20_000)
    assert "the 3 strongest of 20 triples" in told(*plan, "--rows", 20_000, "--triples", 3)
    assert "the 5 strongest of 10 triples" in told(*plan, "--rows", 20_000, "--target", "c4")
    assert "because noise would hide them" in told(*plan, "--rows", 60, "--triples", 3)
    facts = json.loads(told(*plan, "--rows", 20_000, "--triples", 3, "--json"))["triples"]
    assert facts["count"] == 3
    assert "no field 'c9'" in told(*plan, "--rows", 20_000, "--target", "c9", code=2)


@pytest.mark.usefixtures("few_steps")
def test_a_release_takes_triples_and_an_earlier_release(home):
    made = ("release", home / "table.csv", "--schema", home / "schema.json", "--seed", 1, "--epsilon", 9)
    told(*made, "--target", "c4", "--triples", 1, "--out", home / "first")
    spent = {c["purpose"] for c in json.loads((home / "first" / "privacy.json").read_text())["charges"]}
    assert {"choosing triples", "triples"} <= spent
    words = told(*made, "--prior", home / "first", "--out", home / "second")
    assert "seeded" in words
    assert "prior" in json.loads((home / "second" / "privacy.json").read_text())
    (home / "first" / "README.md").write_text("changed")
    assert "changed after the bundle" in told(*made, "--prior", home / "first", "--out", home / "third", code=3)
    assert not (home / "third").exists()

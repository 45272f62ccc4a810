"""Bad numbers: bounds that cannot hold are refused before the charge, and odd columns give valid rows."""

import json
import shlex
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import covey
from covey.cli import main
from covey.privacy.ledger import Ledger
from covey.table.schema import Schema

pytestmark = pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")
PLAIN = {"name": "b", "type": "integer", "constraints": {"minimum": 0, "maximum": 9}}


def run(line):
    return CliRunner().invoke(main, shlex.split(line))


@pytest.fixture
def desk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COVEY_LEDGER", str(tmp_path / "ledger.sqlite"))
    Path("t.csv").write_text("a,b\n" + "3,4\n" * 40)
    assert run("ledger open t --budget 3").exit_code == 0
    return tmp_path


def number(low, high, type_="number", **own):
    return {"name": "a", "type": type_, "constraints": {"minimum": low, "maximum": high}, "covey": own}


REFUSED = {
    "reversed": number(9, 0),
    "infinite": number(float("-inf"), float("inf")),
    "infinite at one end": number(0, float("inf")),
    "beyond any float": number(0, "1e400"),
    "no number": number(float("nan"), 1),
    "beyond 2^53 steps": number(0, 2**54, "integer"),
    "a precision finer than the float": number(0, 10**6, decimals=14),
    "a precision beyond any float": number(0, 1, decimals=400),
    "no step between": number(0.1, 0.4, decimals=0),
    "a date in year 0": number("0000-01-01", "2000-01-01", "date"),
    "a date beyond the calendar": number("2000-01-01", "12000-01-01", "date"),
    "no time of day": number("08:00:00", "25:00:00", "time"),
    "a difference that overflows": number(0, 2**53, "integer", difference_from="b", difference={"minimum": -(2**60)}),
    "a difference below its own bounds": number(0, 9, "integer", after="b", difference={"minimum": 7, "maximum": 3}),
    "a later field that ends earlier": number(0, 5, "integer", after="b"),
    "a special value twice": number(0, 9, "integer", special=["N", "N"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_hold_is_refused_before_the_charge(name, desk):
    Path("s.json").write_text(json.dumps({"fields": [REFUSED[name], PLAIN]}))
    result = run("release t.csv --schema s.json --epsilon 1 --dataset t --out out")
    assert result.exit_code == 2, result.output
    assert "'a'" in result.output
    assert "Traceback" not in result.output
    assert not Path("out").exists()
    (status,) = Ledger(desk / "ledger.sqlite").datasets()
    assert status.spent.epsilon == 0


ODD = {
    "all missing": [""] * 60,
    "constant": ["5"] * 60,
    "one value beside holes": [""] * 59 + ["7"],
    "not numbers": ["nan", "inf", "-inf", "NaN", "+inf", "x"] * 10,
    "beyond the bounds": ["1e300", "-1e300", "9" * 400] * 20,
    "specials inside the range": ["3", "99", "N"] * 20,
    "tiny steps": [f"{5 + k * 1e-13:.13f}" for k in range(60)],
}


@pytest.mark.parametrize("delta", [0, 1e-3])
@pytest.mark.parametrize("name", ODD)
@pytest.mark.usefixtures("few_steps")
def test_odd_columns_give_valid_rows(name, delta):
    fields = [
        number(0, 1000, decimals=2, special=["99", "N"]),
        PLAIN | {"covey": {"difference_from": "a"}} | {"type": "number"},
    ]
    fields[1]["covey"]["decimals"] = 2
    schema = Schema.from_dict({"fields": fields})
    table = {"a": ODD[name], "b": [str(k % 10) for k in range(60)]}
    rows = covey.PrivateSynthesizer(2.0, delta, schema=schema, seed=1).fit(table).sample(80)
    assert not schema.validate(rows)


def test_dates_that_no_calendar_has_are_clipped_or_missing():
    schema = Schema.from_dict({"fields": [number("2000-01-01", "2020-12-31", "date"), PLAIN]})
    odd = ["0000-01-01", "-0001-01-01", "12010-01-01", "2010-02-30", "NaT", "inf"] * 10
    rows = covey.PrivateSynthesizer(2.0, 1e-3, schema=schema, seed=1).fit({"a": odd, "b": ["1"] * 60}).sample(40)
    assert not schema.validate(rows)


def test_special_values_inside_the_range_are_kept_apart():
    schema = Schema.from_dict({"fields": [number(0, 1000, special=["99"], decimals=0), PLAIN]})
    n = 3000
    table = {"a": ["99"] * 900 + [str(k % 60) for k in range(n - 900)], "b": ["1"] * n}
    rows = covey.PrivateSynthesizer(3.0, 1e-6, schema=schema, seed=1).fit(table).sample(n)
    share = (rows["a"].cast(pl.Float64) == 99).mean()
    assert share == pytest.approx(0.3, abs=0.02)


def test_equal_bounds_are_one_value():
    """A number with equal bounds says nothing: it is written as it is, and the rest is released."""
    schema = Schema.from_dict(
        {"fields": [number(4, 4, "integer") | {"constraints": {"minimum": 4, "maximum": 4, "required": True}}, PLAIN]}
    )
    rows = covey.PrivateSynthesizer(1.0, schema=schema, seed=1).fit({"a": ["4"] * 50, "b": ["3"] * 50}).sample(20)
    assert rows["a"].to_list() == [4] * 20


def test_generous_bounds_cost_little():
    """Incomes declared up to ten million come out about as well as with tight bounds; twenty equal bins lose them."""
    g = np.random.default_rng(0)
    income = np.where(g.random(5000) < 0.15, 0, np.exp(g.normal(9.5, 0.8, 5000)).round())
    off = {}
    for name, high, bins in (("tight", 400_000, None), ("generous", 10**7, None), ("bins", 10**7, 20)):
        own = {"decimals": 0} | ({} if bins is None else {"bins": bins})
        schema = Schema.from_dict({"fields": [number(0, high, **own), PLAIN]})
        rows = (
            covey.PrivateSynthesizer(1.0, 1e-9, schema=schema, seed=2).fit({"a": income, "b": income % 10}).sample(5000)
        )
        made = rows["a"].drop_nulls().to_numpy()
        off[name] = (
            abs(np.median(made) - np.median(income)) / income.std(),
            abs(made.mean() - income.mean()) / income.std(),
        )
    assert max(off["tight"]) < 0.08
    assert max(off["generous"]) < 0.08
    assert max(off["bins"]) > 1

"""Means of numbers that were measured by their distance from what other columns say, or are computed from them."""

import numpy as np
import polars as pl
import pytest

import covey
from covey.errors import CannotAnswerError
from covey.tables.schema import Schema

pytestmark = [pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning"), pytest.mark.usefixtures("few_steps")]

N, TABLE = 1500, {"about": "table"}


def number(name, low, high, required=True, **more):
    return {
        "name": name,
        "type": "integer",
        "constraints": {"minimum": low, "maximum": high} | ({"required": True} if required else {}),
        "covey": more,
    }


SCHEMA = Schema.from_dict(
    {
        "fields": [
            {"name": "born", "type": "date", "constraints": {"minimum": "1940-01-01", "maximum": "1999-12-31"}},
            number("age", 0, 120, False, expected={"expression": "floor(50.5 - born / 31557600)"}),
            number("months", 0, 72),
            number("fee", 20, 120),
            number("paid", 0, 9000, expected={"expression": "months * fee"}),
            number("due", 0, 9500, expected={"expression": "paid + 2 * fee"}),
            number("left", 0, 300, after="months"),
            {"name": "total", "type": "integer", "covey": {"derived": {"expression": "months + 12 * fee - 3"}}},
            number("odd", 0, 9000, expected={"expression": "max(months, fee)"}),
            {"name": "sex", "type": "string", "constraints": {"enum": ["f", "m"], "required": True}},
        ]
    }
)


def table(seed=0):
    """Ages and payments that mostly follow, and do not where it matters: men are said to be older than they are."""
    g = np.random.default_rng(seed)
    sex = g.choice(["f", "m"], N)
    days = np.where(sex == "m", g.integers(-9000, 0, N), g.integers(-10_000, 10_000, N))
    age = np.floor(50.5 - days * 86400 / 31557600) + (sex == "m") * (g.random(N) < 0.3) * g.integers(1, 9, N)
    months = np.minimum(72, g.geometric(0.03, N))
    fee = np.clip(g.normal(40 + months / 2, 12), 20, 120).astype(int)
    paid = np.clip(months * fee + (g.random(N) < 0.2) * g.integers(-40, 300, N), 0, 9000)
    born = np.datetime64("1970-01-01") + days
    known = g.random(N) > np.where(sex == "m", 0.3, 0.1)  # both are missing together
    return pl.DataFrame(
        {
            "born": pl.Series(born).cast(pl.Date),
            "age": age.astype(int),
            "months": months,
            "fee": fee,
            "paid": paid,
            "due": np.minimum(9500, paid + 2 * fee + (g.random(N) < 0.1)),
            "left": months + g.integers(0, 60, N),
            "total": months + 12 * fee - 3,
            "odd": np.maximum(months, fee),
            "sex": sex,
        }
    ).with_columns(pl.when(pl.Series(known)).then(pl.col("born", "age")))


def released(frame, epsilon, seed=1):
    synth = covey.PrivateSynthesizer(epsilon, 1e-6, schema=SCHEMA, seed=seed, certificate_share=0)
    return synth.fit(frame).release(500)


@pytest.fixture(scope="module")
def exact():
    from tests.few import few_steps

    with pytest.MonkeyPatch.context() as patch:
        few_steps(patch.setattr)
        return released(table(), 1e6)


@pytest.mark.parametrize("column", ["age", "left", "total", "paid"])
def test_without_noise_the_mean_is_that_of_the_table(exact, column):
    """It was refused. A formula without its distance, or a distance without its formula, is far off."""
    frame = table()
    answer, true = exact.mean(column, **TABLE), frame[column].mean()
    assert answer.low <= true <= answer.high
    assert answer.value == pytest.approx(true, abs=0.03 * frame[column].std())
    assert answer.high - answer.low < 0.4 * frame[column].std()
    assert "by the columns that it follows from" in answer.method


@pytest.mark.parametrize("column", ["age", "left", "total"])
def test_groups_and_conditions_of_one_column_are_answered(exact, column):
    frame = table()
    for sex, answer in zip("fm", exact.mean(column, "sex", **TABLE), strict=True):
        true = frame.filter(sex=sex)[column].mean()
        assert answer.value == pytest.approx(true, abs=0.06 * frame[column].std())
        assert exact.mean(column, where={"sex": sex}, **TABLE).value == pytest.approx(answer.value)


def test_what_pairs_cannot_tell_is_refused_with_the_way_out(exact):
    with pytest.raises(CannotAnswerError, match=r"mixes 2 columns.*release\.interval"):
        exact.mean("odd")
    with pytest.raises(CannotAnswerError, match=r"three columns at once.*release\.interval"):
        exact.mean("paid", "sex")
    with pytest.raises(CannotAnswerError, match=r"release\.interval"):
        exact.quantile("age", 0.5)


def test_intervals_hold_the_mean_as_often_as_they_say():
    """Of a product bins keep little at this noise; nothing but bounds is said of what they hide."""
    frame = table(7)
    columns = ("age", "paid", "left", "total")
    held = dict.fromkeys(columns, 0)
    for seed in range(10):
        release = released(frame, 1.0, seed)
        for column in columns:
            answer = release.mean(column, **TABLE)
            held[column] += answer.low <= frame[column].mean() <= answer.high
    assert min(held.values()) >= 8
    assert sum(held.values()) >= 36

"""Answers, the bundle's rows and the truth: intervals hold the truth, and rows do not contradict them."""

import numpy as np
import polars as pl
import pytest

import covey
from covey.engine.draw.balanced import Ties
from covey.release.answers import release as answering
from covey.release.answers.answer import answers
from covey.release.answers.estimates import Estimate, Feature
from covey.tables.schema import Field, Schema
from tests.entries import schema_of

pytestmark = pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")

SEEDS = range(4)
STAGES = ("young", "middle", "old")


def ages(n=12_000):
    """A number that decides a category."""
    g = np.random.default_rng(5)
    age = np.clip(18 + g.gamma(2.0, 9.0, n), 18, 95).astype(int)
    stage = np.where(age < 25, "young", np.where(age <= 45, "middle", "old"))
    schema = schema_of(
        Field("age", "integer", 16, 100, required=True),
        Field("stage", "string", enum=STAGES, required=True),
        Field("priors", "integer", 0, 60, required=True),
    )
    priors = np.minimum(g.negative_binomial(0.5, 0.14, n), 60)
    return pl.DataFrame({"age": age, "stage": stage, "priors": priors}), schema


def visits(n=3000):
    """A count with a long tail below a generous limit."""
    g = np.random.default_rng(6)
    limited = g.random(n) < 0.15
    count = np.minimum(g.negative_binomial(0.6, np.where(limited, 0.12, 0.18)), 121)
    schema = Schema((Field("visits", "integer", 0, 121, required=True), Field("limited", "boolean", required=True)))
    return pl.DataFrame({"visits": count, "limited": limited}), schema


TABLES = {"ages": (ages, ("age", "priors"), "stage"), "visits": (visits, ("visits",), "limited")}


def asked(release, numbers, by):
    """Answers, each with the statistic that it is about and the rows in which a group lies."""
    for name in numbers:
        yield release.mean(name, about="table"), name, None
        for label, answer in zip((found := release.mean(name, by=by, about="table")).labels, found, strict=True):
            yield answer, name, label
    for label in STAGES if by == "stage" else ("true",):
        yield release.share({by: label}, about="table"), None, label


def misses(table):
    """Shares of answers that miss the truth and, by three standard errors of theirs, the rows; and how far means are from rows.

    The last is for whole columns, against half the interval.
    """
    make, numbers, by = TABLES[table]
    frame, schema = make()
    truths, rows, apart = [], [], []
    for seed in SEEDS:
        release = covey.PrivateSynthesizer(1.0, 1e-9, schema=schema, seed=seed, certificate_share=0)
        release = release.fit(frame).release(len(frame))
        drawn = release.rows()
        for answer, name, label in asked(release, numbers, by):
            if answer.refused:
                continue
            own, true = (_values(part, name, by, label) for part in (drawn, frame))
            slack = 3 * own.std() / np.sqrt(len(own))
            truths.append(not answer.low - 1e-9 <= true.mean() <= answer.high + 1e-9)
            rows.append(not answer.low - slack <= own.mean() <= answer.high + slack)
            if label is None:
                apart.append(2 * abs(answer.value - own.mean()) / (answer.high - answer.low))
    return np.mean(truths), np.mean(rows), np.mean(apart)


def _values(frame, name, by, label):
    meant = frame[by].cast(str).to_numpy() == label if label else np.ones(len(frame), dtype=bool)
    return meant.astype(float) if name is None else frame[name].to_numpy()[meant].astype(float)


@pytest.mark.parametrize("table", TABLES)
def test_answers_hold_the_truth_and_rows_do_not_contradict_them(table, monkeypatch):
    """Unbiased means alone lie far from the rows; where swaps overshoot, the rows leave what was measured of groups."""
    truths, rows, apart = misses(table)
    assert truths <= 0.08
    assert rows <= 0.03
    assert apart < 0.15
    monkeypatch.setattr(Ties, "room", lambda self, a, xi, xj: len(xi))
    monkeypatch.setattr(Estimate, "around", lambda estimate, value, confidence: estimate)
    _, rows, apart = misses(table)
    assert apart > 0.2
    assert table == "visits" or rows > 0.1


def test_an_impossible_estimate_is_moved_before_its_interval_is_laid_around_it():
    """Cut afterwards, 12 ± 7.5 between 16 and 100 would be 16 to 19.5."""
    none = np.zeros(1)
    estimate = Estimate(np.array([12.0]), np.array([(7.5 / 1.96) ** 2]), none, none, none)
    found = answers(estimate, ["mean"], 0.95, "table", "measured", (16.0, 100.0))[0]
    assert (found.value, found.low) == (16, 16)
    assert abs(found.high - 23.5) < 1e-3


def test_no_group_is_younger_than_as_many_of_the_youngest():
    """The bounds of a group of a tenth; noise on pairs does not move them."""
    frame, schema = ages()
    release = covey.PrivateSynthesizer(8.0, 1e-6, schema=schema, seed=1, certificate_share=0).fit(frame).release(10)
    scores, half = release.columns.number("age")
    moments = release.moments((Feature(0, scores),))
    tenth = Estimate(np.array([0.1]), *(4 * (np.zeros(1),)))
    low, high = answering.possible(moments, half, np.ones(len(scores)), tenth, None)
    ordered, few = np.sort(frame["age"].to_numpy()), len(frame) // 10
    assert ordered[:few].mean() - 1 < low <= ordered[:few].mean() + 0.05
    assert ordered[-few:].mean() - 0.05 <= high < ordered[-few:].mean() + 4
    wider = answering.possible(moments, half, np.ones(len(scores)), tenth, 400)
    assert wider[0] < low
    assert wider[1] > high

"""Numbers at their own precision: ranges of unequal noise, units, and answers in the column's own values."""

import numpy as np
import pytest

import covey
from covey.errors import CannotAnswerError, ParameterError
from covey.release.answers.asking import ask
from covey.tables.fields import Follows
from covey.tables.schema import Field
from tests.entries import schema_of

pytestmark = pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")

SCHEMA = schema_of(
    Field("age", "integer", 0, 110),
    Field("cost", "number", 0, 20_000, decimals=2, required=True),
    Field("ward", "string", enum=("surgery", "medicine", "geriatrics"), required=True),
    Field("old", "boolean", required=True),
)


def table(n=8000, seed=2):
    g = np.random.default_rng(seed)
    age = np.clip(g.normal(50, 18, n), 0, 110).astype(int)
    ward = np.where(age > 70, 2, g.integers(0, 2, n))
    return {
        "age": [None if hole else int(a) for a, hole in zip(age, g.random(n) < 0.05, strict=True)],
        "cost": np.round(np.exp(g.normal(6 + age / 60, 0.6)), 2).clip(0, 20_000),
        "ward": np.array(SCHEMA["ward"].labels)[ward],
        "old": age + g.normal(0, 10, n) > 65,
    }


@pytest.fixture(scope="module")
def released():
    return covey.PrivateSynthesizer(6.0, 1e-6, schema=SCHEMA, seed=4, certificate_share=0).fit(table()).release(100)


def test_answers_are_in_the_columns_own_values(released):
    rows = table()
    age = np.array([np.nan if a is None else a for a in rows["age"]])
    there, cost, geriatrics = ~np.isnan(age), rows["cost"], rows["ward"] == "geriatrics"
    exact = {"about": "table", "confidence": 0.999}
    asked = {
        "share": (released.share({"age": (65, None)}, **exact), (age >= 65).mean()),
        "missing": (released.share({"age": None}, **exact), (~there).mean()),
        "pair": (released.share({"age": (65, None), "ward": "geriatrics"}, **exact), ((age >= 65) & geriatrics).mean()),
        "mean": (released.mean("age", **exact), age[there].mean()),
        "group": (released.mean("age", where={"ward": "geriatrics"}, **exact), age[there & geriatrics].mean()),
        "median": (released.quantile("cost", 0.5, **exact), np.median(cost)),
        "correlation": (released.correlation("age", "old", **exact), np.corrcoef(age[there], rows["old"][there])[0, 1]),
    }
    for name, (answer, truth) in asked.items():
        assert answer.low <= truth <= answer.high, (name, answer, truth)
    assert asked["share"][0].high - asked["share"][0].low < 0.05
    assert asked["mean"][0].high - asked["mean"][0].low < 8
    assert asked["median"][0].high - asked["median"][0].low < 200


def test_groups_of_a_number_are_its_bins(released):
    found = released.mean("old", by="age")
    assert "missing" in found.labels
    assert any(" to " in label for label in found.labels)
    assert found.answers[-1].value > found.answers[1].value


def test_what_numbers_cannot_answer(released):
    with pytest.raises(ParameterError, match="its values lie between 0 and 110"):
        released.share({"age": (111, None)})
    dates = schema_of(
        Field("admitted", "date", "2024-01-01", "2024-12-31", required=True),
        Field("left", "date", "2024-01-01", "2025-03-31", required=True, follows=Follows("admitted")),
        Field("ill", "boolean", required=True),
    )
    days = np.datetime64("2024-01-01") + np.random.default_rng(1).integers(0, 366, 1500)
    rows = {"admitted": days, "left": days + 3, "ill": np.arange(1500) % 2 == 0}
    release = covey.PrivateSynthesizer(3.0, schema=dates, seed=1, certificate_share=0).fit(rows).release(10)
    with pytest.raises(CannotAnswerError, match="distance from 'admitted'"):
        release.share({"left": ("2024-06-01", None)})
    with pytest.raises(ParameterError, match="have no mean"):
        release.mean("admitted")
    with pytest.raises(ParameterError, match=r"no column 'ward'.* Try: "):  # not that 'left' cannot be an example
        ask(release, "share ward=a")
    found = release.share({"admitted": ("2024-07-01", None)}, confidence=0.999)
    assert found.low <= (days >= np.datetime64("2024-07-01")).mean() <= found.high

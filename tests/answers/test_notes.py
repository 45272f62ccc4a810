"""Answers say which values limits moved, which categories are several in one, and why a group has no interval."""

import json
import math

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import covey
from covey.answers.answer import in_library
from covey.answers.columns import NOTICED
from covey.cli import main
from covey.errors import CannotAnswerError, ParameterError
from covey.release.bundle import write_bundle
from covey.release.charts import percent
from covey.table.schema import Field, Schema
from tests.answers.making import categories
from tests.answers.test_release import TABLE, codes

pytestmark = pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")

LIMITED = Schema(
    (
        Field("delay", "integer", 0, 3, bins=4, required=True),
        Field("race", "string", enum=("a", "b"), other="rest", required=True),
        Field("ill", "boolean", required=True),
        Field("age", "integer", 0, 99, bins=10, required=True),
    )
)
MOVED = "values of 'delay' beyond 0 to 3, if any, were moved to these limits, where"


def limited(n=4000, seed=3):
    """Most delays lie at the two limits, a fifth of the races is "rest", and ages are even."""
    g = np.random.default_rng(seed)
    delay = g.choice(4, n, p=[0.4, 0.1, 0.1, 0.4])
    return np.stack(
        [delay, g.choice(3, n, p=[0.5, 0.3, 0.2]), g.random(n) < 0.2 + delay / 8, g.integers(0, 10, n)], axis=1
    )


@pytest.fixture(scope="module")
def release():
    return categories(LIMITED, limited().astype(np.int64))


def test_every_answer_that_rests_on_a_limit_says_so(release):
    share = percent(np.isin(limited()[:, 0], (0, 3)).mean())
    for found in (
        release.mean("delay"),
        release.mean("delay", where={"ill": True}),
        release.correlation("delay", "ill"),
        release.regress("ill ~ delay")[0],
        release.regress("delay ~ ill")[1],
        release.logistic("ill ~ delay")[0],
        release.share({"delay": (0, 3)}),
    ):
        assert found.note == f"{MOVED} {share} of all values lie", found
        assert f"\nnote: {MOVED}" in repr(found)
        assert MOVED.replace("'", "&#x27;") in found._repr_html_() or MOVED in found._repr_html_()
    assert release.mean("delay", by="ill").notes == [f"{MOVED} {share} of all values lie"]


def test_an_answer_that_does_not_rest_on_a_limit_says_nothing(release):
    """What lies beyond a limit belongs to a range that is open there, and inside the limits nothing has moved."""
    for found in (
        release.share({"delay": (3, None)}),
        release.share({"delay": (None, 0)}),
        release.share({"delay": (1, 2)}),
        release.share({"ill": True}),
        release.mean("delay", where={"delay": (1, 2)}),
        release.mean("ill", where={"delay": (2, None)}),
        release.quantile("delay", 0.45),
        release.share({"race": "a"}),
    ):
        assert found.note == "", found
        assert "note" not in repr(found)


def test_one_limit_is_named_where_one_is_meant(release):
    low, high = (percent(np.mean(limited()[:, 0] == limit)) for limit in (0, 3))
    above = f"values of 'delay' above 3, if any, were moved to 3, where {high} of all values lie"
    below = f"values of 'delay' below 0, if any, were moved to 0, where {low} of all values lie"
    assert release.share({"delay": 3}).note == above
    assert release.share({"delay": (1, 3)}).note == above
    assert release.share({"delay": (None, 3)}).note == above
    assert release.share({"delay": 0}, given={"ill": True}).note == below
    assert release.quantile("delay", 0.1).note == below
    assert release.quantile("delay", 0.9, where={"race": "a"}).note == above
    assert release.mean("ill", where={"delay": [0]}).note == below
    grouped = release.mean("ill", by="delay")
    assert [row.note for row in grouped] == [below, "", "", above]
    assert grouped.notes == [f"0: {below}", f"3: {above}"]


def test_bins_at_a_limit_and_learned_limits_are_told_as_such(release):
    assert release.mean("age").note.startswith(
        "values of 'age' beyond 0 to 99, if any, were moved to these limits, in whose bins "
    )
    learned = Schema((Field("delay", "integer", 0, 3, bins=4, required=True, learned=True), *LIMITED.fields[1:]))
    own = categories(learned, limited().astype(np.int64)).mean("delay").note
    assert own.startswith("values of 'delay' beyond 0 to 3 were moved to these limits")


def test_limits_that_are_one_value_hold_every_value_once():
    schema = Schema((Field("delay", "integer", 0, 0, bins=1), *LIMITED.fields[1:]))
    X = limited().astype(np.int64)
    X[:, 0] = np.arange(len(X)) % 2  # 1 is missing
    assert categories(schema, X).mean("delay").note == (
        "values of 'delay' beyond 0 to 0, if any, were moved to these limits, where 100.0% of all values lie"
    )


def test_a_share_at_a_limit_that_nobody_would_notice_is_not_told():
    X = limited().astype(np.int64)
    for held, told in ((0.3 * NOTICED, False), (2 * NOTICED, True)):
        X[:, 0] = 1
        X[: int(held * len(X)), 0] = 3
        found = categories(LIMITED, X)
        assert bool(found.mean("delay").note) is told
        assert found.share({"delay": 3}).note  # a question about the limit itself is all about it
        assert found.share({"delay": 0}).note == ""  # where nothing lies nothing was moved


def test_categories_that_are_several_in_one_are_told(release):
    held = percent(np.mean(limited()[:, 1] == 2))
    merged = f"'rest' of 'race' holds all values that the schema does not list, {held} of the rows"
    assert release.share({"race": "rest"}).note == merged
    assert release.share({"race": ["a", "rest"]}).note == merged
    assert release.share({"ill": True}, given={"race": "rest"}).note == merged
    assert [row.note for row in release.mean("ill", by="race")] == ["", "", merged]
    assert release.regress("ill ~ race")[0].note == merged
    assert release.regress("race=b ~ ill")[0].note == ""
    with pytest.raises(ParameterError, match="Values that are not listed are in 'rest'"):
        release.share({"race": "c"})
    assert merged in release.columns.notes_of_all()


# Groups.


def test_every_group_has_a_row_with_an_interval_or_the_reason():
    """A group that is lost in the noise was dropped without a word."""
    X = codes()
    X[:, 0] = np.where(np.arange(len(X)) < 20, 2, X[:, 0] % 2)
    found = categories(TABLE, X, 25.0, np.random.default_rng(3)).mean("age", by="ward")
    assert found.labels == ("surgery", "medicine", "geriatrics")
    assert [row.refused for row in found] == [False, False, True]
    lost = found["geriatrics"]
    assert math.isnan(lost.value)
    assert "the rows meant by 'ward' are too few: about " in lost.note
    assert "of all, and below 2." in lost.note
    assert lost.question == "mean age in ward=geriatrics"
    line = next(line for line in repr(found).splitlines() if line.startswith("geriatrics"))
    assert line.split()[1:5] == ["–"] * 4
    assert line.endswith(lost.note)
    told = json.loads(json.dumps(found.as_dict(), allow_nan=False))["rows"]
    assert [row["ward"] for row in told] == list(found.labels)
    assert (told[2]["value"], told[2]["low"], told[2]["note"]) == (None, None, lost.note)
    assert f"no answer: {lost.note}".replace("'", "&#x27;") in found._repr_html_().replace("&#39;", "&#x27;")
    for library in ("polars", "pandas", "arrow"):
        frame = found.frame(library)
        values = frame["value"].to_pylist() if library == "arrow" else list(frame["value"])
        assert len(values) == 3
        assert values[2] is None or math.isnan(values[2])
    with pytest.raises(CannotAnswerError, match=r"every group of 'ward' is lost in the noise: the rows meant by"):
        categories(TABLE, X, 90_000.0, np.random.default_rng(3)).mean("age", by="ward")


# Refusals.


def test_a_refusal_names_the_column_at_fault_and_both_numbers():
    """The bins of age keep little and those of delay everything: delay was blamed, with "100%, too little"."""
    X = limited().astype(np.int64)
    g = np.random.default_rng(5)
    X[:, 3] = np.minimum(g.geometric(0.25, len(X)) - 1, 9)
    maps = [np.arange(4), np.arange(3), np.arange(2), np.array([0] * 3 + [1] * 7)]
    coarse = categories(LIMITED, X, maps=maps)
    for ask in (lambda: coarse.correlation("delay", "age"), lambda: coarse.regress("delay ~ age")):
        with pytest.raises(CannotAnswerError) as refused:
            ask()
        said = str(refused.value)
        assert "the bins in which 'age' was measured" in said
        assert "those of 'delay' 100%: together less than the 85% that this needs" in said
    X[:, 0] = 0
    with pytest.raises(CannotAnswerError, match="'delay': what was measured does not vary beyond its noise"):
        categories(LIMITED, X).correlation("delay", "ill")


def test_a_range_that_cuts_a_bin_is_refused_with_its_share(release):
    with pytest.raises(CannotAnswerError, match=r"from 10 to 19, which holds 10% of the rows: .* beyond 5% bounds"):
        release.share({"age": (15, None)})


# Python.


def test_wrong_arguments_are_refused_in_words(release):
    cases = {
        "q must be one number between 0 and 1": lambda: release.quantile("delay", [0.1, 0.5]),
        "conditions are given as": lambda: release.sample(5, where="age>2000"),
        "conditions are given as .*, got 'age>2000'": lambda: release.mean("delay", where="age>2000"),
        "confidence must lie between 0 and 1, got 'high'": lambda: release.mean("delay", confidence="high"),
        "a formula looks like": lambda: release.logistic(7),
        "function must take a frame": lambda: release.interval("delay"),
        "library must be one of polars, pandas, arrow": lambda: release.mean("delay").frame("excel"),
    }
    for words, ask in cases.items():
        with pytest.raises(ParameterError, match=words):
            ask()
    assert [a.value for a in release.logistic("ill ~ delay")] == [
        a.value for a in release.regress("ill ~ delay", "logistic")
    ]
    assert in_library({"a": [1]}, "arrow").column_names == ["a"]


def test_a_path_needs_a_schema(tmp_path):
    for path in ("visits.csv", tmp_path / "visits.csv"):
        with pytest.raises(covey.errors.InputError, match=r"X is the path .*visits.csv', and a file needs a schema"):
            covey.PrivateSynthesizer(1.0).fit(path)


# A learned bundle, the whole way.


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    """A third of the delays lies far beyond the limits, a tenth of the wards is rare, and a column of names is left out."""
    g, n = np.random.default_rng(0), 4000
    rare = [f"rare {k}" for k in range(400)]
    table = pl.DataFrame(
        {
            "delay": np.where(g.random(n) < 0.3, g.integers(2, 2000, n), g.integers(0, 2, n)),
            "ward": g.choice(["a", "b", "c", *rare], n, p=[0.4, 0.3, 0.2] + [0.1 / 400] * 400),
            "name": [f"person {k}" for k in range(n)],
        }
    )
    texts = (Field(name, "string", learn=True) for name in ("ward", "name"))
    schema = Schema((Field("delay", "integer", 0, 1), *texts))
    folder = tmp_path_factory.mktemp("learned")
    table.write_csv(folder / "table.csv")
    synth = covey.PrivateSynthesizer(1.0, 1e-6, schema=schema, seed=1).fit(folder / "table.csv")
    write_bundle(synth.release(500), folder / "bundle")
    return folder


def test_a_learned_bundle_says_what_its_limits_did_wherever_it_is_asked(bundle):
    folder = bundle / "bundle"

    def ask(*words):
        return CliRunner().invoke(main, ["ask", str(folder), *words]).output

    said = "values of 'delay' beyond 0 to 1, if any, were moved to these limits, where 100.0% of all values lie"
    assert f"note: {said}" in ask("mean delay")
    assert said in json.loads(ask("mean delay", "--json"))["note"]
    assert "'other' of 'ward' holds all values" in json.loads(ask("share ward=other", "--json"))["note"]
    assert [row["ward"] for row in json.loads(ask("mean delay by ward", "--json"))["rows"]][:2] == ["a", "b"]
    page = (folder / "report.html").read_text()
    assert "What became coarser" in page
    assert said.replace("'", "&#x27;") in page or said in page or said.replace("'", "&#39;") in page
    assert "'name' was left out of the release: nothing in it stood out of the noise" in ask("share name=x")

"""Answers say which values limits moved, which categories are several in one, and why a group has no interval."""

import html
import json
import math

import numpy as np
import pytest
from click.testing import CliRunner

import covey
from covey.desk.cli import main
from covey.errors import CannotAnswerError, ParameterError
from covey.release.answers.columns import NOTICED
from covey.release.bundle import write_bundle
from covey.release.charts import percent
from covey.tables.schema import Field, Schema
from tests.entries import frame_of, schema_of
from tests.release.answers.making import categories
from tests.release.answers.test_release import TABLE, codes

pytestmark = pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")

LIMITED = schema_of(
    Field("delay", "integer", 0, 3, bins=4, required=True),
    Field("race", "string", enum=("a", "b"), other="rest", required=True),
    Field("ill", "boolean", required=True),
    Field("age", "integer", 0, 99, bins=10, required=True),
)


def limited(n=4000, seed=3):
    """Most delays lie at the two limits, a fifth of the races is "rest", and ages are even."""
    g = np.random.default_rng(seed)
    delay = g.choice(4, n, p=[0.4, 0.1, 0.1, 0.4])
    race, ill = g.choice(3, n, p=[0.5, 0.3, 0.2]), g.random(n) < 0.2 + delay / 8
    return np.stack([delay, race, ill, g.integers(0, 10, n)], axis=1)


X = limited().astype(np.int64)
AT_LOW, AT_HIGH, AT_BOTH = (percent(np.isin(X[:, 0], ends).mean()) for ends in ([0], [3], [0, 3]))
BOTH = f"values of 'delay' beyond 0 to 3, if any, were moved to these limits, where {AT_BOTH} of all values lie"
BELOW = f"values of 'delay' below 0, if any, were moved to 0, where {AT_LOW} of all values lie"
ABOVE = f"values of 'delay' above 3, if any, were moved to 3, where {AT_HIGH} of all values lie"
REST = percent(np.mean(X[:, 1] == 2))
MERGED = f"'rest' of 'race' holds all values that the schema does not list, {REST} of the rows"
# What lies beyond a limit belongs to a range that is open there, and inside the limits nothing has moved.
NOTES = {
    BOTH: [
        lambda r: r.mean("delay"),
        lambda r: r.mean("delay", where={"ill": True}),
        lambda r: r.correlation("delay", "ill"),
        lambda r: r.regress("ill ~ delay")[0],
        lambda r: r.regress("delay ~ ill")[1],
        lambda r: r.logistic("ill ~ delay")[0],
        lambda r: r.share({"delay": (0, 3)}),
    ],
    BELOW: [
        lambda r: r.share({"delay": 0}, given={"ill": True}),
        lambda r: r.quantile("delay", 0.1),
        lambda r: r.mean("ill", where={"delay": [0]}),
    ],
    ABOVE: [
        lambda r: r.share({"delay": 3}),
        lambda r: r.share({"delay": (1, 3)}),
        lambda r: r.share({"delay": (None, 3)}),
        lambda r: r.quantile("delay", 0.9, where={"race": "a"}),
    ],
    MERGED: [
        lambda r: r.share({"race": "rest"}),
        lambda r: r.share({"race": ["a", "rest"]}),
        lambda r: r.share({"ill": True}, given={"race": "rest"}),
        lambda r: r.regress("ill ~ race")[0],
    ],
    "": [
        lambda r: r.share({"delay": (3, None)}),
        lambda r: r.share({"delay": (None, 0)}),
        lambda r: r.share({"delay": (1, 2)}),
        lambda r: r.share({"ill": True}),
        lambda r: r.mean("delay", where={"delay": (1, 2)}),
        lambda r: r.mean("ill", where={"delay": (2, None)}),
        lambda r: r.quantile("delay", 0.45),
        lambda r: r.share({"race": "a"}),
        lambda r: r.regress("race=b ~ ill")[0],
    ],
}


@pytest.fixture(scope="module")
def release():
    return categories(LIMITED, X)


@pytest.mark.parametrize("note", NOTES)
def test_an_answer_that_rests_on_a_limit_or_on_categories_in_one_says_so_and_no_other(release, note):
    for found in (ask(release) for ask in NOTES[note]):
        assert found.note == note, found
        assert ("\nnote: " in repr(found)) == bool(note)
        assert note in html.unescape(found._repr_html_())


def test_groups_say_what_is_to_be_said_of_all_and_of_single_ones(release):
    assert release.mean("delay", by="ill").notes == [BOTH]
    grouped = release.mean("ill", by="delay")
    assert [row.note for row in grouped] == [BELOW, "", "", ABOVE]
    assert grouped.notes == [f"0: {BELOW}", f"3: {ABOVE}"]
    assert [row.note for row in release.mean("ill", by="race")] == ["", "", MERGED]
    assert MERGED in release.columns.notes_of_all()
    with pytest.raises(ParameterError, match="Values that are not listed are in 'rest'"):
        release.share({"race": "c"})


def test_bins_at_a_limit_and_learned_limits_are_told_as_such(release):
    said = "values of 'age' beyond 0 to 99, if any, were moved to these limits, in whose bins "
    assert release.mean("age").note.startswith(said)
    learned = Schema((Field("delay", "integer", 0, 3, bins=4, required=True, learned=True), *LIMITED.fields[1:]))
    own = categories(learned, X).mean("delay").note
    assert own.startswith("values of 'delay' beyond 0 to 3 were moved to these limits")


def test_limits_that_are_one_value_hold_every_value_once():
    schema = Schema((Field("delay", "integer", 0, 0, bins=1), *LIMITED.fields[1:]))
    codes_ = np.column_stack([np.arange(len(X)) % 2, X[:, 1:]])  # 1 is missing
    assert categories(schema, codes_).mean("delay").note == (
        "values of 'delay' beyond 0 to 0, if any, were moved to these limits, where 100.0% of all values lie"
    )


@pytest.mark.parametrize(("held", "told"), [(0.3 * NOTICED, False), (2 * NOTICED, True)])
def test_a_share_at_a_limit_that_nobody_would_notice_is_not_told(held, told):
    found = categories(LIMITED, np.column_stack([np.where(np.arange(len(X)) < held * len(X), 3, 1), X[:, 1:]]))
    assert bool(found.mean("delay").note) is told
    assert found.share({"delay": 3}).note  # a question about the limit itself is all about it
    assert found.share({"delay": 0}).note == ""  # where nothing lies nothing was moved


def test_every_group_has_a_row_with_an_interval_or_the_reason():
    """A group that is lost in the noise was dropped without a word."""
    rows = codes()
    rows[:, 0] = np.where(np.arange(len(rows)) < 20, 2, rows[:, 0] % 2)
    found = categories(TABLE, rows, 25.0, np.random.default_rng(3)).mean("age", by="ward")
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
    assert f"no answer: {lost.note}" in html.unescape(found._repr_html_())
    for library in ("polars", "pandas", "arrow"):
        frame = found.frame(library)
        values = frame["value"].to_pylist() if library == "arrow" else list(frame["value"])
        assert len(values) == 3
        assert values[2] is None or math.isnan(values[2])
    with pytest.raises(CannotAnswerError, match=r"every group of 'ward' is lost in the noise: the rows meant by"):
        categories(TABLE, rows, 90_000.0, np.random.default_rng(3)).mean("age", by="ward")


def test_a_refusal_names_the_column_at_fault_and_both_numbers(release):
    """The bins of age keep little and those of delay everything: delay was blamed, with "100%, too little"."""
    g = np.random.default_rng(5)
    rows = np.column_stack([X[:, :3], np.minimum(g.geometric(0.25, len(X)) - 1, 9)])
    maps = [np.arange(4), np.arange(3), np.arange(2), np.array([0] * 3 + [1] * 7)]
    coarse = categories(LIMITED, rows, maps=maps)
    with pytest.raises(CannotAnswerError) as refused:
        coarse.regress("delay ~ age")
    assert "the bins in which 'age' was measured" in str(refused.value)
    assert "those of 'delay' 100%: together less than the 85% that this needs" in str(refused.value)
    with pytest.raises(CannotAnswerError, match="'delay': what was measured does not vary beyond its noise"):
        categories(LIMITED, rows * [0, 1, 1, 1]).correlation("delay", "ill")
    with pytest.raises(CannotAnswerError, match=r"from 10 to 19, which holds 10% of the rows: .* beyond 5% bounds"):
        release.share({"age": (15, None)})


def test_a_path_needs_a_schema(tmp_path):
    for path in ("visits.csv", tmp_path / "visits.csv"):
        with pytest.raises(covey.errors.InputError, match=r"X is the path .*visits.csv', and a file needs a schema"):
            covey.PrivateSynthesizer(1.0).fit(path)


def test_a_learned_bundle_says_what_its_limits_did_wherever_it_is_asked(tmp_path):
    """A third of the delays lies far beyond the limits, a tenth of the wards is rare, and a column of names is left out."""
    g, n = np.random.default_rng(0), 4000
    rare = [f"rare {k}" for k in range(400)]
    table = frame_of(
        delay=np.where(g.random(n) < 0.3, g.integers(2, 2000, n), g.integers(0, 2, n)),
        ward=g.choice(["a", "b", "c", *rare], n, p=[0.4, 0.3, 0.2] + [0.1 / 400] * 400),
        name=[f"person {k}" for k in range(n)],
    )
    texts = (Field(name, "string", learn=True) for name in ("ward", "name"))
    schema = Schema((Field("delay", "integer", 0, 1), *texts))
    table.write_csv(tmp_path / "table.csv")
    synth = covey.PrivateSynthesizer(1.0, 1e-6, schema=schema, seed=1).fit(tmp_path / "table.csv")
    folder = write_bundle(synth.release(500), tmp_path / "bundle")

    def ask(*words):
        return CliRunner().invoke(main, ["ask", str(folder), *words]).output

    said = "values of 'delay' beyond 0 to 1, if any, were moved to these limits, where 100.0% of all values lie"
    assert f"note: {said}" in ask("mean delay")
    assert said in json.loads(ask("mean delay", "--json"))["note"]
    assert "'other' of 'ward' holds all values" in json.loads(ask("share ward=other", "--json"))["note"]
    assert [row["ward"] for row in json.loads(ask("mean delay by ward", "--json"))["rows"]][:2] == ["a", "b"]
    page = html.unescape((folder / "report.html").read_text())
    assert "What became coarser" in page
    assert said in page
    assert "'name' was left out of the release: nothing in it stood out of the noise" in ask("share name=x")

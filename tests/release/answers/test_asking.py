"""Questions in words, and the command line that takes them; a bundle is loaded, asked, and its tables written."""

import csv
import json
import shlex
import shutil
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest

import covey
from covey.errors import CannotAnswerError, InputError, ParameterError
from covey.release import bundle as module
from covey.release.answers.asking import ask, conditions
from covey.release.answers.tables import write_tables
from covey.release.bundle import write_bundle
from covey.tables.schema import Field, Relation, Schema
from tests.commands import run
from tests.release.answers.making import categories
from tests.release.answers.test_release import TABLE, codes

pytestmark = pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")


@pytest.fixture(scope="module")
def release():
    return categories(TABLE, codes())


@pytest.mark.parametrize(
    ("question", "same"),
    [
        ("share ward=surgery", lambda r: r.share({"ward": "surgery"})),
        ("share ward=surgery,medicine age>=3", lambda r: r.share({"ward": ["surgery", "medicine"], "age": (3, None)})),
        ("share old=true given ward = surgery", lambda r: r.share({"old": True}, given={"ward": "surgery"})),
        ("share age>4", lambda r: r.share({"age": (5, None)})),
        ("share age>=3 age <= 6", lambda r: r.share({"age": (3, 6)})),
        ("share age<4.5", lambda r: r.share({"age": (None, 4)})),
        ("share age=missing", lambda r: r.share({"age": None})),
        ("mean age where ward=surgery", lambda r: r.mean("age", where={"ward": "surgery"})),
        ("mean age by ward", lambda r: r.mean("age", by="ward")),
        ("median age", lambda r: r.quantile("age", 0.5)),
        ("quantile 0.9 age where ward=surgery", lambda r: r.quantile("age", 0.9, {"ward": "surgery"})),
        ("quantile age 90% where ward=surgery", lambda r: r.quantile("age", 0.9, {"ward": "surgery"})),
        ("mean of age where ward=surgery", lambda r: r.mean("age", where={"ward": "surgery"})),
        ("share ward=surgery and age>4", lambda r: r.share({"ward": "surgery", "age": (5, None)})),
        ("correlation age old", lambda r: r.correlation("age", "old")),
        ("regress old ~ ward + sex", lambda r: r.regress("old ~ ward + sex")),
        ("logistic old ~ ward + sex", lambda r: r.regress("old ~ ward + sex", "logistic")),
        ("What is the average age of women?", lambda r: r.mean("age", where={"sex": "f"})),
        ("90th percentile of age in surgery", lambda r: r.quantile("age", 0.9, {"ward": "surgery"})),
        ("percentile 90 age", lambda r: r.quantile("age", 0.9)),
        ("proportion of women older than 4", lambda r: r.share({"sex": "f", "age": (5, None)})),
        ("share of men among surgery", lambda r: r.share({"sex": "m"}, given={"ward": "surgery"})),
        ("share age between 3 and 6", lambda r: r.share({"age": (3, 6)})),
        ("correlation between age and old", lambda r: r.correlation("age", "old")),
        ("share old=1 by ward", lambda r: [r.share({"old": True}, {"ward": w}) for w in TABLE["ward"].labels]),
        ("share by ward", lambda r: [r.share({"ward": w}) for w in TABLE["ward"].labels]),
    ],
)
def test_a_question_in_words_is_the_same_as_a_call(release, question, same):
    found, wanted = release.ask(question), same(release)
    if isinstance(wanted, covey.release.answers.answer.Answer):
        found, wanted = [found], [wanted]
    assert [(a.value, a.low, a.high) for a in found] == [(a.value, a.low, a.high) for a in wanted]


def test_confidence_and_what_an_answer_is_about_are_passed_on(release):
    asked = release.ask("share old=true", confidence=0.5, about="table")
    assert asked == release.share({"old": True}, confidence=0.5, about="table") != release.ask("share old=true")


def test_counts_differences_and_the_largest_groups_follow_from_shares_and_means():
    """The noise is real here. A difference without half of the error, or tops without all groups' error, would be shorter."""
    found = categories(TABLE, codes(), sd=20.0, generator=np.random.default_rng(1))
    n, table = found.privacy.n, {"about": "table"}
    share, count = found.share({"sex": "f"}, **table), ask(found, "how many women are there?")
    assert [count.value, count.low, count.high] == pytest.approx([n * x for x in (share.value, share.low, share.high)])
    each = [found.mean("age", where={"sex": s}, confidence=0.975) for s in "fm"]
    for words in ("difference in average age between women and men", "difference mean age by sex"):
        gap = ask(found, words)
        assert gap.value == pytest.approx(each[0].value - each[1].value)
        assert (gap.low, gap.high) == pytest.approx((each[0].low - each[1].high, each[0].high - each[1].low))
        assert gap.confidence == 0.95
    wide = found.share({}, by="ward", confidence=1 - 0.05 / 3)
    best = sorted(wide, key=lambda one: -one.value)[:2]
    assert [(a.value, a.low, a.high) for a in ask(found, "top 2 ward")] == [(a.value, a.low, a.high) for a in best]
    means = [one.value for one in ask(found, "top 3 ward by age")]
    assert means == sorted(means, reverse=True)


@pytest.mark.parametrize("question", ["relations", "Which relations hold?", "show me the rules"])
def test_relations_that_were_found_are_listed_with_the_rows_that_break_them(question):
    told = (
        Relation("old is age over 5", "expected", ("old",), 0.004, 0.0025, 0.009, 80),
        Relation("x", "rule", (), -0.001, 0.002, 0.007, 80),
    )
    found = categories(replace(TABLE, relations=told), codes())
    one, other = ask(found, question, about="table")
    assert ask(found, question).labels == (
        "old is age over 5: 0.0% to 1.3% of rows differ",
        "x: 0.0% to 0.7% of rows differ",
    )
    assert (one.value, one.low, one.se, one.confidence) == pytest.approx((0.004, 0, 0.0025, 0.95))
    # One of 80 that were counted was kept for its small count: its interval is that of all of them.
    assert one.high > 0.004 + NormalDist().inv_cdf(1 - 0.025 / 80) * 0.0025
    assert ask(found, question, about="table", confidence=0.5)[0].high < one.high
    assert (other.value, other.low) == (0, 0)
    assert ask(found, question)[0].se == pytest.approx(np.hypot(0.0025, np.sqrt(0.004 * 0.996 / 4000)))
    with pytest.raises(CannotAnswerError, match="found no relations"):
        ask(categories(TABLE, codes()), question)
    with pytest.raises(ParameterError, match="takes no columns"):
        ask(found, "relations age")


def test_counts_by_groups_are_of_those_who_meet_the_conditions_and_are_in_the_group(folder):
    """The share within a group times the number of all rows is more than the group has; the noise is that of the joint cells."""
    X, generator = codes(), np.random.default_rng(1)
    found, n = categories(TABLE, X, sd=20.0, generator=generator), len(X)
    older = [int(np.sum((X[:, 0] == k) & (X[:, 1] > 4) & (X[:, 1] < 10))) for k in range(3)]
    rows = ask(found, "count age>4 by ward")
    for words, answer, true in zip(TABLE["ward"].labels, rows, older, strict=True):
        joint = found.share({"age": (5, None), "ward": words}, about="table")
        assert [answer.value, answer.low, answer.high, answer.se] == pytest.approx(
            [n * x for x in (joint.value, joint.low, joint.high, joint.se)]
        )
        assert answer.low <= true <= answer.high
        assert answer.question == f"count age>=5 in ward={words}"
        assert (answer.about, answer.note) == ("table", "")
    assert [one.value for one in ask(found, "count age>4 by age")][:5] == [0] * 5
    assert [one.value for one in found.count({}, "ward")] == [one.value for one in ask(found, "count by ward")]
    assert [one.value for one in ask(found, "share age>4 by age")][4:6] == [0, 1]
    said = json.loads(run(f"ask {folder} 'count old=true by ward' --json --confidence 0.99999").stdout)["rows"]
    held = codes(3000)
    for k, row in enumerate(said):
        assert row["low"] <= np.sum((held[:, 0] == k) & (held[:, 3] == 1)) <= row["high"]


def test_a_trend_goes_by_the_column_of_dates():
    dates = Field("admitted", "date", "2024-01-01", "2024-12-30", bins=5, required=True)
    schema = Schema((dates, Field("age", "integer", 0, 9, bins=10, required=True)))
    found = categories(schema, np.random.default_rng(0).integers(0, (5, 10), (2000, 2)))
    for words in ("trend age by month", "trend of age", "mean age by admitted"):
        assert [one.value for one in ask(found, words)] == [one.value for one in found.mean("age", by="admitted")]
    assert len(ask(found, "trend")) == 5
    with pytest.raises(ParameterError, match=r"the table has none\. Try: "):
        ask(categories(TABLE, codes()), "trend age by month")


@pytest.mark.parametrize(
    ("question", "near"),
    [
        ("hello", "mean age by ward"),
        ("meen age", "mean age by ward"),
        ("what about surgery", "share ward=surgery"),
        ("share ward=surgery sex=f old=true", "share ward=surgery sex=f"),
        ("average age of women in surgery", "mean age where sex=f"),
        ("share wrad=surgery", "share ward=surgery"),
    ],
)
def test_a_refusal_shows_the_nearest_question_that_works(release, question, near):
    with pytest.raises(ParameterError) as refused:
        ask(release, question)
    said = str(refused.value).rpartition("Try: ")[2]
    assert said == near
    assert ask(release, said)


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("shares ward=surgery", "Did you mean 'share'"),
        ("share ward", "is no condition"),
        ("share", "what is asked for is missing"),
        ("share ward=surgery where sex=f", "more of them after given"),
        ("share ward>surgery", "not ordered"),
        ("share age>missing", "missing is no value"),
        ("share ward=surgery ward=medicine", "categories with commas"),
        ("share ward='surgery", "quotation mark"),
        ("mean age by", "nothing follows 'by'"),
        ("mean age by ward by sex", "stands twice"),
        ("mean age ward", "takes one column"),
        ("mean age given sex=f", "after where"),
        ("quantile age", "takes a level between 0 and 1"),
        ("correlation age", "takes two columns"),
        ("share age>=x", "'x' is none"),
    ],
)
def test_a_question_that_cannot_be_read_says_why(release, question, words):
    with pytest.raises(ParameterError, match=words):
        ask(release, question)


def test_beyond_the_first_and_the_last_value_there_is_nothing_to_ask_about():
    """The time before midnight has no name, and was asked for its name."""
    day = Schema((Field("clock", "time", "00:00:00", "23:59:59", bins=24, required=True),))
    release = categories(day, np.arange(240)[:, None] % 24)
    for question in ("share clock<00:00", "share clock>23:59:59"):
        with pytest.raises(ParameterError, match="lie between 00:00:00 and 23:59:59"):
            ask(release, question)
    halves = [ask(release, f"share clock{half}").value for half in (">11:59:59", "<12:00")]
    assert halves == pytest.approx([0.5, 0.5])


def test_names_and_labels_with_spaces_and_signs():
    group = Field("blood group", "string", enum=("A, B", "0"), required=True)
    schema = Schema((group, Field("x=y", "boolean", required=True)))
    release = categories(schema, np.array([[0, 0], [1, 1], [1, 0], [0, 1]] * 50))
    assert conditions(release.columns, ["blood group=A, B"]) == {"blood group": "A, B"}
    assert ask(release, "share 'blood group=A, B'").value == pytest.approx(0.5)
    assert ask(release, "share x=y=true").value == pytest.approx(0.5)
    assert [a.value for a in release.regress("`x=y` ~ `blood group`")] == pytest.approx([0.5, 0.0])


@pytest.mark.parametrize("name", ["x>1", "<b>", "a  b", "a\nb", "a=b"])
def test_a_name_that_looks_like_a_condition_or_has_other_blanks_is_a_name(name):
    group = Field(name, "string", enum=("u", "v"), required=True)
    release = categories(Schema((Field("old", "boolean", required=True), group)), np.array([[0, 0], [1, 1]] * 50))
    quoted = shlex.quote(name)
    assert [one.value for one in ask(release, f"share old=true by {quoted}")] == pytest.approx([0.0, 1.0])
    assert [one.value for one in ask(release, f"top 2 {quoted}")] == pytest.approx([0.5, 0.5])
    assert ask(release, f"share {shlex.quote(name + '=u')}").value == pytest.approx(0.5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A bundle of wards, ages, sexes and flags; 3,000 rows at ε = 4."""
    X = codes(3000)
    labels = [np.array(f.labels) if f.enum else None for f in TABLE.fields]
    table = {f.name: labels[j][X[:, j]] if f.enum else X[:, j] for j, f in enumerate(TABLE.fields)}
    table["age"] = [None if v == 10 else int(v) for v in X[:, 1]]
    place = tmp_path_factory.mktemp("asked") / "bundle"
    return write_bundle(covey.PrivateSynthesizer(4.0, 1e-6, schema=TABLE).fit(table).release(400), place)


def test_a_bundle_is_loaded_without_true_data_and_gives_what_the_synthesizer_gave(folder, tmp_path):
    release = covey.load(folder)
    assert repr(release).startswith("Release(400 synthetic rows, 4 columns; (ε, δ)-DP")
    assert release.rows().shape == release.rows("pandas").shape == (400, 4)
    assert release.rows("arrow").num_rows == 400
    assert release.rows()["age"].null_count() > 0
    again = write_bundle(release, tmp_path / "again")  # a loaded release is as whole as a fresh one
    for name in ("privacy.json", "certificate.json", "schema.json", "measurements.json", "synthetic.csv", "README.md"):
        assert (again / name).read_text() == (folder / name).read_text(), name
    assert repr(covey.load(again).share({"ward": "surgery"})) == repr(release.share({"ward": "surgery"}))


def test_the_command_line_answers_in_words_and_in_json(folder):
    words = run(f"ask {folder} 'share ward=surgery'")
    assert words.exit_code == 0, words.stderr
    assert words.stdout == repr(covey.load(folder).share({"ward": "surgery"})) + "\n"
    said = json.loads(run(f"ask {folder} share ward=surgery --json --about table --confidence 0.9").stdout)
    assert (said["about"], said["confidence"]) == ("table", 0.9)
    assert said["low"] < said["value"] < said["high"]
    rows = json.loads(run(f"ask {folder} 'regress old ~ ward + sex' --json").stdout)["rows"]
    assert rows[0]["term"] == "(constant)"
    assert {"value", "low", "high", "se", "confidence", "about", "method"} < set(rows[0])


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("ask {folder} 'share wrad=surgery'", 2, "Did you mean 'ward'"),
        ("ask {folder} 'share ward=surgery sex=f old=true'", 2, "3 columns at once"),
        ("ask {folder} 'share ward=surgery' --confidence 2", 2, "confidence must lie between 0 and 1"),
        ("ask {folder}/nowhere 'share ward=surgery'", 3, "there is no folder"),
        ("tables {folder} -o {folder}/tables", 2, "is inside a bundle"),
    ],
)
def test_refusals_have_their_exit_codes(folder, line, code, words):
    found = run(line.replace("{folder}", str(folder)))
    assert found.exit_code == code
    assert words in found.stderr


def test_a_changed_an_anonymous_and_an_older_bundle_are_refused(folder, tmp_path):
    changed = shutil.copytree(folder, tmp_path / "changed")
    (changed / "measurements.npz").write_bytes(b"x")
    with pytest.raises(InputError, match=r"measurements\.npz was changed"):
        covey.load(changed)
    older = shutil.copytree(folder, tmp_path / "older")
    for name in ("measurements.npz", "measurements.json", "SHA256SUMS"):
        (older / name).unlink()
    module._write_sums(older)
    with pytest.raises(CannotAnswerError, match="keeps no measurements"):
        covey.load(older).share({"ward": "surgery"})
    assert covey.load(older).sample(3).shape == (3, 4)
    table = {"a": np.arange(60) % 2, "b": np.arange(60) % 3 % 2}
    schema = Schema((Field("a", "boolean", required=True), Field("b", "boolean", required=True)))
    averaged = covey.AnonymousSynthesizer(10, schema=schema).fit(table)
    anonymous = write_bundle(averaged.release(20), tmp_path / "anonymous")
    with pytest.raises(InputError, match="averages of groups of 10 records"):
        covey.load(anonymous)


def read(path):
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def test_tables_are_written_with_their_noise(folder, tmp_path):
    assert run(f"tables {folder} -o {tmp_path}/tables").exit_code == 0
    columns, pairs = (read(tmp_path / "tables" / name) for name in ("columns.csv", "pairs.csv"))
    wards = [row for row in columns if row["column"] == "ward"]
    assert [row["category"] for row in wards] == ["surgery", "medicine", "geriatrics"]
    assert sum(float(row["count"]) for row in wards) == pytest.approx(3000, abs=0.1)
    both = [r for r in pairs if (r["column_a"], r["column_b"]) == ("ward", "sex")]
    assert len(both) == 6
    found = covey.load(folder).share({"ward": "surgery", "sex": "f"}, about="table")
    told = [3000 * found.value, 3000 * found.se]
    assert [float(both[0][name]) for name in ("count", "sd")] == pytest.approx(told, rel=1e-4)
    assert run(f"tables {folder} -o {tmp_path}/tables").exit_code == 2
    risky = Schema((Field("=x", "string", enum=("@SUM(A1)", "-1"), required=True),))
    (columns,) = write_tables(categories(risky, codes()[:, 2:3]), tmp_path / "risky")
    assert [(row["column"], row["category"]) for row in read(columns)] == [("'=x", "'@SUM(A1)"), ("'=x", "-1")]

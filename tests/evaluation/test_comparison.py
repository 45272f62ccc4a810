"""covey evaluate: right, watermarked, and never inside a bundle."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

import covey
from covey.errors import MissingExtraError, ParameterError
from covey.evaluation import comparison as evaluation
from covey.evaluation.changed import Changes
from covey.evaluation.comparison import (
    Comparison,
    compare,
    contradiction_section,
    contradictions,
    covariance_difference,
    evaluate,
    evaluation_html,
    evaluation_words,
    learn,
    once_a_person,
    prediction,
    share_compared,
    total_variation,
    worst_cells,
    write_confidential,
)
from covey.paper import covariance_loss
from covey.release.bundle import write_bundle
from covey.release.numbers import number_figures, quantile_tables
from covey.release.page import lines
from covey.release.places import refuse_in_bundle
from covey.release.summary import describe
from covey.tables.codec import Codec
from covey.tables.columns import Words
from covey.tables.dialects import Dialect
from covey.tables.schema import Field, Schema
from covey.tables.sources import read_table
from tests.commands import run
from tests.entries import frame_of, schema_of
from tests.release.pages import check_page, table_named

pytestmark = pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")


@pytest.fixture(scope="module")
def desk(visits, averaged):
    write_bundle(averaged.release(500), visits[0].parent / "bundle")
    return visits[0].parent


@pytest.fixture(scope="module")
def rows(desk):
    return compare(desk / "visits.csv", desk / "bundle")


@pytest.fixture(scope="module")
def figures(rows):
    return evaluate(rows)


def test_the_real_table_is_read_as_its_schema_says(desk, visits, figures):
    german, schema = desk / "german.csv", desk / "german.json"
    german.write_text((desk / "visits.csv").read_text(encoding="utf-8").replace(",", ";").replace(".", ","))
    visits[1].read_as(Dialect(";", ",")).save(schema)
    told = run("evaluate", german, desk / "bundle", "--schema", schema, "--json").output
    assert json.loads(told)["columns"] == figures["columns"]


def test_the_page_is_watermarked_and_has_true_beside_synthetic(rows, figures):
    assert repr(rows) == "Comparison(1500 real and 500 synthetic rows)"  # and nothing of them
    page = check_page(evaluation_html(rows, figures))
    assert page.all("title")[0]["text"].startswith("confidential: computed on real data")
    assert page.text.startswith("Skip to the reportconfidential: computed on real data")
    assert page.all("body")[0]["attrs"]["class"] == "confidential"  # which the style sheet draws across every sheet
    wards = {a: (t, s) for a, _, t, s in table_named(page, "Shares of ward")}
    codes = rows.codec.names.index("ward")
    label = rows.codec.schema["ward"].labels[0]
    true, synthetic = (float(np.mean(c[:, codes] == 0)) for c in (rows.true, rows.synthetic))
    assert wards[label] == (f"{100 * true:.1f}%", f"{100 * synthetic:.1f}%")
    titles = ["In short", "Numbers in their own units", "Column by column", "Pair by pair"]
    assert [h["text"] for h in page.all("h2")] == [*titles, "Train on synthetic, test on real"]
    assert table_named(page, "The worst pairs")[0][0] == " × ".join(figures["worst_pairs"][0][:2])


def test_names_on_the_confidential_page_are_escaped():
    hostile = "<script>alert(1)</script>"
    schema = Schema(tuple(Field(f"{hostile}{i}", "string", enum=(hostile, "b")) for i in range(3)))
    codec = Codec(schema)
    codes = np.random.default_rng(0).integers(0, 2, (80, 3))
    rows = Comparison(codec, codes, codes[::-1], {"guarantee": hostile})
    assert hostile in check_page(evaluation_html(rows, evaluate(rows))).text


def test_covariance_agrees_with_numpy_and_with_the_loss_of_a_partition():
    generator = np.random.default_rng(3)
    X, Z = generator.integers(0, 2, (400, 5)), generator.integers(0, 2, (300, 5))
    found = covariance_difference(X, Z, [2] * 5)
    # A flag has two indicators, x and 1 − x: every entry occurs four times, up to sign.
    expected = 2 * np.linalg.norm(np.cov(X.T, ddof=0) - np.cov(Z.T, ddof=0))
    assert found["loss"] == pytest.approx(expected)
    labels = np.arange(400) // 40
    means = np.stack([X[labels == g].mean(axis=0) for g in range(10)])[labels]
    assert np.linalg.norm(np.cov(X.T, ddof=0) - np.cov(means.T, ddof=0)) == pytest.approx(covariance_loss(X, labels))
    assert covariance_difference(X, Z, [2000]) is None


def test_large_and_small_tables_are_counted_alike():
    assert total_variation(np.array([[0], [0], [1], [1]]), np.array([[0], [1], [1], [1]]), [2], (0,)) == 0.25
    generator = np.random.default_rng(1)
    X, Z = generator.integers(0, 3, (500, 4)), generator.integers(0, 3, (700, 4))
    for subset in ((0,), (1, 3), (0, 1, 2, 3)):
        assert total_variation(X, Z, [3] * 4, subset) == pytest.approx(total_variation(X, Z, [60] * 4, subset))


def test_wide_tables_compare_a_sample_of_tables_and_say_so():
    codec = Codec(Schema(tuple(Field(f"f{i}", "boolean", required=True) for i in range(120))))
    codes = np.random.default_rng(0).integers(0, 2, (50, 120))
    rows = Comparison(codec, codes, codes[::-1], {"guarantee": "none"})
    figures = evaluate(rows)
    assert figures["tables_compared"] == {"1": [120, 120], "2": [1000, 7140], "3": [1000, 280840]}
    page = check_page(evaluation_html(rows, figures))
    assert "The worst pairs are the worst of 1,000 of 7,140 tables" in page.text
    assert "36 worst of 120 columns" in page.text
    assert "averaged over 1,000 of 7,140 tables, chosen at random" in "\n".join(evaluation_words(figures))
    pairs = [frozenset(pair[:2]) for pair in figures["worst_pairs"]]
    assert len(pairs) == len(set(pairs)) == evaluation.WORST


def test_worst_cells_are_the_worst(rows):
    columns = describe(rows.codec)
    cells = worst_cells(rows, columns, 1, 2)
    points = [abs(float(cell[3].replace("−", "-").replace("+", "").removesuffix(" points"))) for cell in cells]
    assert points == sorted(points, reverse=True)
    assert cells[0][0].startswith("ward = ")


def test_a_classifier_learns_what_is_there_and_nothing_else():
    generator = np.random.default_rng(2)
    X = generator.integers(0, 3, (3000, 3))
    copied = np.column_stack([X, X[:, 0]])
    good = learn(copied[:1500], copied[1500:], 3, [3] * 4)
    assert good["accuracy"] == 1
    assert good["auc"] == pytest.approx(1)
    blind = learn(copied[:1500], copied[1500:], 2, [3] * 4)
    assert blind["auc"] == pytest.approx(0.5, abs=0.05)
    broken = copied[:1500].copy()
    broken[:, 3] = generator.permutation(broken[:, 3])  # synthetic rows that lost the association
    assert learn(broken, copied[1500:], 3, [3] * 4)["auc"] < 0.75
    constant = copied[:1500].copy()
    constant[:, 3] = 1
    assert learn(constant, copied[1500:], 3, [3] * 4) == {"accuracy": pytest.approx(1 / 3, abs=0.05), "auc": 0.5}


def test_fields_to_predict_are_named_or_found(rows, figures):
    assert [entry["target"] for entry in figures["prediction"]] == ["insurance", "emergency", "readmitted"]
    named = evaluate(rows, ["age"])["prediction"]
    assert [entry["target"] for entry in named] == ["age"]
    with pytest.raises(ParameterError, match="martian"):
        evaluate(rows, ["martian"])
    assert prediction([]) == []


def test_without_the_extra_the_rest_is_evaluated_and_a_wish_is_refused(rows, monkeypatch, desk):
    monkeypatch.setattr(evaluation, "has_learner", lambda: False)
    figures = evaluate(rows)
    assert figures["prediction"] is None
    assert "covey[evaluate]" in check_page(evaluation_html(rows, figures)).text
    with pytest.raises(MissingExtraError, match=r"covey\[evaluate\]"):
        evaluate(rows, ["ward"])
    result = run(f"evaluate {desk / 'nowhere.csv'} {desk / 'bundle'} --target ward")
    assert result.exit_code == 2  # before the table is opened
    assert "covey[evaluate]" in run(f"evaluate {desk / 'visits.csv'} {desk / 'bundle'}").stdout


def test_confidential_files_never_enter_a_bundle(desk, tmp_path):
    inside = desk / "bundle" / "sub"
    link, file = tmp_path / "link", tmp_path / "file.html"
    link.symlink_to(desk / "bundle")
    file.symlink_to(desk / "bundle" / "report.html")
    for path in (desk / "bundle" / "e.html", inside / "e.html", link / "e.html", link / "sub" / "e.html", file):
        with pytest.raises(ParameterError, match="inside a bundle"):
            refuse_in_bundle(path)
        with pytest.raises(ParameterError, match="inside a bundle"):
            write_confidential(path, "secret")
        line = f"evaluate {desk / 'visits.csv'} {desk / 'bundle'} --report {path} --force"
        assert run(line).exit_code == 2
    assert "secret" not in (desk / "bundle" / "report.html").read_text()
    assert run(f"verify {desk / 'bundle'}").exit_code == 0


def test_the_command_writes_page_and_figures_for_their_owner_alone(desk, tmp_path):
    line = f"evaluate {desk / 'visits.csv'} {desk / 'bundle'} --report {tmp_path / 'e.html'} -o {tmp_path / 'e.json'}"
    result = run(f"{line} --target ward")
    assert result.exit_code == 0, result.output
    assert "CONFIDENTIAL" in result.stdout
    assert "AUC for ward" in result.stdout
    check_page((tmp_path / "e.html").read_text())
    assert json.loads((tmp_path / "e.json").read_text())["watermark"] == "confidential: computed on real data"
    for name in ("e.html", "e.json"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    assert run(line).exit_code == 2
    assert run(f"{line} --force").exit_code == 0
    table = Path(desk / "visits.csv")
    assert run(f"evaluate {table} {desk / 'bundle'} --report {table} --force").exit_code == 2
    same = f"--report {tmp_path / 'x'} -o {tmp_path / 'x'}"
    assert run(f"evaluate {table} {desk / 'bundle'} {same}").exit_code == 2
    assert run(f"evaluate {table} {desk / 'bundle'} --target martian").exit_code == 2


def test_no_table_is_compared_twice_and_the_share_is_told():
    """A sample with repetition would have the same pair among the worst twice."""
    for degree in (2, 3):
        chosen = evaluation.subsets_of(60, degree)
        assert len(chosen) == len(set(chosen)) == evaluation.TABLES
        assert all(len(set(subset)) == degree and list(subset) == sorted(subset) for subset in chosen)
    assert len(evaluation.subsets_of(45, 2)) == 990
    assert share_compared({"tables_compared": {"1": [60, 60]}}, "1") == "all 60 tables"


INCOMES = schema_of(
    Field("income", "number", 0, 10**7, decimals=0, special=("refused",)),
    Field("age", "integer", 0, 120, required=True),
    Field("came", "date", "2020-01-01", "2029-12-31"),
    Field("ward", "string", enum=("A", "B", "C"), required=True),
)


def table(n, seed, shift=0):
    """Skewed incomes with zeros and refusals, ages that go with them, days, wards that go with ages."""
    g = np.random.default_rng(seed)
    income = np.where(g.random(n) < 0.2, 0, np.exp(g.normal(9, 1, n)).round()).astype(int) + shift
    age = np.clip(20 + np.log1p(income) * 4 + g.normal(0, 5, n), 0, 120).astype(int)
    days = (np.datetime64("2021-03-01") + g.integers(0, 900, n)).astype(str)
    return {
        "income": ["refused" if g.random() < 0.1 else str(x) for x in income],
        "age": [str(a) for a in age],
        "came": ["" if g.random() < 0.05 else day for day in days],
        "ward": ["ABC"[min(2, a // 30)] for a in age],
    }


def compared(true, synthetic):
    codec = Codec(INCOMES)
    return Comparison(codec, *(codec.encode(t, "cells")[0] for t in (true, synthetic)), {"guarantee": "none"})


@pytest.fixture(scope="module")
def incomes():
    return compared(table(900, 0), table(700, 1))


def values(given, name):
    return np.array([float(x) for x in given[name] if x not in ("", "refused")])


def test_figures_agree_with_other_libraries(incomes):
    found = number_figures(incomes.codec, incomes.cells)
    true, synthetic = (values(t, "income") for t in (table(900, 0), table(700, 1)))
    own, days = found["columns"]["income"], found["columns"]["came"]
    assert days["median"][0].startswith("202")
    assert days["common"][0][0].startswith("202")
    assert own["mean"] == pytest.approx([true.mean(), synthetic.mean()])
    assert own["sd"] == pytest.approx([true.std(), synthetic.std()])
    assert own["median"] == pytest.approx([np.median(true), np.median(synthetic)])
    assert own["quantiles"]["0.9"] == pytest.approx([np.quantile(true, 0.9), np.quantile(synthetic, 0.9)])
    assert own["kolmogorov"] == pytest.approx(stats.ks_2samp(true, synthetic).statistic)
    assert own["without_value"] == pytest.approx([1 - len(true) / 900, 1 - len(synthetic) / 700])
    zero = own["common"][0]
    assert zero == (0.0, pytest.approx((true == 0).sum() / 900), pytest.approx((synthetic == 0).sum() / 700))
    assert len(own["common"]) == 10
    pairs = {(a, b): (x, y) for a, b, x, y in found["rank_correlations"]}
    both = zip(*(table(900, 0)[k] for k in ("income", "age")), strict=True)
    both = [(float(i), float(a)) for i, a in both if i != "refused"]
    assert pairs["income", "age"][0] == pytest.approx(stats.spearmanr(both).statistic, abs=0.01)
    means = {(n, f, label): (x, y) for n, f, label, x, y, _ in found["group_means"]}
    ages = [float(a) for a, w in zip(*(table(900, 0)[k] for k in ("age", "ward")), strict=True) if w == "B"]
    assert means["age", "ward", "B"][0] == pytest.approx(np.mean(ages))


def test_a_median_that_is_far_off_is_the_first_line():
    """What bins of equal width do to incomes: the figures of tables look well, and the median is gone."""
    true, synthetic = table(900, 0), table(900, 0, shift=40_000)
    rows = compared(true, synthetic)
    figures = evaluate(rows)
    off = total_variation(rows.true, rows.synthetic, rows.codec.domain_sizes, (0,))
    assert off < 0.01  # twenty bins of equal width
    assert figures["columns"]["income"] > 0.5
    words = evaluation_words(figures)[1:]
    assert words[0].startswith("FAR OFF: the median of income is 4")
    assert "standard deviations off" in words[0]
    page = check_page(evaluation_html(rows, figures))
    assert "Far off: the median of income is" in page.text
    assert table_named(page, "Numbers and dates")[0][0] == "income"


def test_equal_tables_raise_no_alarm_and_are_not_apart(incomes):
    figures = evaluate(Comparison(incomes.codec, incomes.cells[0], incomes.cells[0], incomes.bundle))
    assert set(figures["total_variation"].values()) == {0.0}
    assert figures["covariance"]["loss"] == pytest.approx(0, abs=1e-12)
    assert all(value > 0 for value in figures["total_variation_of_resampled_true_rows"].values())
    assert figures["numbers"]["alarms"] == []
    for own in figures["numbers"]["columns"].values():
        assert own["kolmogorov"] == own["wasserstein_over_range"] == own["common_off"] == own["median_off"] == 0
    assert all(x == y for *_, x, y in figures["numbers"]["rank_correlations"])
    assert all(off == 0 for *_, off in figures["numbers"]["group_means"])


def test_a_column_without_values_in_one_table_is_an_alarm():
    true = table(60, 0)
    without = true | {"came": [""] * 60}
    pairs = compared(true, without), compared(without, without)
    alarms = [number_figures(rows.codec, rows.cells)["alarms"] for rows in pairs]
    assert alarms == [["came has values in only one of the two tables"], []]


def test_bins_of_true_quantiles_hold_a_twentieth_each_and_point_masses_stay_whole(incomes):
    true, synthetic, sizes = quantile_tables(incomes.codec, (incomes.true, incomes.synthetic), incomes.cells)
    assert (true < sizes).all()
    assert (synthetic < sizes).all()
    share = np.bincount(true[:, 1], minlength=sizes[1]) / len(true)
    assert share.max() < 0.12
    zeros = incomes.cells[0][:, 0] == 0
    assert len(np.unique(true[zeros, 0])) == 1
    refused = np.array(table(900, 0)["income"]) == "refused"
    assert (true[refused, 0] == sizes[0] - 2).all()
    assert (true[~refused, 0] < sizes[0] - 2).all()
    assert (true[:, 3] == incomes.true[:, 3]).all()


RAW = schema_of(
    Field("delay", "integer", minimum=0, maximum=1),
    Field("race", "string", enum=("a", "b"), other="other"),
    Field("sex", "string", enum=("f", "m")),
    Field("score", "integer", minimum=0, maximum=9, required=True, default=5),
    Field("cost", "number", minimum=0, maximum=100, decimals=0),
    Field("age", "integer", minimum=0, maximum=99, bins=10),
    Field("born", "date", minimum="1950-01-01", maximum="1999-12-31"),
    Field("room", "integer", minimum=0, maximum=9),
)


def raw(n=400):
    """A table in which a quarter of the cells of each of the first columns is changed, each in its own way."""
    fourth = np.arange(n) % 4 == 0
    return frame_of(
        delay=np.where(fourth, 300, np.arange(n) % 2),
        race=np.where(fourth, "rare", np.where(np.arange(n) % 3 == 0, "a", "b")),
        sex=np.where(fourth, "unknown", np.where(np.arange(n) % 3 == 0, "f", "m")),
        score=[None if here else 3 for here in fourth],
        cost=np.where(fourth, 20.5, 20.0),
        age=np.arange(n) % 100,
        born=np.where(fourth, "1900-01-01", "1980-06-01"),
        room=np.arange(n) % 10,
        name=[f"person {k}" for k in range(n)],
    )


def changes_of(frame, schema=RAW, binned=True):
    codec, table = Codec(schema), read_table(frame, schema)
    cells = codec.encode(table, "cells")[0]
    return codec, cells, Changes.of(codec, table, cells, binned)


def test_every_kind_of_change_is_counted_with_its_share_and_told():
    codec, _, found = changes_of(raw())
    figures = found.figures(codec)
    assert figures["left_out"] == {"columns": ["name"], "of": 9, "share": pytest.approx(1 / 9)}
    kinds = {name: {k: v for k, v in own.items() if isinstance(v, float)} for name, own in figures["columns"].items()}
    assert kinds == {
        "delay": {"share": 0.25, "moved": 0.25},
        "race": {"share": 0.25, "merged": 0.25},
        "sex": {"share": 0.25, "emptied": 0.25},
        "score": {"share": 0.25, "filled": 0.25},
        "born": {"share": 0.25, "moved": 0.25},
        "cost": {"share": 0.0, "coarsened": 0.25},
        "age": {"share": 0.0, "coarsened": 1.0},
    }
    assert figures["columns"]["delay"]["limits"] == [0.0, 1.0]
    assert figures["columns"]["delay"]["mean"] == [pytest.approx(75.5), pytest.approx(0.75)]
    assert figures["columns"]["race"]["into"] == "other"
    assert figures["cells"] == pytest.approx(5 / 4 / 8)
    # An anonymous bundle averages numbers, not bins.
    assert "age" not in changes_of(raw(), binned=False)[2].figures(codec)["columns"]
    said = "\n".join(lines("changed.txt", changed=figures))
    assert "1 of 9 columns of the table is not in the bundle: name" in said
    assert "delay: 25.0% of the cells lie beyond 0 to 1 and were moved to these limits" in said
    assert "which changes the mean from 75.5 to 0.75" in said
    assert "race: 25.0% of the cells are in no category of the schema and were merged into 'other'" in said
    assert "sex: 25.0% of the cells are in no category of the schema and became missing" in said
    assert "score: 25.0% of the cells are missing and were filled with the default" in said
    assert "born: 25.0% of the cells lie beyond 1950-01-01 to 1999-12-31" in said
    assert "cost: 25.0% of the cells were rounded" in said
    assert "room" not in said


def test_text_among_numbers_is_told_and_words_for_missing_are_not():
    frame = pl.DataFrame({"delay": ["1", "x", "NaN", "", None, "0", "-9", "5"]})
    schema = Schema((Field("delay", "integer", minimum=0, maximum=1),), missing_values=("", "-9"))
    codec, _, found = changes_of(frame, schema)
    assert {k: rows.tolist().count(True) for k, rows in found.kinds["delay"].items()} == {"moved": 1, "emptied": 1}
    said = lines("changed.txt", changed=found.figures(codec))
    assert "delay: 12.5% of the cells are not of type integer and became missing" in said


def test_a_table_that_fits_has_no_changes():
    frame = raw().filter(pl.arange(0, 400) % 4 != 0).drop("name")
    codec, cells, found = changes_of(frame, binned=False)
    assert lines("changed.txt", changed=found.figures(codec)) == []
    assert found.stand(codec, cells).tolist() == cells.tolist()
    rows = Comparison(codec, cells, cells, {"guarantee": "none"}, found)
    own = evaluate(rows, predicting=False)["average_total_variation"]
    assert own["average"] == own["as_read"] == 0


def test_words_of_a_file_are_read_like_a_column_of_text():
    frame = raw()
    words, places = np.unique(frame["race"].to_numpy(), return_inverse=True)
    table = read_table(frame, RAW)
    stored = Words(np.where(np.arange(400) == 3, -1, places), pl.Series(words.tolist()))
    codec = Codec(RAW)
    columns = {**table.columns, "race": stored}
    own = type(table)(columns, table.rows, table.origin, ignored=table.ignored)
    found = Changes.of(codec, own, codec.encode_part(own, "cells")[0], True)
    assert found.kinds["race"]["merged"].mean() == 0.25
    assert "emptied" not in found.kinds["race"]


def test_rows_that_the_schema_changed_count_as_wrong_and_true_numbers_are_those_of_the_file():
    """Synthetic rows that equal the table as clipped were called perfect; the file's own mean is a hundred times theirs."""
    codec, cells, found = changes_of(raw())
    rows = Comparison(codec, cells, cells, {"guarantee": "none"}, found)
    figures = evaluate(rows, predicting=False)
    assert figures["numbers"]["columns"]["delay"]["mean"] == [pytest.approx(75.5), pytest.approx(0.75)]
    assert figures["numbers"]["columns"]["born"]["mean"][0] < figures["numbers"]["columns"]["born"]["mean"][1]
    assert figures["columns"]["delay"] == figures["columns"]["race"] == figures["columns"]["score"] == 0.25
    assert figures["columns"]["room"] == 0
    own = figures["average_total_variation"]
    # The same rows are changed in five of eight columns: a quarter counts as wrong in the 25 pairs with one of them.
    assert own["average"] == pytest.approx(25 / 28 * 0.25)
    assert own["as_read"] == 0
    # What was done before, without the file: it finds nothing.
    old = evaluate(Comparison(codec, cells, cells, {"guarantee": "none"}), predicting=False)
    assert old["average_total_variation"]["average"] == 0
    assert old["numbers"]["columns"]["delay"]["mean_off"] == 0


def test_as_read_is_what_a_comparison_of_the_changed_table_gives():
    codec, cells, found = changes_of(raw())
    other = cells[np.random.default_rng(1).integers(0, len(cells), len(cells))]
    other[:, 0] = 1
    both = (Comparison(codec, cells, other, {"guarantee": "none"}, own) for own in (found, Changes()))
    with_file, without = (evaluate(rows, predicting=False)["average_total_variation"] for rows in both)
    assert with_file["as_read"] == pytest.approx(without["average"])
    assert with_file["average"] > without["average"]
    assert total_variation(*Comparison(codec, cells, other, {}, found).tables(as_read=True), (0,)) > 0


@pytest.fixture(scope="module")
def told_apart(tmp_path_factory):
    folder = tmp_path_factory.mktemp("changed")
    raw().write_csv(folder / "table.csv")
    synth = covey.PrivateSynthesizer(5, schema=RAW, seed=1).fit(folder / "table.csv")
    write_bundle(synth.release(300), folder / "bundle")
    return folder


def test_evaluate_puts_changes_first_on_the_screen_in_json_and_on_the_page(told_apart):
    said = run("evaluate", told_apart / "table.csv", told_apart / "bundle").output.splitlines()
    assert said[0].startswith("CONFIDENTIAL")
    assert said[1] == "CHANGED BY THE SCHEMA: 1 of 9 columns of the table is not in the bundle: name"
    assert said[2].startswith("CHANGED BY THE SCHEMA: delay: 25.0% of the cells lie beyond 0 to 1")
    assert any("against the table as the schema reads it" in line for line in said)
    told = run("evaluate", told_apart / "table.csv", told_apart / "bundle", "--json").output
    assert json.loads(told)["changed"]["columns"]["delay"]["moved"] == 0.25
    rows = compare(told_apart / "table.csv", told_apart / "bundle")
    page = check_page(evaluation_html(rows, evaluate(rows, predicting=False)))
    assert page.text.index("Changed by the schema") < page.text.index("The total variation distance is")
    assert "delay: 25.0% of the cells lie beyond 0 to 1 and were moved" in page.text
    assert "25.00% because the schema changed them" in page.text


def test_persons_count_once_in_the_shares_of_changes():
    """One person with many clipped rows counts as one of four, not as most of the table."""
    codec, _, found = changes_of(pl.DataFrame({"delay": [9] * 9 + [0, 1, 0]}), Schema((RAW["delay"],)))
    assert found.figures(codec)["columns"]["delay"]["moved"] == pytest.approx(9 / 12)
    assert found.taking(np.array([0, 9, 10, 11])).figures(codec)["columns"]["delay"]["moved"] == 0.25


ROWS = 3000
PAID = "If paid is missing, then method is none. If method is none, then paid is missing"
RELATED = schema_of(
    Field("score", "integer", 1, 10),
    Field("copy", "integer", 1, 10),
    Field("text", "string", enum=("low", "high")),
    Field("came", "integer", 0, 400),
    Field("left", "integer", 0, 500),
    Field("stay", "integer", 0, 100),
    Field("paid", "integer", 0, 100),
    Field("method", "string", enum=("card", "cash", "none")),
)


def true_rows(seed=0):
    """Cells by column: a copy, a function, an order, a sum, two that are missing together, and an implication."""
    g = np.random.default_rng(seed)
    score, came, stay = g.integers(1, 11, ROWS), g.integers(0, 300, ROWS), g.integers(0, 100, ROWS)
    text = np.where(score <= 5, "low", "high")
    unpaid = g.random(ROWS) < 0.4
    paid = np.where(unpaid, "", g.integers(1, 100, ROWS).astype(str))
    method = np.where(unpaid, "none", g.choice(["card", "cash"], ROWS))
    columns = (score, score, text, came, came + stay, stay, paid, method)
    return {field.name: column.astype(str) for field, column in zip(RELATED.fields, columns, strict=True)}


def contradicted(true, drawn):
    codec = Codec(RELATED)
    return contradictions(codec, tuple(codec.encode(rows, "cells")[0] for rows in (true, drawn)))


def found_in(figures):
    return {one["relation"]: one for one in figures["worst"]}


def test_rows_of_the_same_kind_contradict_nothing():
    figures = contradicted(true_rows(0), true_rows(1))
    assert figures["score"] == 0
    assert {"copy equals score", "text follows from score", "left is came plus stay", PAID} <= set(found_in(figures))
    assert lines("contradictions.txt", found=figures)[1:] == []


def test_broken_relations_are_counted():
    """A third of the copies, a fifth of the texts, half of those who paid nothing: the shares are those, the worst first."""
    drawn = true_rows(1)
    at = np.arange(ROWS)
    drawn["copy"] = np.where(at % 3 == 0, (drawn["score"].astype(int) % 10 + 1).astype(str), drawn["copy"])
    drawn["text"] = np.where(at % 5 == 0, np.where(drawn["text"] == "low", "high", "low"), drawn["text"])
    drawn["method"] = np.where(at % 2 == 0, "card", drawn["method"])
    figures = contradicted(true_rows(0), drawn)
    found = found_in(figures)
    assert found["copy equals score"]["synthetic"] == pytest.approx(1 / 3, abs=0.001)
    assert found["text follows from score"]["synthetic"] == pytest.approx(1 / 5, abs=0.001)
    assert found[PAID]["synthetic"] == pytest.approx(0.4 / 2, abs=0.02)
    assert all(one["true"] == 0 for one in found.values())
    assert next(iter(found)) == "copy equals score"
    assert figures["score"] == pytest.approx(np.mean([found[name]["synthetic"] for name in found]), abs=1e-9)
    example = found["copy equals score"]["example"]
    assert set(example) == {"score", "copy"}
    assert example["score"] != example["copy"]
    [(_, title, html)] = contradiction_section(figures)
    assert title == "Contradictions"
    assert "copy equals score" in html
    words = lines("contradictions.txt", found=figures)
    broken = f"{100 * figures['worst'][0]['synthetic']:.1f}% of the synthetic rows, 0.0% of the real ones"
    assert words[1] == f"  copy equals score: broken by {broken}"


def test_the_worst_relation_is_named_even_if_its_source_has_a_copy_that_another_one_starts_from():
    """What follows from a copy follows from its original if rows keep the copy. Synthetic rows need not: a third broke it."""
    wide = [replace(field, maximum=1000) if field.name == "copy" else field for field in RELATED.fields]
    codec, drawn, at = Codec(replace(RELATED, fields=tuple(wide))), true_rows(1), np.arange(ROWS)
    drawn["text"] = np.where(at % 3 == 0, np.where(drawn["text"] == "low", "high", "low"), drawn["text"])
    figures = contradictions(codec, tuple(codec.encode(rows, "cells")[0] for rows in (true_rows(0), drawn)))
    worst = figures["worst"][0]
    assert worst["relation"] in ("text follows from score", "score equals copy")
    assert found_in(figures)["text follows from score"]["synthetic"] == pytest.approx(1 / 3, abs=0.001)
    assert lines("contradictions.txt", found=figures)[0].startswith(
        f"contradictions: 33.3% of the synthetic rows break the worst of {figures['relations']} relations that hold in the real"
        " table, text follows from score"
    )


def test_columns_that_know_nothing_of_each_other_have_no_relations():
    g = np.random.default_rng(3)
    strangers = {name: g.permutation(column) for name, column in true_rows().items()}
    figures = contradicted(strangers, true_rows(1))
    assert (figures["relations"], figures["score"]) == (0, 0.0)
    assert lines("contradictions.txt", found=figures) == []
    assert contradiction_section(figures) == []


def test_relations_that_two_in_a_hundred_rows_break_are_none():
    rows = true_rows()
    rows["copy"] = np.where(np.arange(ROWS) % 50 == 0, (rows["score"].astype(int) % 10 + 1).astype(str), rows["copy"])
    assert "copy equals score" not in found_in(contradicted(rows, rows))


def test_a_number_determines_a_category_by_intervals():
    """Values that no true row has lie between those that some have."""
    true, drawn = true_rows(0), true_rows(1)
    for rows in (true, drawn):
        rows["text"] = np.where(rows["came"].astype(int) < 150, "low", "high")
    true["came"] = (true["came"].astype(int) // 2 * 2).astype(str)
    figures = found_in(contradicted(true, drawn))
    assert figures["text follows from came"]["synthetic"] <= 0.005
    drawn["text"] = drawn["text"][::-1]
    assert found_in(contradicted(true, drawn))["text follows from came"]["synthetic"] == pytest.approx(0.5, abs=0.05)


def test_persons_are_spread_evenly():
    names, places = ["a", "b", None, "c", "a"], np.array([0, 0, 0, 1, 2, 3, 3, 4, 2])
    chosen = once_a_person(names, places)
    person = np.array(["a", "a", "a", "b", "", "c", "c", "a", ""])[chosen]
    assert {name: int((person == name).sum()) for name in "abc"} == {"a": 60, "b": 60, "c": 60}
    assert (np.bincount(chosen, minlength=9) == [15, 15, 15, 60, 0, 30, 30, 15, 0]).all()

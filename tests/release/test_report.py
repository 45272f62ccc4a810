"""report.html: public things only, one inert file, readable by everybody."""

import json
import re
from contextlib import chdir
from dataclasses import dataclass
from fractions import Fraction
from math import exp

import numpy as np
import polars as pl
import pytest
from scipy.stats.contingency import association

import covey
from audits.gates import a_budget, asked
from covey.desk.demo import example_patients
from covey.engine.budget import make_budget
from covey.engine.certificate import of_hundred
from covey.engine.entropy import Streams
from covey.engine.fit.spectrum import Spectrum, noisy_spectrum
from covey.engine.gate import Gate
from covey.engine.models.bits import measure_ball, measure_matrix, moment_spectrum, plan_bits
from covey.engine.numbers.grid import Measure, NumberGrid
from covey.engine.units.local import ArrayRows
from covey.errors import ParameterError
from covey.release import pictures
from covey.release.bundle import write_bundle
from covey.release.charts import number, percent, ticks, up
from covey.release.contents import NOT_PRIVATE, NOTHING_SAID, About, AnonymousRelease
from covey.release.page import style_sheet, templates
from covey.release.report import guess, report_html, two_releases
from covey.release.statements import risks
from covey.release.summary import MOST_BINS, TableTally, associations, coarsened, cramers_v, describe, ranked
from covey.tables import sources
from covey.tables.codec import Codec
from covey.tables.schema import Field, Schema
from covey.tables.sources import csvfile, joined, read_table
from tests.entries import frame_of, schema_of
from tests.release.pages import Page, check_page, table_named

pytestmark = [pytest.mark.usefixtures("few_steps"), pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")]
DIGEST = "ab" * 32


def shown(release, about=NOTHING_SAID, table="synthetic.csv"):
    return report_html(release, {table: DIGEST}, about=about)


@pytest.fixture(scope="module")
def page(released):
    return check_page(shown(released))


def test_a_private_report_says_what_the_issue_of_a_release_is(page, released):
    # Noise decides whether anything "became coarser".
    assert "; ".join(h["text"] for h in page.all("h2") if h["text"] != "What became coarser") == (
        "The first synthetic rows; At a glance; What it protects; How the budget was spent; How accurate it is; "
        "What the table looks like; What goes together; What is stronger than the noise; What was released; "
        "What the guarantee rests on; Cite and reuse"
    )
    assert DIGEST in page.text
    assert "1,500" in page.text
    assert "ε = 2, δ = 1e-6" in page.text
    assert released.certificate.sentence in page.text
    assert "covey verify" in page.text


def test_the_pictures_show_the_synthetic_rows(page, released):
    """The shares on the page are those of the very rows beside it."""
    rows = pl.DataFrame(dict(joined(released.parts)))
    wards = {a: c for a, _, c, _ in table_named(page, "Proportions of ward")}
    for ward, count in rows["ward"].fill_null("missing").value_counts().iter_rows():
        assert wards[ward] == percent(count / len(rows))
    ages = table_named(page, "Proportions of age")
    assert sum(float(share.rstrip("%")) for _, share, _ in ages) == pytest.approx(100, abs=1.5)
    first, last = ages[0][0].split(" – ")
    inside = rows["age"].is_between(int(first), int(last)).sum()
    assert ages[0][1] == percent(inside / len(rows))
    shown = table_named(page, "The first synthetic rows")
    first = [["—" if v is None else str(v) for v in row] for row in rows.head(5).iter_rows()]
    assert [list(row) for row in shown] == first
    assert f"made-up rows replace {released.privacy.n:,} real rows. At most " in page.text


def test_the_first_page_answers_to_a_data_protection_officer(released):
    about = About("Visits 2025", "Ada Lovelace", "teaching", Fraction(5, 2), Fraction(4), Fraction(5, 8))
    page = check_page(shown(released, about))
    said = dict(table_named(page, "The release at a glance"))
    assert page.all("h1")[0]["text"] == "Visits 2025"
    assert (said["Owner"], said["Purpose"]) == ("Ada Lovelace", "teaching")
    assert f"at most {100 * guess(2.0, 1e-6):.1f}% of cases" in said["Promise"]
    assert "coin is right in 50%" in said["Promise"]
    assert "ε = 2.5 by all releases about these people so far, of a cap of 4" in said["Budget used"]
    public = {row[0]: row[2] for row in table_named(page, "What the schema says about the 7 columns")}
    assert set(public) == {field.name for field in released.schema.fields}
    unsaid = dict(table_named(check_page(shown(released)), "The release at a glance"))
    assert (unsaid["Owner"], unsaid["Purpose"]) == ("not stated", "not stated")
    assert "is not known here" in unsaid["Budget used"]


def test_what_is_to_be_copied_runs(page, folder):
    """The lines on the page, in the folder of the page."""
    shown = [entry["text"] for entry in page.all("pre")]
    question = next(line for line in shown if line.startswith("covey ask"))
    assert "share" in question or "mean" in question
    python = next(line for line in shown if line.startswith("import covey"))
    told = {}
    with chdir(folder):
        exec(python.replace("100_000", "7"), told)
    assert len(told["more"]) == 7


def test_the_certificate_is_drawn_with_its_bounds(page, fitted, released):
    bounds = fitted.certify(pl.DataFrame(dict(joined(released.parts))))
    yardstick = [row[1] for row in table_named(page, "Average total variation distance")]
    own = fitted.certificate.misplaced
    shown = (("", own.estimate), ("≤ ", own.bound), ("≤ ", bounds.misplaced))
    assert yardstick == [f"{sign}{of_hundred(x)}%" for sign, x in shown]
    rows = table_named(page, "Certificate by degree")
    assert [row[0][:5] for row in rows] == ["RMSE₁", "RMSE₂", "RMSE₃", "RMSE₄"]
    for d, row in enumerate(rows, start=1):
        assert row[1] == number(fitted.certificate.estimate[d])
        assert row[2] == f"≤ {up(fitted.certificate.bound[d])}"
        assert row[3] == f"≤ {up(bounds[d])}"
        assert float(row[3][2:]) >= bounds[d] >= fitted.certificate.bound[d]


def test_the_budget_is_drawn_and_adds_up(page, released):
    rows = table_named(page, "Charges by purpose")
    assert [row[0] for row in rows] == [charge.purpose for charge in released.privacy.charges]
    assert sum(float(row[3].rstrip("%")) for row in rows) == pytest.approx(100, abs=0.2)
    assert all(row[1] != "–" for row in rows)


def test_every_purpose_that_a_method_can_charge_is_explained():
    purposes = {"domains", "relations", "histograms", "pairs", "ranks", "certificate", "events", "tables", "look"}
    purposes |= {"columns and pairs", "important", "choosing triples", "triples"}
    for n in (100, 20_000, 10**7):
        for p in (1, 10, 100):
            for pure in (True, False):
                purposes |= set(plan_bits(n, p, a_budget(1, pure)).shares)
    assert purposes == set(templates().globals["ui"].purposes)


def test_the_spectrum_shows_the_noise_edge(page, released):
    rows = table_named(page, "Leading eigenvalues")
    assert len(rows) == len(released.fitted.spectrum.values)
    above = sum(row[2] == "above the edge" for row in rows)
    seen = released.fitted.spectrum
    assert above == seen.above == sum(v > seen.edge for v in seen.values)


def test_what_only_true_rows_hold_is_nowhere_on_the_page():
    schema = schema_of(
        Field("town", "string", enum=("north", "south"), other="elsewhere"),
        Field("income", "integer", 0, 100_000, bins=10),
        Field("ill", "boolean"),
    )
    n = 300
    secrets = ["Zanzibar-7731", "1234567", "314159", "perhaps"]
    true = frame_of(
        town=["Zanzibar-7731"] * 5 + ["north"] * (n - 5),
        income=["1234567", "31415.9"] + ["50000"] * (n - 2),
        ill=["perhaps"] * 9 + ["true"] * (n - 9),
        hidden_column=["x"] * n,
    )
    private = covey.PrivateSynthesizer(5.0, schema=schema).fit(true)
    anonymous = covey.AnonymousSynthesizer(10, schema=schema).fit(true)
    for synth in (private, anonymous):
        markup = shown(synth.release(100))
        check_page(markup)
        assert not any(secret in markup for secret in [*secrets, "hidden_column"])


def test_the_page_depends_on_the_release_alone(released, monkeypatch):
    """No file is read besides the style sheet, and the same release gives the same bytes."""
    monkeypatch.setattr(csvfile, "_open", lambda *_: pytest.fail("a file was read"))
    monkeypatch.setattr(sources, "ArrowFile", lambda *_: pytest.fail("a file was read"))
    assert shown(released) == shown(released)


@dataclass(frozen=True)
class OnePart:
    """Synthetic rows in one part."""

    m: int
    columns: dict

    def __iter__(self):
        return iter([self.columns])


HOSTILE = "<script>alert(1)</script>\"'&amp;<img src=x onerror=alert(2)>{{ 7 * 7 }}{% raise %}\\"


@pytest.mark.parametrize("kind", ["private", "anonymous", "flags"])
def test_names_and_categories_are_escaped(kind, tmp_path):
    names = [f"{HOSTILE}{i}" for i in range(5)]
    if kind == "flags":
        fields = tuple(Field(name, "boolean", required=True) for name in names)
        table = {name: [True, False] * 60 for name in names}
    else:
        labels = (HOSTILE, "</style><script>", "]]><svg onload=alert(3)>")
        fields = tuple(Field(name, "string", enum=labels, ordered=i == 2) for i, name in enumerate(names))
        table = {name: list(labels) * 40 for name in names}
    schema = Schema(fields, notes={"title": HOSTILE, "description": "</p><script>alert(4)</script>"})
    if kind == "anonymous":
        synth = covey.AnonymousSynthesizer(5, schema=schema).fit(table)
    else:
        synth = covey.PrivateSynthesizer(1.0, schema=schema).fit(table)
    page = check_page(shown(synth.release(60)))
    assert page.all("h1")[0]["text"] == HOSTILE
    assert HOSTILE in page.text
    entry = json.loads((write_bundle(synth.release(60), tmp_path / "out") / "croissant.json").read_text())
    assert [field["name"] for field in entry["recordSet"][0]["field"]] == names


def test_control_characters_and_endless_names_do_no_harm():
    long = "x" * 5000
    schema = Schema((Field("bell\x07 and \u202e", "boolean"), Field(long, "string", enum=(long + "1", long + "2"))))
    table = {"bell\x07 and \u202e": [True] * 8, long: [long + "1"] * 8}
    synth = covey.AnonymousSynthesizer(2, schema=schema).fit(table)
    markup = shown(synth.release(8))
    check_page(markup)
    assert "\x07" not in markup
    assert long[:100] not in markup
    assert len(markup) < 60_000


def draw(fields, rows, seed=0):
    """An anonymous release of uniform rows, for sizes that a fit would take long for."""
    schema = Schema(tuple(fields))
    codec = Codec(schema)
    generator = np.random.default_rng(seed)
    codes = np.stack([generator.integers(0, size, rows) for size in codec.domain_sizes], axis=1)
    drawn = OnePart(rows, codec.decode(codes, generator))
    return AnonymousRelease(drawn, schema, 5, rows, rows // 5, 0.1, "tree", False, "0")


def test_a_thousand_columns_stay_small_and_the_page_says_what_it_leaves_out():
    flags = [Field(f"flag number {i} of a thousand", "boolean") for i in range(400)]
    texts = [Field(f"text {i}", "string", enum=tuple(f"category {j} of {i}" for j in range(30))) for i in range(300)]
    bins = [Field(f"number {i}", "number", 0, 1e6, bins=500) for i in range(300)]
    page = check_page(shown(draw([*flags, *texts, *bins], 300)))
    assert f"{pictures.FLAGS + pictures.CHARTS} of 1,000 columns" in page.text
    assert "first 40 of 1,000 columns" in page.text
    assert len(page.all("article")) == pictures.FLAGS / pictures.FLAGS_TOGETHER + pictures.CHARTS


def test_many_bins_and_categories_are_joined_for_the_eye():
    towns = tuple(f"t{i}" for i in range(5000))
    fields = [Field("number", "integer", 0, 999, bins=1000), Field("town", "string", enum=towns)]
    release = draw(fields, 2000)
    page = check_page(shown(release))
    bins = table_named(page, "Proportions of number")
    assert len(bins) <= MOST_BINS + 1
    low, high = map(int, bins[3][0].split(" – "))
    numbers = np.array(release.parts.columns["number"].to_list(), dtype=float)
    assert bins[3][1] == percent(float(np.mean((numbers >= low) & (numbers <= high))))
    towns = table_named(page, "Proportions of town")
    assert towns[-2][0] == "4989 others"


@pytest.mark.parametrize(
    ("epsilon", "delta", "share"), [(1e-9, 0, 0.05), (1.0, 0, 0), (50.0, 0, 0.05), (0.5, 1e-9, 0.05)]
)
def test_every_kind_of_guarantee_has_its_page(epsilon, delta, share):
    names, X = example_patients(500)
    schema = Schema(tuple(Field(name, "boolean", required=True) for name in names[:6]))
    table = {name: X[:, i].astype(bool) for i, name in enumerate(names[:6])}
    synth = covey.PrivateSynthesizer(epsilon, delta, schema=schema, certificate_share=share, rows_per_person=2)
    synth = synth.fit(table)
    page = check_page(shown(synth.release(50)))
    assert ("No part of the budget was set aside" in page.text) == (share == 0)
    assert ("guarantee is weak" in page.text) == (epsilon > 10)
    assert "one person with up to 2 rows" in page.text
    assert (synth._fitted.spectrum is None) == ("What is stronger than the noise" not in page.text)


def test_an_anonymous_report_speaks_of_groups_and_of_no_budget(averaged):
    page = check_page(shown(averaged.release(100)))
    said = page.text
    assert "This table is NOT differentially private" in said
    assert not re.search("ε|δ|budget|certificate|differential privacy", said)
    assert "What it protects, and what it does not" in said
    # Of three coins all agree in 2 of 8 cases; of 20 people mostly nobody has what one of a hundred has.
    assert dict(risks(3))["50 of 100 people have it"] == 2 / 8
    assert table_named(page, "Chance that a group agrees")[0] == ["1 of 100 people have it", "", "81.8%"]
    facts = dict(table_named(page, "What averaging lost"))
    assert facts["Covariance loss"] == f"{number(averaged.covariance_loss)}computed on real data"
    assert facts["Records"] == "1,500"
    assert facts["Groups"].startswith(str(averaged.groups))


def test_two_releases_stand_side_by_side_with_what_only_one_has(released, averaged):
    page = check_page(two_releases(("new", "old"), (released, averaged.release(200))))
    facts = {row[0]: row[1:] for row in table_named(page, "Budget, promise and certificate of both releases")}
    assert facts["Privacy budget"] == ["ε = 2, δ = 1e-6", NOT_PRIVATE]
    assert facts["Made-up"] == ["400 rows", "200 rows"]
    assert facts["Certificate"][1] == "–"
    assert {row[0]: row[-1] for row in table_named(page, "Charges by purpose")}["pairs"] == "–"
    # Shares of both, of every column that both describe alike; the largest difference first.
    ward = {row[0]: row[-2:] for row in table_named(page, "Shares of ward")}
    rows = [ward for part in released.parts for ward in part["ward"]]
    assert ward["surgery"][0] == percent(rows.count("surgery") / len(rows))
    moves = [float(number) for number in re.findall(r"(\d+\.\d\d)% of the rows would have to move", page.text)]
    assert len(moves) == 7
    assert moves == sorted(moves, reverse=True)
    # Other limits cannot be drawn beside each other, and what one lacks is named.
    fields = (Field("age", "integer", 0, 10), Field("sex", "string", enum=("f", "m")))
    other = (Field("age", "integer", 0, 20), Field("sex", "string", enum=("f", "m")), Field("died", "boolean"))
    page = check_page(two_releases(("a", "b"), (draw(fields, 50), draw(other, 60))))
    assert table_named(page, "Columns with other labels or limits") == [["age", "0 to 10", "0 to 20"]]
    assert "Only in the second: died." in page.text
    assert "Only in the first" not in page.text
    with pytest.raises(ParameterError, match="no column in common"):
        two_releases(("a", "b"), (draw(fields[:1], 50), draw(other[1:], 60)))


def test_a_schema_that_may_describe_true_records_is_not_released(visits):
    """A draft holds labels and ranges of true records, and goes out with the rows: in anonymous mode too."""
    synth = covey.AnonymousSynthesizer(20, schema=Schema.draft(read_table(visits[0]))).fit(visits[0])
    with pytest.raises(ParameterError, match="confirm"):
        synth.release(50)


def test_the_chance_of_a_guess_is_that_of_randomized_response():
    """Truth with probability (e^ε + δ)/(e^ε + 1) is (ε, δ)-DP for two answers, and the best guess is right just as often."""
    for epsilon, delta in ((0.1, 0.0), (1.0, 0.0), (1.0, 1e-3), (3.0, 1e-6)):
        honest = guess(epsilon, delta)
        assert honest <= exp(epsilon) * (1 - honest) + delta + 1e-12
        assert honest + 1e-6 > exp(epsilon) * (1 - honest - 1e-6) + delta
    assert guess(1e6, 0.0) == 1.0
    assert guess(1e-12, 0.0) == pytest.approx(0.5)


def test_association_agrees_with_scipy_and_corrects_for_chance():
    generator = np.random.default_rng(5)
    base = generator.integers(0, 4, 200_000)
    other = np.where(generator.random(len(base)) < 0.6, base, generator.integers(0, 4, len(base)))
    codes = np.stack([base, other], axis=1)
    table = np.zeros((4, 4), dtype=np.int64)
    np.add.at(table, (codes[:, 0], codes[:, 1]), 1)
    assert cramers_v(table, len(codes)) == pytest.approx(association(table, method="cramer"), abs=1e-3)
    assert cramers_v(np.diag([30, 20, 50]), 100) == pytest.approx(1)
    assert cramers_v(np.array([[3, 5], [0, 0]]), 8) == 0
    small = [
        cramers_v(np.histogram2d(*generator.integers(0, 9, (2, 60)), bins=9)[0].astype(int), 60) for _ in range(40)
    ]
    plain = association(np.histogram2d(*generator.integers(0, 9, (2, 60)), bins=9)[0].astype(int) + 0, method="cramer")
    assert np.mean(small) < 0.12 < plain


def test_rare_categories_are_joined_before_they_are_associated():
    schema = Schema((Field("a", "string", enum=tuple(map(str, range(90)))), Field("b", "boolean", required=True)))
    columns = describe(Codec(schema))
    codes = np.stack([np.arange(9000) % 90, np.arange(9000) % 2], axis=1)
    joined, sizes = coarsened(codes, columns)
    assert sizes == [MOST_BINS + 1, 2]
    assert joined.max(axis=0).tolist() == [MOST_BINS, 1]
    assert associations(codes, columns)[0, 1] > 0.5


def test_ranking_puts_large_categories_first_and_holes_last():
    found = ranked(("a", "b", "c", "d", "missing"), np.array([0.1, 0.4, 0.2, 0.05, 0.25]), True, most=3)
    assert [label for label, _ in found] == ["b", "c", "2 others", "missing"]
    assert [float(v[0]) for _, v in found] == pytest.approx([0.4, 0.2, 0.15, 0.25])


def test_the_certificate_picture_rounds_bounds_up_as_its_table_does():
    drawn = templates().globals["draw"].certificate({1: 0.01391}, {1: 0.01}, {1: 0.02012}, categorical=True)
    assert "95% bound for the centres: 0.0140" in drawn
    assert "drawing these rows adds 0.00621" in drawn
    assert "≤ 0.0202" in drawn
    assert "0.0139" not in drawn


def test_numbers_in_print_never_flatter():
    assert up(0.00778001) == "0.00779"
    assert up(0.02501, 2) == "0.026"
    assert up(0.5) == "0.500"
    assert percent(0.00001) == "< 0.1%"
    assert percent(0.1234) == "12.3%"
    assert ticks(0.03) == pytest.approx([0, 0.01, 0.02, 0.03])
    assert ticks(0) == [0.0]


@pytest.mark.parametrize("bins", [4, 100])
def test_special_values_are_labels_of_their_own_behind_the_bins(bins):
    field = Field("x", "integer", 0, 999, bins=bins, special=("N", "<5"))
    codec = Codec(Schema((field, Field("t", "time", "08:00", "19:59:59", bins=12))))
    column, clock = describe(codec)
    shown = min(bins, MOST_BINS)
    assert len(column.labels) == shown + 3
    assert column.labels[-3:] == ("N", "<5", "missing")
    codes = codec.encode({"x": ["0", "999", "N", "<5", None], "t": ["8:30"] * 5})[0][:, 0]
    assert np.flatnonzero(column.shares(codes)).tolist() == [0, shown - 1, shown, shown + 1, shown + 2]
    assert column.domain == "0 to 999, or N, <5"
    assert clock.labels[0].startswith("08:00")


def skewed(field, value, away=0.01):
    """A measure with nearly all rows at one value, and the rest spread evenly over all."""
    grid = NumberGrid(field.axis.high - field.axis.low + 1, 2)
    at = 2 + value - field.axis.low
    edges = np.unique([0, 1, 2, at, at + 1, grid.size])
    share = (1 - away) * (edges[:-1] == at) + away * np.diff(edges) / grid.size
    return Measure(grid, edges[:-1], edges[1:], share / share.sum())


@pytest.mark.parametrize("value", [0, 700, 9999])
def test_bars_grow_away_from_where_most_rows_lie(value):
    """Wrong programs: equal bars, which hide all, and bars that grow from the lower limit wherever the rows are."""
    field = Field("x", "integer", 0, 9999, special=("N",))
    measure = skewed(field, value)
    (column,) = describe(Codec(Schema((field,))), {"x": measure})
    width = np.diff([*column.starts, 10_000])
    here = int(np.searchsorted(column.starts, value, side="right")) - 1
    assert column.growing
    assert width[here] == 1
    assert (np.diff(width[: here + 1]) <= 1).all()  # halves of odd widths differ by one
    assert (np.diff(width[here:]) >= -1).all()
    assert len(width) <= MOST_BINS
    assert column.labels[-2:] == ("N", "missing")
    assert not describe(Codec(Schema((field,))), {"x": skewed(field, value, 0.5)})[0].growing


def test_rows_are_counted_in_the_bars_that_are_drawn():
    field = Field("x", "integer", 0, 9999, special=("N",))
    tally = TableTally(Schema((field,)), 6, measures={"x": skewed(field, 700)})
    tally.add({"x": pl.Series(["700", "700", "701", "9999", "N", None])})
    (column,), (counts,) = tally.columns, tally.counts
    seen = {label: count for label, count in zip(column.labels, column.shares_of(counts) * 6, strict=True) if count}
    assert seen.pop("700") == seen.pop("N") + 1 == seen.pop("missing") + 1 == 2
    assert sum(seen.values()) == 2
    assert associations(tally.some, tally.columns).shape == (1, 1)


def test_a_skewed_number_is_shown_in_growing_bars_with_bands_and_words(few_steps):
    g = np.random.default_rng(0)
    true = np.where(g.random(4000) < 0.95, g.integers(0, 40, 4000), g.integers(0, 100_000, 4000))
    schema = Schema((Field("cost", "integer", 0, 100_000, required=True), Field("old", "boolean", required=True)))
    table = {"cost": true, "old": true % 2 == 0}
    release = covey.PrivateSynthesizer(4.0, 1e-6, schema=schema, seed=1).fit(pl.DataFrame(table)).release(4000)
    page = check_page(report_html(release, {"synthetic.csv": "ab" * 32}))
    assert "Bars are narrow where most rows lie" in page.text
    rows = table_named(page, "Proportions of cost")
    assert max(float(share.strip("<% ")) for _, share, _ in rows) < 50
    held = 0
    for label, _, band in rows:
        first, *last = map(int, label.split(" – "))
        low, high = (float(end.rstrip("%")) / 100 for end in band.split(" – "))
        held += low - 1e-3 <= np.mean((true >= first) & (true <= (last or [first])[0])) <= high + 1e-3
    assert held > 0.85 * len(rows)


def correlated(n, p, seed):
    generator = np.random.default_rng(seed)
    common = generator.random(n)[:, None] < 0.5
    return np.where(generator.random((n, p)) < 0.5, common, generator.random((n, p)) < 0.5).astype(np.uint8)


def bit_spectrum(X, pure, seed):
    """The spectrum of one noisy measurement, without the fit that follows it."""
    rows, streams = ArrayRows(X), Streams.from_seed(seed)
    budget = make_budget(0.3, 0 if pure else 1e-9)
    plan = plan_bits(*X.shape, budget)
    gate = Gate(budget, plan.shares, streams)
    noisy = asked(measure_matrix, rows, gate) if pure else asked(measure_ball, rows, gate, plan)
    return moment_spectrum(noisy.dense, plan.mechanism, streams.postprocessing("spectrum"))


@pytest.mark.parametrize("pure", [True, False])
def test_a_common_cause_stands_out_of_the_noise_and_independent_columns_do_not(pure):
    """At this ε the noise is several times what chance alone puts into twenty thousand rows."""
    n, p = 20_000, 30
    independent = (np.random.default_rng(1).random((n, p)) < 0.5).astype(np.uint8)
    assert sum(bit_spectrum(independent, pure, seed).above for seed in range(15)) <= 3
    together = bit_spectrum(correlated(n, p, 2), pure, 4)
    assert together.above == 1
    assert together.dimension == p
    # Each column copies the cause with probability ½: pairs have covariance 1/16, whose matrix has leading value (p − 1)/16.
    assert together.values[0] == pytest.approx((p - 1) / 16, rel=0.15)


def test_the_spectrum_is_a_function_of_noisy_matrices_alone():
    seen = noisy_spectrum(np.diag([9.0, 1.0, -2.0]), np.diag([0.5, -1.0, 0.1]))
    assert seen == Spectrum((9.0, 1.0, -2.0), 1 + 2 * 3 ** (-2 / 3), 3)
    assert seen.above == 1
    assert noisy_spectrum(np.zeros((2001, 2001)), np.zeros((1, 1))) is None


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, two):
    low, high = sorted((luminance(one), luminance(two)))
    return (high + 0.05) / (low + 0.05)


def blend(over, under, opacity):
    mixed = [round(int(over[i : i + 2], 16) * opacity + int(under[i : i + 2], 16) * (1 - opacity)) for i in (1, 3, 5)]
    return "#" + "".join(f"{part:02x}" for part in mixed)


BLOCKS = re.findall(r":root \{(.*?)\}", style_sheet(), re.S)
PALETTES = [dict(re.findall(r"--([\w-]+): (#\w{6});", block)) for block in BLOCKS]


@pytest.mark.parametrize("palette", PALETTES, ids=["light", "dark", "print"])
def test_text_can_be_read_on_every_ground(palette):
    pairs = [(text, ground) for text in ("ink", "muted", "accent") for ground in ("page", "surface")]
    pairs += [("second", "surface"), ("alarm", "surface"), ("on-accent", "alarm")]
    pairs += [(name, f"{name}-soft") for name in ("accent", "second", "alarm", "good")]
    pairs += [("on-accent", f"p{i}") for i in range(6)]
    found = {f"{a}/{b}": contrast(palette[a], palette[b]) for a, b in pairs}
    assert [pair for pair, told in found.items() if told < 4.5] == []
    for opacity in np.linspace(0.04, 1, 97):
        text = palette["heat-low" if opacity < 0.56 else "heat-mid" if opacity < 0.8 else "heat-high"]
        assert contrast(text, blend(palette["accent"], palette["surface"], opacity)) >= 4.5, opacity


def test_paper_is_always_light_and_the_dark_palette_is_complete():
    light, dark, paper = PALETTES
    assert set(light) == set(dark) == set(paper)
    assert luminance(paper["page"]) == 1
    assert luminance(dark["page"]) < 0.02


def test_the_parser_of_these_tests_sees_trouble():
    with pytest.raises(AssertionError):
        Page("<p><b></p></b>")
    markup = "<html><head><style></style></head><body><script>1</script></body></html>"
    with pytest.raises(AssertionError):
        check_page(markup)

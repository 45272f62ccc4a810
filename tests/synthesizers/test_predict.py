"""Memory, and how small a group may be: functions of public numbers, the same for plans, checks, refusals and reports."""

import csv
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import covey
import covey.engine.models.predict as prediction
from benchmarks import groups, memory
from covey.desk.cli import main
from covey.engine import arrays
from covey.engine.budget import budget_for, make_budget
from covey.engine.models.predict import NO_ROOM, SmallGroups, flag_words, release_memory, small_groups, solve_epsilon
from covey.engine.models.tables.plan_tables import MOST_MERGED, TablePlan
from covey.engine.numbers.grid import Category, NumberGrid
from covey.errors import LostReleaseError, ParameterError
from covey.ledger import Ledger
from covey.release.bundle import write_bundle
from covey.release.pictures import distributions
from covey.release.summary import MOST_LABELS, describe
from covey.synthesizers import private
from covey.synthesizers.learning import expected_codec
from covey.tables.codec import Codec
from covey.tables.schema import Field, Schema
from covey.workflow import PrivateOrder, evaluate, plan, release

TABLE = Path("docs/benchmarks/memory.csv")
RECORDED = {
    row["case"]: float(row["peak_gib"]) for row in csv.DictReader(TABLE.read_text(encoding="utf-8").splitlines())
}
SIZES = [*map(Category, (2, 9, 40, 3000)), NumberGrid(10**6), NumberGrid(50)]


def estimate(name):
    case = memory.CASES[name]
    schema = memory.schema_of(case).without("person") if case.persons else memory.schema_of(case)
    budget = make_budget(case.epsilon, Fraction(case.delta), persons=case.persons)
    return release_memory(expected_codec(schema).kinds, case.counted, budget) / 2**30


@pytest.mark.parametrize("name", RECORDED)
def test_the_estimate_is_within_half_of_what_a_release_took(name):
    assert 1 / 1.5 <= estimate(name) / RECORDED[name] <= 1.5


def test_the_record_has_the_kinds_of_tables_that_matter():
    assert len(RECORDED) >= 12
    assert {"20,000 codes", "100,000 codes", "300 numbers", "1,000 numbers", "mixed, 20,000,000"} <= RECORDED.keys()
    peaks = sorted(RECORDED.values())
    assert peaks[-1] > 3 * 1.5**2 * peaks[0]  # no single number would do for all of them


@pytest.mark.parametrize("attributes", [SIZES, [Category(2)] * 500], ids=["codes", "flags"])
@pytest.mark.parametrize("delta", [0, 1e-12])
def test_more_rows_never_take_less_and_streams_end_their_growth(attributes, delta):
    needed = [release_memory(attributes, 10**k, make_budget(1, delta)) for k in range(10)]
    assert needed == sorted(needed)
    assert needed[-1] <= 1.2 * needed[-2]


def test_very_many_numbers_get_fewer_bins_and_few_keep_theirs():
    rich = make_budget(1000, 1e-9)
    for q, bins in ((5, 40), (20, 20), (300, 12), (1000, 4)):
        mass = TablePlan((NumberGrid(10**6),) * q).bin_mass(10**7, rich)
        assert round(1 / mass) == bins
        assert q * bins <= MOST_MERGED


SURE = {"required": True, "confirmed": True}
FIELDS = (
    Field("code", "string", enum=tuple(f"k{i}" for i in range(300)), **SURE),
    Field("age", "integer", minimum=0, maximum=110, **SURE),
    *(Field(f"f{j}", "boolean", **SURE) for j in range(3)),
)
DECLARED = Schema(FIELDS)
LEARNED = Schema(tuple(f if f.type == "boolean" else Field(f.name, f.type, learn=True, required=True) for f in FIELDS))


def table(path, n=200):
    g = np.random.default_rng(5)
    lines = [
        f"k{g.integers(300)},{g.integers(90)},true,false,{'true' if g.random() < 0.4 else 'false'}" for _ in range(n)
    ]
    path.write_text("\n".join(["code,age,f0,f1,f2", *lines]) + "\n", encoding="utf-8")
    return path


@pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")
@pytest.mark.parametrize("schema", [DECLARED, LEARNED], ids=["declared", "learned"])
@pytest.mark.parametrize("spare", [-1, 0])
def test_plan_check_and_guard_give_the_same_answer_before_the_charge(few_steps, monkeypatch, tmp_path, schema, spare):
    n, epsilon, delta = 200, Fraction(1), Fraction(1, 10**9)
    schema.save(tmp_path / "schema.json")
    ledger = Ledger(tmp_path / "ledger.json")
    ledger.open_dataset("t", Fraction(2))
    # A byte too few, or as many as are needed.
    room = round(plan(schema, n, epsilon, delta).prediction.memory_gib * 2**30) + spare
    for home in (arrays, prediction):
        monkeypatch.setattr(home, "allowed_memory", lambda: room)
    fits = spare == 0
    assert (NO_ROOM in plan(schema, n, epsilon, delta).prediction.warnings) != fits
    places = [table(tmp_path / "t.csv", n), tmp_path / "schema.json", tmp_path / "out"]
    order = PrivateOrder(*places, epsilon, delta, "t", ledger=tmp_path / "ledger.json")
    if fits:
        # What was accepted is finished: the guard in `fit` has the same public numbers.
        release(order)
        assert (tmp_path / "out" / "privacy.json").is_file()
        return
    with pytest.raises(ParameterError, match="GiB") as refused:
        release(order)
    assert not isinstance(refused.value, LostReleaseError)
    assert ledger.datasets()[0].spent.epsilon == 0
    synth = covey.PrivateSynthesizer(epsilon, delta, schema=schema, seed=1)
    with pytest.raises(ParameterError, match="GiB"):
        synth.check(n)
    with pytest.raises(ParameterError, match="GiB"):
        synth.fit(tmp_path / "t.csv")


@pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")
def test_what_learning_finds_is_not_refused_after_the_charge(few_steps, monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(private, "refuse_too_large", lambda attributes, n, _: asked.append((attributes, n)))
    synth = covey.PrivateSynthesizer(Fraction(50), Fraction(1, 10**9), schema=LEARNED, seed=1)
    prepared = synth.prepare(table(tmp_path / "t.csv"))
    synth.check(prepared.n)
    synth.fit(prepared)
    assert synth.schema != LEARNED
    assert set(asked) == {(expected_codec(LEARNED).kinds, 200)}  # never what was learned


@pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")
def test_a_column_of_very_many_codes_is_fitted_and_sampled_on_a_small_machine(few_steps, monkeypatch):
    monkeypatch.setattr(arrays, "physical_memory", lambda: 4 * 2**30)
    X = np.random.default_rng(2).integers(0, [60_000, 5, 2], (300, 3))
    synth = covey.PrivateSynthesizer(1.0, 1e-9, domain=[60_000, 5, 2], seed=1).fit(X)
    assert synth.sample(50).shape == (50, 3)
    with pytest.raises(ParameterError, match="a sample of"):
        synth.sample(10**8)


def test_bands_are_asked_for_the_labels_that_are_shown_alone():
    """Bands of all labels of a column would take their number squared: 60 GiB for 90,000 codes."""
    schema = Schema((Field("code", "string", enum=tuple(f"k{i}" for i in range(5000)), confirmed=True),))
    asked = []

    class Seen:
        def column(self, j, column, labels):
            asked.append(list(labels))
            return np.zeros(len(labels)), np.ones(len(labels))

    counts = np.arange(5001)
    page = distributions(describe(Codec(schema)), [counts], True, Seen())
    assert asked == [[*range(4999, 4999 - MOST_LABELS + 1, -1), 5000]]  # the commonest, and missing
    assert "4989 others" in page[2]


ATTRIBUTES = (Category(4), NumberGrid(101), Category(2), Category(2), NumberGrid(1000))
ROWS = list(csv.DictReader(Path("docs/benchmarks/groups.csv").read_text(encoding="utf-8").splitlines()))


def stated(case):
    return small_groups(
        expected_codec(groups.schema_of(case)).kinds, case.rows, make_budget(case.epsilon, case.delta)
    ).rows


@pytest.mark.parametrize("name", sorted({row["table"] for row in ROWS}))
def test_about_half_of_a_groups_difference_is_left_at_the_stated_size(name):
    """Of simulated releases on record: at half the size most is gone, at twice the size most is left."""
    case, own = groups.CASES[name], [row for row in ROWS if row["table"] == name]
    size = stated(case)
    assert size == int(own[0]["stated_rows"])
    assert all(float(row["kept"]) < 0.35 for row in own if int(row["group_rows"]) < 0.55 * size)
    assert all(float(row["kept"]) > 0.3 for row in own if int(row["group_rows"]) >= size)
    assert any(int(row["group_rows"]) >= size for row in own)


def test_much_more_budget_makes_the_size_smaller_and_more_columns_make_it_larger():
    # In between it may stay: what a larger budget saves in noise, it spends on finer bins.
    small, large = (small_groups(ATTRIBUTES, 20_000, make_budget(eps)).rows for eps in (0.2, 20))
    assert small > 5 * large
    assert small_groups(ATTRIBUTES * 3, 20_000, make_budget(0.2)).rows > 2 * small


@pytest.mark.parametrize("attributes", [(Category(4), Category(9)), (NumberGrid(50),), (Category(2),) * 5])
def test_nothing_is_said_where_there_are_no_means_of_groups(attributes):
    assert small_groups(attributes, 1000, make_budget(1)) is None


@pytest.mark.parametrize(
    ("rows", "n", "words"),
    [
        (900, 5000, "smaller than about 900 rows (18%) are pulled towards the overall mean."),
        (1200, 1_000_000, "smaller than about 1,200 rows (0.1%) are"),
        (3000, 5000, "means of groups are pulled towards the overall mean, even for half of the rows."),
    ],
)
def test_the_sentence_is_plain(rows, n, words):
    assert words in SmallGroups(rows, n, "rows").sentence


@pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")
def test_plan_report_and_evaluation_say_the_same(few_steps, tmp_path):
    case = groups.CASES["visits, pure"]
    schema = groups.schema_of(case)
    frame = pl.DataFrame(groups.table_of(case, 0.08, 1))
    frame.write_csv(tmp_path / "t.csv")
    schema.save(tmp_path / "schema.json")
    said = plan(schema, case.rows, 1, 0).prediction.groups.sentence
    assert f"about {stated(case):,} rows" in said
    command = ["plan", str(tmp_path / "schema.json"), "--rows", str(case.rows), "--epsilon", "1"]
    assert said in CliRunner().invoke(main, command).output.splitlines()
    assert json.loads(CliRunner().invoke(main, [*command, "--json"]).output)["smallest_group"] == stated(case)
    synth = covey.PrivateSynthesizer(1, 0, schema=schema, seed=1).fit(frame)
    bundle = write_bundle(synth.release(300), tmp_path / "out")
    assert said in (bundle / "report.html").read_text(encoding="utf-8")
    found = evaluate(tmp_path / "t.csv", bundle, predicting=False)
    assert found.figures["small_groups"] == said
    assert said in found.page()
    shown = CliRunner().invoke(main, ["evaluate", str(tmp_path / "t.csv"), str(bundle)])
    assert said in shown.output.splitlines()


def test_the_epsilon_that_is_solved_for_covers_all_rows_of_a_person():
    sizes, delta, target = [4, 5, 2], Fraction(0), Fraction(2, 100)
    one, five, every = (
        solve_epsilon(sizes, 20_000, lambda epsilon, k=k: budget_for(epsilon, delta, k), target) for k in (1, 5, "all")
    )
    assert five == pytest.approx(5 * one, rel=0.1)
    assert every == one


def test_yes_no_columns_whose_pairs_are_left_out_are_named_before_the_charge(few_steps):
    """Two thousand columns of 5,000 rows have their means measured alone; a plan and a release say so, and elsewhere nothing."""
    fields = tuple(Field(f"f{j}", "boolean") for j in range(60))
    alone, measured = (plan(Schema(fields), n, Fraction(1), Fraction(0)).words for n in (300, 100_000))
    assert any("released as independent" in words for words in alone)
    assert not any("independent" in words for words in measured)
    assert "independent" in flag_words(5000, 2000, make_budget(1, 1e-9))
    assert flag_words(5, 1, make_budget(1)) == ""
    X = np.random.default_rng(0).integers(0, 2, (300, 60))
    with pytest.warns(covey.errors.CoveyWarning, match="Pairs of columns are not measured"):
        made = covey.PrivateSynthesizer(1.0, seed=0).fit(X)
    assert {charge.purpose for charge in made.privacy.charges} == {"means", "certificate"}

"""Rows drawn from a bundle's centres: conditioned exactly, under the schema's rules, and cited."""

import json
from itertools import product

import numpy as np
import polars as pl
import pytest

import covey
from covey.engine.codes.domain import Domain
from covey.engine.entropy import Streams
from covey.engine.models.laws import BitLaw, CodeLaw
from covey.engine.points import WeightedPoints
from covey.errors import ParameterError
from covey.release.answers.columns import Columns
from covey.release.bundle import write_bundle
from covey.release.conditional import conditioned, draw_rows
from covey.release.verify import bundle_digest, verify_bundle
from covey.tables.codec import Codec
from covey.tables.dialects import Spelling
from covey.tables.schema import Condition, Field, Forbid, Schema
from tests.commands import run

pytestmark = pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")

WARDS = Field("ward", "string", enum=("A", "B", "C"), required=True)
OLD = Field("old", "boolean", required=True)
SEX = Field("sex", "string", enum=("f", "m"))  # f, m, missing


def some_centres(schema, seed=0):
    """Five random product distributions over the schema's categories."""
    generator, codec = np.random.default_rng(seed), Codec(schema)
    sizes = codec.domain_sizes
    if all(size == 2 for size in sizes):
        points, domain = generator.random((5, len(sizes))), None
    else:
        points = np.hstack([generator.dirichlet(np.ones(size), 5) for size in sizes])
        domain = Domain(sizes, codec.ordered)
    cloud = WeightedPoints(generator.dirichlet(np.ones(5)), points)
    return codec, BitLaw(cloud) if domain is None else CodeLaw(cloud, domain)


def wished(codec, where):
    return Columns(covey.Description.of(codec.schema)).wishes(where)


@pytest.mark.usefixtures("few_steps")
def test_drawn_rows_are_read_as_covey_writes_them_and_not_as_the_source_does(tmp_path):
    found = []
    for mark in ".,":
        height = Field("h", "number", 0, 300, decimals=1, special=("NA",), spelling=Spelling(mark))
        table = {"h": [f"1{i % 9}0{mark}5" for i in range(300)] + ["NA"] * 20, "old": ["1", "0"] * 160}
        release = covey.PrivateSynthesizer(1.0, schema=Schema((height, OLD)), seed=4).fit(table).release()
        low = release.sample(9, {"h": (0, 150)}, seed=1)
        stated = json.loads((write_bundle(release, tmp_path / f"b{mark}") / "certificate.json").read_text())
        found.append((stated["this_table"], low["h"].to_list()))
    assert found[0] == found[1]


def joint(codec, cloud):
    """The probability of every row, by listing them all."""
    sizes, table = codec.domain_sizes, {}
    starts = np.concatenate([[0], np.cumsum(sizes)])
    for row in product(*map(range, sizes)):
        chances = cloud.weights.copy()
        for a, code in enumerate(row):
            column = cloud.points[:, a] if codec.flags else cloud.points[:, starts[a] + code]
            chances = chances * ((column if code else 1 - column) if codec.flags else column)
        table[row] = chances.sum()
    return table


@pytest.mark.parametrize(
    ("schema", "where", "codes"),
    [
        (Schema((WARDS, OLD, SEX)), {"ward": "B"}, {0: [1]}),
        (Schema((WARDS, OLD, SEX)), {"ward": ["A", "C"], "old": "true"}, {0: [0, 2], 1: [1]}),
        (Schema((WARDS, OLD, SEX)), {"sex": None}, {2: [2]}),
        (Schema((OLD, Field("ill", "boolean", required=True))), {"ill": False}, {1: [0]}),
        (Schema((Field("age", "integer", 0, 9, bins=5), OLD)), {"age": (2, 5)}, {0: [1, 2]}),
    ],
    ids=["one", "two", "missing", "flags", "range"],
)
def test_conditioning_is_bayes_rule(schema, where, codes):
    codec, law = some_centres(schema)
    before = joint(codec, law.cloud)
    assert sum(before.values()) == pytest.approx(1)
    kept = {row: p for row, p in before.items() if all(row[a] in some for a, some in codes.items())}
    right = {row: kept.get(row, 0.0) / sum(kept.values()) for row in before}
    wishes = wished(codec, where)
    found = joint(codec, conditioned(codec, law, wishes))
    assert max(abs(found[row] - right[row]) for row in right) < 1e-12
    # A program that makes the column certain and forgets the weights is found out.
    careless = WeightedPoints(law.cloud.weights, conditioned(codec, law, wishes).points)
    wrong = joint(codec, careless)
    assert max(abs(wrong[row] - right[row]) for row in right) > 0.01


def test_every_row_meets_the_condition_though_rules_move_some():
    rule = Forbid((("ward", Condition(("A",))), ("old", Condition((True,)))))
    codec, law = some_centres(Schema((WARDS, OLD, SEX), rules=(rule,)))
    parts = list(draw_rows(codec, law, 3000, wished(codec, {"old": "true"}), Streams.from_seed(1)))
    rows = pl.concat([pl.DataFrame(dict(part)) for part in parts])
    assert len(rows) == 3000
    assert rows["old"].all()
    assert "A" not in set(rows["ward"])
    with pytest.raises(ParameterError, match="next to nothing that this release draws meets"):
        list(draw_rows(codec, law, 10, wished(codec, {"old": "true", "ward": "A"}), Streams.from_seed(1)))


def test_more_rows_are_drawn_and_a_seed_draws_them_again(bundles, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("one.csv", "two.csv", "three.parquet"):
        done = run(f"sample {bundles}/private --rows 1500 --where ward=surgery --seed 5 -o {name}")
        assert done.exit_code == 0, done.stderr
    one, two, three = pl.read_csv("one.csv"), pl.read_csv("two.csv"), pl.read_parquet("three.parquet")
    assert one.equals(two)
    assert len(one) == len(three) == 1500
    assert set(one["ward"]) == {"surgery"} == set(three["ward"].cast(pl.String))
    assert not Schema.load(bundles / "private" / "schema.json").validate("one.csv")
    assert run(f"sample {bundles}/private --rows 10 -o fresh.csv").exit_code == 0
    assert run(f"sample {bundles}/private --rows 10 -o fresh.csv").exit_code == 2  # it exists


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ("private --rows 0 -o x.csv", 2, "--rows must be a whole number"),
        ("private --rows 5 -o x.txt", 2, "name a .csv or .parquet file"),
        ("private --rows 5 --where ward -o x.csv", 2, "'ward' is no condition"),
        ("private --rows 5 --where ward=mars -o x.csv", 2, "'ward' has no category 'mars'"),
        ("private --rows 5 --where planet=mars -o x.csv", 2, "there is no column 'planet'"),
        ("private --rows 5 --where cost=dear -o x.csv", 2, "and 'dear' is none"),
        ("private --rows 5 --where 'ward>surgery' -o x.csv", 2, "not ordered"),
        ("private --rows 5 -o {bundles}/private/x.csv", 2, "is inside a bundle"),
        ("anonymous --rows 5 -o x.csv", 3, "no more rows can be drawn"),
    ],
)
def test_what_cannot_be_drawn_is_refused(bundles, tmp_path, monkeypatch, options, code, words):
    monkeypatch.chdir(tmp_path)
    result = run(f"sample {bundles}/{options.replace('{bundles}', str(bundles))}")
    assert result.exit_code == code
    assert words in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_bundle_is_cited_with_its_promise_and_fingerprint(bundles, folder):
    facts = json.loads(run(f"cite {bundles}/private --json").stdout)
    assert facts["sha256"] == bundle_digest(bundles / "private")
    assert "from a confidential table of 1,500 rows; (ε, δ)-differential privacy" in facts["sentence"]
    assert "ε = 2, δ = 1e-6, for one row" in facts["sentence"]
    assert facts["bibtex"].startswith("@misc{covey-" + facts["sha256"][:12])
    words = run(f"cite {bundles}/anonymous").stdout
    assert "20-anonymous microaggregation; NOT differential privacy" in words
    (folder / "README.md").write_text("changed")
    assert run(f"cite {folder}").exit_code == 3


def test_numbers_are_drawn_from_their_measures_and_conditioned_on_what_is_missing(tmp_path):
    generator = np.random.default_rng(0)
    cells = zip(generator.random(900), generator.integers(0, 50, 900), strict=True)
    income = [None if u < 0.3 else float(x) for u, x in cells]
    schema = Schema((Field("income", "number", 0, 10**6, decimals=0, special=("no",)), WARDS))
    table = {"income": income, "ward": ["A" if x is None else "B" for x in income]}
    synth = covey.PrivateSynthesizer(20.0, schema=schema, seed=1).fit(table)
    release = covey.load(write_bundle(synth.release(100), tmp_path / "bundle"))
    rows = release.sample(400, seed=1)
    assert rows["income"].cast(pl.Float64, strict=False).max() < 60
    missing = release.sample(200, {"income": None}, seed=2)
    assert missing["income"].null_count() == len(missing)
    assert (missing["ward"] == "A").mean() > 0.9
    assert (rows["ward"] == "A").mean() < 0.4


def test_a_range_of_a_number_is_drawn_though_it_cuts_cells(tmp_path):
    """Cells do not end where the ranges do: rows beyond them are drawn again."""
    generator = np.random.default_rng(0)
    income, ward = generator.integers(0, 5000, 3000), generator.random(3000)
    table = {"income": income, "ward": np.where(ward < income / 5000, "A", "B")}
    schema = Schema((Field("income", "integer", 0, 4999, required=True), WARDS))
    release = covey.PrivateSynthesizer(20.0, schema=schema, seed=1, certificate_share=0).fit(table).release(100)
    rows = release.sample(500, {"income": (4321, None)}, seed=2)
    assert len(rows) == 500
    assert rows["income"].min() >= 4321
    assert (rows["ward"] == "A").mean() > 0.8
    both = release.sample(50, {"income": [(0, 100), (4900, 4950)], "ward": "B"}, seed=2)
    assert (both["income"].is_between(0, 100) | both["income"].is_between(4900, 4950)).all()
    assert both["income"].is_between(0, 100).mean() > 0.8  # ward B is where incomes are low: weights follow it


def test_an_answer_reads_no_synthetic_row_and_verify_reads_them_all(folder, monkeypatch):
    seen = []
    monkeypatch.setattr(Schema, "validate", lambda self, table: seen.append(table.rows) or [])
    release = covey.load(folder)
    assert 0 < release.share({"emergency": True}, about="table").value < 1
    assert not seen
    assert (verify_bundle(folder).rows, release.parts.m, sum(seen)) == (400, 400, 400)

"""covey evaluate reads a table as its release did, from what the bundle says of it and from the file."""

import json
import warnings

import click
import numpy as np
import polars as pl
import pytest
import xlsxwriter

from covey.desk.cli import main
from covey.errors import CoveyWarning
from covey.release.verify import SUMS, file_digest
from covey.workflow import PrivateOrder, evaluate, release
from tests.commands import ok, run

pytestmark = [pytest.mark.usefixtures("few_steps"), pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")]

N = 240
_generator = np.random.default_rng(5)
WARD = _generator.choice(["Süd", "Nord", "Łódź"], N).tolist()
COST = (_generator.integers(100_000, 999_999, N) / 100).tolist()
DAYS = [f"2023-{m:02}-{d:02}" for m, d in _generator.integers(1, [13, 29], (N, 2))]
ROWS = list(zip(WARD, COST, DAYS, strict=True))
BUDGET = ("--epsilon", 5, "--delta", "1e-6", "--seed", 1)


def lines(separator=",", title=(), spelled=str, dated=str):
    """The table as text, its numbers and days spelled so."""
    rows = [separator.join((ward, spelled(cost), dated(day))) for ward, cost, day in ROWS]
    return "\n".join([*title, separator.join(("ward", "cost", "day")), *rows, ""])


def german(cost):
    return f"{cost:,.2f}".translate(str.maketrans(",.", ".,"))


def of_german_day(day):
    return ".".join(reversed(day.split("-")))


def workbook(path):
    """A sheet of notes, and one that has two lines of title above the table."""
    with xlsxwriter.Workbook(path) as book:
        book.add_worksheet("Notes").write(0, 0, "see the next sheet")
        sheet = book.add_worksheet("Data")
        for place, row in enumerate([("Wards",), (), ("ward", "cost", "day"), *ROWS]):
            sheet.write_row(place, 0, row)


# The name of a file, its contents, and what a release of it has to be told.
WRITTEN = {
    "tabs": ("t.tsv", lines("\t").encode(), ()),
    "semicolons below a title": ("t.csv", lines(";", ("Our wards", "")).encode(), ()),
    "Windows-1252": ("t.csv", lines().replace("Łódź", "Köln").encode("cp1252"), ()),
    "an encoding that was said": ("t.csv", lines().encode("cp1250"), ("--encoding", "cp1250")),
    "marks and dates that were said": (
        "t.csv",
        lines(";", (), german, of_german_day).encode(),
        ("--decimal", ",", "--thousands", ".", "--date-format", "%d.%m.%Y"),
    ),
    "a sheet that was said": ("t.xlsx", workbook, ("--sheet", "Data")),
}


@pytest.mark.parametrize("case", WRITTEN)
def test_a_table_is_evaluated_as_its_release_read_it(tmp_path, case):
    name, contents, options = WRITTEN[case]
    table, bundle, plain = tmp_path / name, tmp_path / "out", tmp_path / "plain.csv"
    table.write_bytes(contents) if isinstance(contents, bytes) else contents(table)
    plain.write_text(lines().replace("Łódź", "Köln" if "1252" in case else "Łódź"), encoding="utf-8")
    ok("release", table, "--learn", *BUDGET, *options, "--out", bundle)
    ok("verify", bundle)
    clean = json.loads(ok("evaluate", plain, bundle, "--json", *as_plain(options)).stdout)
    for places in ((table, bundle), (bundle, table)):
        found = json.loads(ok("evaluate", *places, "--json").stdout)
        assert found["columns"] == clean["columns"]
        assert found["changed"] == clean["changed"]
    assert evaluate(bundle, table, predicting=False).figures["columns"] == clean["columns"]


def as_plain(options):
    """What says that the plain table is written otherwise than the one that was released with these options."""
    said = {"--decimal": ".", "--thousands": "", "--date-format": "%Y-%m-%d", "--encoding": "utf-8"}
    return [word for option in options[::2] if option in said for word in (option, said[option])]


def test_one_letter_of_one_record_is_not_seen_in_what_a_bundle_says_of_its_source(tmp_path):
    """It decides the encoding that covey finds; the separator and the header line, which all records share, may be said."""
    said = []
    for letter in ("u", "ü"):
        table = tmp_path / f"{letter}.csv"
        table.write_bytes(lines(";").replace("ü", "u").replace("Łódź", "Ost").replace("u", letter, 1).encode("cp1252"))
        order = {"epsilon": 5, "delta": 1e-6, "learn": True, "seed": 1, "force": True}
        release(PrivateOrder(table=table, schema=None, out=tmp_path / "out", **order))
        said.append(json.loads((tmp_path / "out/privacy.json").read_text())["source"])
    assert said == [{"synthetic": {"dialect": {"delimiter": ";"}}}] * 2


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    folder = tmp_path_factory.mktemp("source")
    (folder / "t.csv").write_text(lines(";", (), german), encoding="utf-8")
    ok("release", folder / "t.csv", "--learn", *BUDGET, "--decimal", ",", "--thousands", ".", "--out", folder / "out")
    return folder / "out"


@pytest.mark.parametrize(
    "source",
    [
        [],
        {"other": {}},
        {"synthetic": []},
        {"synthetic": {"path": "/etc/passwd"}},
        {"synthetic": {"dialect": {"delimiter": "x"}}},
        {"synthetic": {"encoding": "no such encoding"}},
        {"synthetic": {"fields": {"nobody": {"decimalChar": ","}}}},
        {"synthetic": {"fields": {"cost": {"decimalChar": "#"}}}},
        {"synthetic": {"fields": {"cost": {"format": "%d.%m.%Y"}}}},
        {"synthetic": {"fields": {"cost": 7}}},
    ],
)
def test_a_source_that_covey_would_not_write_is_refused_in_words(bundle, tmp_path, source):
    facts = json.loads((bundle / "privacy.json").read_text())
    assert facts["source"]["synthetic"]["fields"] == {"cost": {"decimalChar": ",", "groupChar": "."}}
    changed = tmp_path / "changed"
    changed.mkdir()
    for path in bundle.iterdir():
        (changed / path.name).write_bytes(path.read_bytes())
    (changed / "privacy.json").write_text(json.dumps(facts | {"source": source}))
    sums = [line.split("  ") for line in (changed / SUMS).read_text().splitlines()]
    (changed / SUMS).write_text("".join(f"{file_digest(changed / name)}  {name}\n" for _, name in sums))
    for words in (("verify", changed), ("evaluate", bundle.parent / "t.csv", changed)):
        refused = run(*words)
        assert refused.exit_code in (2, 3), refused.output
        assert "Traceback" not in refused.output
        assert refused.exception is None or isinstance(refused.exception, SystemExit)


def test_an_anonymous_table_is_evaluated_as_it_was_read(bundle, tmp_path):
    """Its bundle says how the table was written, as a private one does; a schema beside it need say nothing of that."""
    fields = [
        {"name": "ward", "type": "string", "constraints": {"enum": sorted(set(WARD))}},
        {"name": "cost", "type": "number", "constraints": {"minimum": 1000, "maximum": 10_000}},
    ]
    (tmp_path / "schema.json").write_text(json.dumps({"fields": fields}))
    schema = ("--schema", tmp_path / "schema.json")
    said = ("--separator", ";", "--decimal", ",", "--thousands", ".")
    table = bundle.parent / "t.csv"
    ok("anonymize", table, *schema, "--group-size", 20, "--seed", 1, *said, "--out", tmp_path / "out")
    plain = json.loads(ok("evaluate", table, tmp_path / "out", "--json").stdout)
    assert plain == json.loads(ok("evaluate", tmp_path / "out", table, *schema, "--json").stdout)
    assert plain == json.loads(ok("evaluate", tmp_path / "out", table, *schema, *said, "--json").stdout)
    assert not [change for change in plain["changed"] if "type" in str(change)]


def test_persons_and_their_events_are_evaluated_as_their_release_read_them(tmp_path):
    events = "patient;cost\n" + "".join(f"{j % 80};{german(cost)}\n" for j, cost in enumerate(COST))
    (tmp_path / "visits.csv").write_text(events, encoding="utf-8")
    package = tmp_path / "package.json"
    ok("init", tmp_path / "visits.csv", "--person", "patient", "-o", package)
    drafted = json.loads(package.read_text())
    for field in drafted["resources"][0]["schema"]["fields"]:
        field.pop("decimalChar", None), field.pop("groupChar", None)
    drafted["resources"][0]["covey"]["at_most"] = 4
    package.write_text(json.dumps(drafted))
    ok("confirm", package, "cost")
    ok("release", package, *BUDGET, "--decimal", ",", "--thousands", ".", "--out", tmp_path / "out")
    plain = json.loads(ok("evaluate", package, tmp_path / "out", "--json").stdout)
    said = json.loads(ok("evaluate", tmp_path / "out", package, "--decimal", ",", "--thousands", ".", "--json").stdout)
    drawn_anew = "total_variation_of_resampled_true_persons"
    assert {**plain, drawn_anew: None} == {**said, drawn_anew: None}
    assert plain["changed"] == []


@pytest.mark.parametrize("name", sorted(main.commands))
def test_a_warning_is_a_plain_line_whatever_the_command(name, monkeypatch):
    def warn():
        warnings.warn("something about sizes", CoveyWarning, stacklevel=1)
        warnings.warn("something about sizes", CoveyWarning, stacklevel=1)

    monkeypatch.setitem(main.commands, name, click.Command(name, callback=warn))
    done = run(name)
    assert (done.exit_code, done.stderr) == (0, "warning: something about sizes\n")


def test_two_columns_of_a_name_are_told_in_a_line_of_evaluate(tmp_path):
    table = tmp_path / "t.csv"
    cells = pl.Series(COST).cast(pl.String)
    table.write_text("ward,cost,cost\n" + "".join(f"{w},{c},{c}\n" for w, c in zip(WARD, cells, strict=True)))
    ok("release", table, "--learn", *BUDGET, "--columns", "ward,cost", "--out", tmp_path / "out")
    told = ok("evaluate", table, tmp_path / "out").stderr
    assert told == "warning: a column is called 'cost_2': another one has the name without its number.\n"

"""Everything that takes a path: each option, argument, field of an order and function has a row here.

A row says how it is used. Whatever it is given, nothing is charged and nothing is left behind for a URL or a pipe, and a path
with links and `..` is the place that it stands for. Who adds an option that takes a path adds its row.
"""

import dataclasses
import inspect
import json
import os
import warnings
from pathlib import Path
from types import SimpleNamespace

import click
import pytest

import covey
from covey.desk.cli import main
from covey.errors import CoveyError
from covey.workflow import AnonymousOrder, PrivateOrder
from tests.commands import run, told
from tests.few import few_steps as take_few_steps

pytestmark = pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")

URLS = ("s3://bucket/x", "https://example.org/x.csv", "file:///tmp/x.csv", "gs:/bucket/x")
FIELDS = [
    {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 99, "required": True}},
    {"name": "ward", "type": "string", "constraints": {"enum": ["A", "B"], "required": True}},
]
RELEASE = "release {table} --schema {schema} --epsilon 1 --seed 1 --rows 20 --out {new}"
CHARGED = "release {table} --schema {schema} --epsilon 1 --dataset patients --rows 20 --out {new}"
ANONYMIZE = "anonymize {table} --schema {schema} --group-size 9 --rows 20 --seed 1 --out {new}"

# By command and parameter: what is asked with {} in the place of the path, and which plain place the path may be.
ROWS = {
    ("init", "tables"): ("init {} -o {new}", "table"),
    ("init", "out"): ("init {table} --force -o {}", "output"),
    ("init", "metadata"): ("init {table} --import {} -o {new}", "metadata"),
    ("relations", "table"): ("relations {} --schema {schema}", "table"),
    ("relations", "schema"): ("relations {table} --schema {}", "schema"),
    ("confirm", "schema_path"): ("confirm {} --all", "schema"),
    ("check", "table"): ("check {} --schema {schema}", "table"),
    ("check", "schema"): ("check {table} --schema {}", "schema"),
    ("plan", "schema_path"): ("plan {} --rows 300 --epsilon 1", "schema"),
    ("ledger open", "ledger"): ("ledger open patients --budget 9 --ledger {}", "ledger"),
    ("ledger show", "ledger"): ("ledger show --ledger {}", "ledger"),
    ("ledger history", "ledger"): ("ledger history patients --ledger {}", "ledger"),
    ("release", "table"): (RELEASE.replace("{table}", "{}"), "table"),
    ("release", "schema"): (RELEASE.replace("{schema}", "{}"), "schema"),
    ("release", "prior"): (RELEASE + " --prior {}", "bundle"),
    ("release", "ledger"): (CHARGED + " --ledger {}", "ledger"),
    ("release", "log"): (CHARGED + " --log {}", "output"),
    ("release", "out"): (CHARGED.replace("{new}", "{}"), "output"),
    ("anonymize", "table"): (ANONYMIZE.replace("{table}", "{}"), "table"),
    ("anonymize", "schema"): (ANONYMIZE.replace("{schema}", "{}"), "schema"),
    ("anonymize", "log"): (ANONYMIZE + " --log {}", "output"),
    ("anonymize", "out"): (ANONYMIZE.replace("{new}", "{}"), "output"),
    ("verify", "folder"): ("verify {}", "bundle"),
    ("resume", "folder"): ("resume {}", "bundle"),
    ("cite", "folder"): ("cite {}", "bundle"),
    ("ask", "folder"): ("ask {} share ward=A", "bundle"),
    ("evaluate", "table"): ("evaluate {} {bundle}", "table"),
    ("evaluate", "folder"): ("evaluate {table} {}", "bundle"),
    ("evaluate", "schema"): ("evaluate {table} {bundle} --schema {}", "schema"),
    ("evaluate", "out"): ("evaluate {table} {bundle} --force --out {}", "output"),
    ("evaluate", "report"): ("evaluate {table} {bundle} --force --report {}", "output"),
    ("sample", "folder"): ("sample {} --rows 5 -o {new}.csv", "bundle"),
    ("sample", "out"): ("sample {bundle} --rows 5 --force -o {}", "output"),
    ("tables", "folder"): ("tables {} -o {new}", "bundle"),
    ("tables", "out"): ("tables {bundle} -o {}", "output"),
    ("demo", "table"): ("demo --rows 50 --force --table {}", "output"),
    ("demo", "out"): ("demo --rows 100 --force --out {}", "output"),
    ("serve", "out"): ("serve --no-browser --out {}", "output"),
    ("serve", "ledger"): ("serve --no-browser --ledger {}", "ledger"),
}
# Parameters that are text and no path, whatever stands in them.
WORDS = {"relation", "sql", "separator", "decimal", "thousands", "encoding", "missing", "date_format", "sheet"}
WORDS |= {
    "person",
    "columns",
    "important",
    "target",
    "targets",
    "sensitive",
    "dataset",
    "name",
    "title",
    "owner",
    "purpose",
}
WORDS |= {"conditions", "question", "fields", "add", "epsilon", "delta", "budget", "delta_budget", "target_error"}
WORDS |= {"confidence", "accept_misfits"}


def commands(command=main, names=()):
    """Every command with its name, also those of groups."""
    if not isinstance(command, click.Group):
        yield " ".join(names), command
        return
    for name, inner in command.commands.items():
        yield from commands(inner, (*names, name))


def as_text(parameter):
    """Whether a parameter takes what a path could be: neither numbers nor a choice."""
    numbers = click.types.IntParamType | click.types.FloatParamType | click.types.BoolParamType
    return not isinstance(parameter.type, numbers | click.Choice | click.IntRange)


def test_every_option_and_argument_that_could_take_a_path_has_a_row_or_is_known_as_words():
    texts = {(name, one.name) for name, command in commands() for one in command.params if as_text(one)}
    assert {pair for pair in texts if pair not in ROWS and pair[1] not in WORDS} == set()
    paths = {
        (name, one.name)
        for name, command in commands()
        for one in command.params
        if isinstance(one.type, click.Path | click.File) or getattr(one.type, "func", None) is Path
    }
    assert paths <= ROWS.keys() <= texts


@pytest.mark.parametrize(("order", "command"), [(PrivateOrder, "release"), (AnonymousOrder, "anonymize")])
def test_every_path_of_an_order_is_an_option_with_a_row(order, command):
    paths = {own.name for own in dataclasses.fields(order) if "Path" in str(own.type)}
    assert paths == {name for of, name in ROWS if of == command}
    texts = {own.name for own in dataclasses.fields(order) if "str" in str(own.type)}
    assert texts - {"method"} <= WORDS


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A folder with a table, its schema, metadata, a bundle, a ledger and a pipe."""
    folder = tmp_path_factory.mktemp("paths")
    lines = "".join(f"{k % 90},{'AB'[k % 2]}\n" for k in range(300))
    (folder / "patients.csv").write_text("age,ward\n" + lines, encoding="utf-8")
    (folder / "schema.json").write_text(json.dumps({"fields": FIELDS}), encoding="utf-8")
    columns = {name: {"sdtype": "boolean"} for name in ("age", "ward")}
    (folder / "sdv.json").write_text(json.dumps({"columns": columns}), encoding="utf-8")
    schema = covey.Schema.load(folder / "schema.json")
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        take_few_steps(patch.setattr)
        made = covey.PrivateSynthesizer(1.0, schema=schema, seed=1).fit(folder / "patients.csv").release(30)
        covey.write_bundle(made, folder / "bundle")
    told("ledger", "open", "patients", "--budget", "9", "--ledger", folder / "ledger.sqlite")
    return folder


@pytest.fixture
def here(template, tmp_path, monkeypatch, few_steps):
    """A copy of that folder to work in, with a link, a pipe, and a door to itself."""
    for name in ("patients.csv", "schema.json", "sdv.json", "ledger.sqlite", "ledger.sqlite.mark"):
        (tmp_path / name).write_bytes((template / name).read_bytes())
    (tmp_path / "bundle").symlink_to(template / "bundle")
    (tmp_path / "door").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe.csv")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COVEY_LEDGER", str(tmp_path / "ledger.sqlite"))
    monkeypatch.setattr("uvicorn.Server.run", lambda _, sockets: [each.close() for each in sockets])
    monkeypatch.setattr("tempfile.tempdir", None)  # the app has its own
    monkeypatch.setattr("covey.desk.web.app.signal.signal", lambda *_: None)
    return tmp_path


PLAIN = {"table": "patients.csv", "schema": "schema.json", "metadata": "sdv.json", "bundle": "bundle", "new": "new"}
PLAIN |= {"ledger": "ledger.sqlite", "output": "written.csv"}


def ask(row, place):
    """A command with this place in its row."""
    words, _ = ROWS[row]
    if row == ("tables", "out"):
        place = str(place).replace("written.csv", "written")  # a folder
    return run(*(word.format(place, **PLAIN) for word in words.split()))


def entries(folder):
    """What lies in a folder, with the times at which it was written."""
    return {path.name: path.lstat().st_mtime_ns for path in folder.iterdir()}


@pytest.mark.parametrize("row", ROWS, ids=" ".join)
def test_a_url_or_a_pipe_is_refused_and_nothing_is_charged_or_written(here, row):
    before, ledger = entries(here), (here / "ledger.sqlite").read_bytes()
    for place in (*URLS, "pipe.csv"):
        done = ask(row, place)
        assert done.exit_code in (2, 3, 4), (place, done.output, done.exception)
        assert isinstance(done.exception, SystemExit)
        if row[1] in ("out", "log", "report", "ledger") and place != "pipe.csv":
            assert "is a URL" in done.output
    after = entries(here)
    assert {name for name in after if name not in before} <= {"workspace"}
    assert (here / "ledger.sqlite").read_bytes() == ledger


# Without the demonstration, whose release goes the way of every other and takes long, and without the app, which would serve.
@pytest.mark.parametrize("row", [row for row in ROWS if row != ("demo", "out") and row[0] != "serve"], ids=" ".join)
def test_links_and_dots_lead_to_the_place_that_they_stand_for(here, row):
    place = PLAIN[ROWS[row][1]]
    done = ask(row, here / "door" / ".." / here.name / "door" / place)
    assert done.exit_code == 0, (done.output, done.exception)
    if ROWS[row][1] == "output":
        assert (here / place).exists() or (here / "written").exists()


OUTPUTS = [row for row in ROWS if ROWS[row][1] == "output"]


@pytest.mark.parametrize("row", OUTPUTS, ids=" ".join)
@pytest.mark.parametrize("make", [os.symlink, os.link], ids=["link", "another name"])
def test_no_output_reaches_the_table_through_another_name(here, row, make):
    table = (here / "patients.csv").read_bytes()
    make(here / "patients.csv", here / "written.csv")
    make(here / "patients.csv", here / "written")
    done = ask(row, "written.csv")
    assert isinstance(done.exception, SystemExit | None)
    assert (here / "patients.csv").read_bytes() == table


@pytest.mark.parametrize("row", OUTPUTS, ids=" ".join)
def test_an_output_that_is_a_link_to_nowhere_is_refused_before_the_charge(here, row):
    """A finished bundle cannot be put over one: the release was lost after its charge."""
    (here / "written.csv").symlink_to(here / "nowhere")
    (here / "written").symlink_to(here / "nowhere")
    ledger = (here / "ledger.sqlite").read_bytes()
    done = ask(row, "written.csv")
    assert done.exit_code == 2, (done.output, done.exception)
    assert "leads nowhere" in done.output
    assert (here / "written.csv").is_symlink()
    assert not (here / "nowhere").exists()
    assert (here / "ledger.sqlite").read_bytes() == ledger


# Python: by function and argument, what is called with a place.
def synthesizer(schema, **options):
    return covey.PrivateSynthesizer(1.0, schema=schema, seed=1, **options)


SCHEMA = covey.Schema.from_dict({"fields": FIELDS})
SESSION = SimpleNamespace()  # of Spark, which is not reached
CALLS = {
    ("AnonymousSynthesizer.fit", "X"): lambda place: covey.AnonymousSynthesizer(9, schema=SCHEMA).fit(place),
    ("AnonymousSynthesizer.prepare", "table"): lambda place: covey.AnonymousSynthesizer(9, schema=SCHEMA).prepare(
        place
    ),
    ("Database.__init__", "url"): lambda place: synthesizer(SCHEMA).fit(covey.Database(place, table="t")),
    ("Description.load", "path"): covey.Description.load,
    ("Description.places", "file"): lambda place: covey.Description.load(place).places(Path(place)),
    ("Description.save", "path"): covey.Description.of(SCHEMA).save,
    ("Ledger.__init__", "path"): lambda place: covey.Ledger(place).open_dataset("x", 1),
    ("PrivateSynthesizer.__init__", "prior"): lambda place: synthesizer(SCHEMA, prior=place).fit("patients.csv"),
    ("PrivateSynthesizer.fit", "X"): lambda place: synthesizer(SCHEMA).fit(place),
    ("PrivateSynthesizer.prepare", "table"): lambda place: synthesizer(SCHEMA).prepare(place),
    ("Schema.draft", "table"): covey.Schema.draft,
    ("Schema.draft_with_notes", "table"): covey.Schema.draft_with_notes,
    ("Schema.load", "path"): covey.Schema.load,
    ("Schema.save", "path"): SCHEMA.save,
    ("Schema.validate", "table"): SCHEMA.validate,
    ("SparkParquet.__init__", "path"): lambda place: synthesizer(SCHEMA).fit(covey.SparkParquet(SESSION, place)),
    ("load", "folder"): covey.load,
    ("verify_bundle", "folder"): covey.verify_bundle,
    ("write_bundle", "folder"): lambda place: covey.write_bundle(covey.load("bundle"), place),
}
# The folder of a document: what it names is looked for there (tests/test_places.py).
FOLDERS = {f"{own}.{way}_dict" for own in ("Description", "Field", "Schema") for way in ("from", "to")}


def functions():
    """What a user calls in Python, by name."""
    for name in covey.__all__:
        found = getattr(covey, name)
        if not inspect.isclass(found):
            yield from [(name, found)] if inspect.isfunction(found) else []
            continue
        for word, method in inspect.getmembers(found, callable):
            if word == "__init__" or not word.startswith("_"):
                yield f"{name}.{word}", method


def test_every_argument_in_python_that_takes_a_path_has_a_row():
    taken = set()
    for name, function in functions():
        with_signature = inspect.isfunction(function) or inspect.ismethod(function)
        for one in inspect.signature(function).parameters.values() if with_signature else ():
            said = str(one.annotation)
            named = one.name in ("path", "folder", "file", "url", "table", "X", "prior", "out", "place")
            if "Path" in said or (named and said in ("Any", "str")):
                taken.add((name, one.name))
    assert {pair for pair in taken if pair[0] not in FOLDERS} == CALLS.keys()


@pytest.mark.parametrize("row", CALLS, ids=" ".join)
def test_in_python_too_a_url_or_a_pipe_is_refused_and_nothing_is_written(here, row):
    before = entries(here)
    for place in (*URLS, "pipe.csv", Path("s3://bucket/x")):
        with pytest.raises(CoveyError):
            CALLS[row](place)
    assert entries(here) == before


def test_a_url_as_the_ledger_of_the_environment_is_refused(here, monkeypatch):
    monkeypatch.setenv("COVEY_LEDGER", "s3://bucket/ledger")
    done = run("ledger open more --budget 3")
    assert done.exit_code == 4
    assert "is a URL" in done.output

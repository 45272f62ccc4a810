"""Which places on this machine are read and written: nothing that a document names reaches a file of its reader.

A schema, a package or a bundle may come from somebody else, so what it names must lie beside it. Outputs are local.
"""

import contextlib
import copy
import dataclasses
import functools
import hashlib
import json
import os
import sys
from itertools import product
from pathlib import Path

import pytest

import covey
from covey.errors import CoveyError, CoveyWarning, ParameterError
from covey.release.answers.load import load
from covey.release.verify import verify_bundle
from covey.tables import document
from covey.tables.derived_fields import WORDS
from covey.tables.resources import Parent, Resource
from covey.tables.schema import KINDS
from tests import clinic
from tests.commands import run, told

SECRET = "READER-SECRET"
CELLS = "pid,ward,mark\n" + "".join(f"{k},{'AB'[k % 2]},{SECRET}-{k}\n" for k in range(300))
PID = {"name": "pid", "type": "integer", "constraints": {"minimum": 0, "maximum": 999, "required": True}}
WARD = {"name": "ward", "type": "string", "constraints": {"enum": ["A", "B"], "required": True}}


def marked(rule):
    """A schema of somebody else, whose third column follows from the first."""
    return {"fields": [PID, WARD, {"name": "mark", "type": "string", "covey": {"derived": {"from": ["pid"], **rule}}}]}


def put(place, document):
    """A document written to its place."""
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps(document), encoding="utf-8")
    return place


@pytest.fixture
def confidential(at_home, few_steps):
    """A folder with a confidential table, and one for what was received."""
    (at_home / "patients.csv").write_text(CELLS, encoding="utf-8")
    (at_home / "received").mkdir()
    told("ledger open patients --budget 9")
    return at_home


def linked(folder, make):
    """A file that lies beside the schema in name alone."""
    make(folder / "patients.csv", folder / "received" / "list.csv")
    return "list.csv"


# What a schema may not name as a public list, and what makes it lie there.
FOREIGN = {
    "an absolute path": lambda folder: str(folder / "patients.csv"),
    "a path upwards": lambda folder: "../patients.csv",
    "a path down and up": lambda folder: "x/../../patients.csv",
    "a link": lambda folder: linked(folder, lambda target, place: place.symlink_to(target)),
    "another name of the table": lambda folder: linked(folder, lambda target, place: os.link(target, place)),
    "a copy of the table": lambda folder: linked(folder, lambda target, place: place.write_bytes(target.read_bytes())),
    "a pipe": lambda folder: linked(folder, lambda target, place: os.mkfifo(place)),
    "a URL": lambda folder: (folder / "patients.csv").as_uri(),
    "an address": lambda folder: "https://example.org/list.csv",
    "stars": lambda folder: "*.csv",
    "no text": lambda folder: ["patients.csv"],
}


def fitted(schema, table):
    """A fit in Python, under the schema of a file."""
    return covey.PrivateSynthesizer(1.0, schema=covey.Schema.load(schema), seed=1).fit(table)


@pytest.mark.filterwarnings("ignore:field 'mark' is derived:covey.errors.CoveyWarning")
@pytest.mark.parametrize("kind", FOREIGN)
def test_a_schema_of_somebody_else_publishes_no_confidential_cell(confidential, kind):
    place = put(confidential / "received" / "schema.json", marked({"table": FOREIGN[kind](confidential)}))
    done = run(*f"release patients.csv --schema {place} --epsilon 1 --dataset patients --out bundle".split())
    assert done.exit_code == 2
    assert "mark" in done.output
    assert SECRET not in done.output
    assert not (confidential / "bundle").exists()
    assert json.loads(told("ledger show --json"))[0]["spent"] == 0
    with pytest.raises(ParameterError, match="mark"):
        fitted(place, "patients.csv")


def test_an_anonymous_release_publishes_no_list_that_is_its_table(confidential):
    put(confidential / "schema.json", marked({"table": "patients.csv"}))
    done = run("anonymize patients.csv --schema schema.json --group-size 20 --out bundle")
    assert done.exit_code == 2
    assert "which is the confidential table itself" in done.output


def test_a_list_that_becomes_public_is_said_before_the_charge(confidential):
    """On the command line, at once; in Python when the schema is loaded; and the app reads no file beside a schema."""
    (confidential / "received" / "list.csv").write_text("pid,mark\n0,a\n1,b\n", encoding="utf-8")
    place = put(confidential / "received" / "schema.json", marked({"table": "list.csv"}))
    said = "'mark' is derived from list.csv: 2 rows of that file become public"
    refused = run(*f"release patients.csv --schema {place} --epsilon 1 --dataset nobody --out bundle".split())
    assert refused.exit_code == 4
    assert refused.stderr.index(said) < refused.stderr.index("nobody")
    with pytest.warns(CoveyWarning, match=said):
        covey.Schema.load(place)
    confirmed = run("confirm", place, "--all")
    assert said in confirmed.stderr
    assert json.loads(place.read_text())["fields"][2]["covey"]["derived"] == {"from": ["pid"], "table": "list.csv"}
    table = confidential / "patients.csv"
    table.write_text("pid,ward,mark\n" + "".join(f"{k},{'AB'[k % 2]},a\n" for k in range(300)), encoding="utf-8")
    done = run(
        *f"release patients.csv --schema {place} --epsilon 1 --dataset patients --out bundle --accept-misfits 1".split()
    )
    assert done.exit_code == 0, done.output
    derived = json.loads((confidential / "bundle" / "schema.json").read_text())["fields"][2]["covey"]["derived"]
    assert derived == {"from": ["pid"], "map": {"0": "a", "1": "b"}}


def sealed(bundle, name, change):
    """A bundle whose file somebody else has changed, with checksums to match."""
    found = json.loads((bundle / name).read_text(encoding="utf-8"))
    change(found)
    put(bundle / name, found)
    seal(bundle)


def seal(bundle):
    """Checksums that match whatever the files of a bundle hold."""
    for sums in ("SHA256SUMS", "SHA256SUMS.report"):
        names = [line.partition("  ")[2] for line in (bundle / sums).read_text(encoding="utf-8").splitlines()]
        lines = [f"{hashlib.sha256((bundle / one).read_bytes()).hexdigest()}  {one}\n" for one in names]
        (bundle / sums).write_text("".join(lines), encoding="utf-8")


@pytest.mark.parametrize("kind", [*FOREIGN, "a file of the bundle"])
def test_a_received_bundle_opens_no_file_of_its_reader(confidential, kind):
    schema = covey.Schema.from_dict(marked({"map": {"0": "a", "1": "b"}}))
    rows = {"pid": list(range(300)), "ward": ["A", "B"] * 150, "mark": ["a"] * 300}
    bundle = confidential / "received" / "bundle"
    covey.write_bundle(covey.PrivateSynthesizer(1.0, schema=schema, seed=1).fit(rows).release(20), bundle)
    verify_bundle(bundle)
    name = "synthetic.csv" if kind == "a file of the bundle" else FOREIGN[kind](confidential)
    listed = {"from": ["pid"], "table": name}
    sealed(bundle, "schema.json", lambda found: found["fields"][2]["covey"].update(derived=listed))
    for opened in (load, verify_bundle, lambda folder: told("evaluate", "patients.csv", folder)):
        with pytest.raises((CoveyError, AssertionError), match="here none is read"):
            opened(bundle)


# Every key of every document: whatever stands there, no file but the document itself is opened.

OPENED = None  # what is opened while a test listens


def _hear(event, arguments):
    if OPENED is not None and event == "open" and isinstance(arguments[0], str | bytes):
        OPENED.append(Path(os.fsdecode(arguments[0])).resolve())


sys.addaudithook(_hear)


@contextlib.contextmanager
def opened_below(folder, allowed):
    """Fails where a file of this folder is opened that is not one of those allowed, nor in one of them."""
    global OPENED
    OPENED = []
    try:
        yield
    finally:
        seen, OPENED = OPENED, None
    inside = [path for path in seen if path.is_relative_to(folder.resolve())]
    assert [path for path in inside if not any(path.is_relative_to(one.resolve()) for one in allowed)] == []


@pytest.fixture
def reader(tmp_path):
    """A folder of a reader with secrets in it, and one in it for what was received; and the names that lead from there."""
    (tmp_path / "patients.csv").write_text(CELLS, encoding="utf-8")
    received = tmp_path / "received"
    received.mkdir()
    (received / "link.csv").symlink_to(tmp_path / "patients.csv")
    os.mkfifo(received / "pipe.csv")
    (received / "door").symlink_to(tmp_path)
    return received


def hostile(received):
    """Names that lead out of the folder, or nowhere."""
    inside = ["../patients.csv", "link.csv", "door/patients.csv", "pipe.csv", "*.csv"]
    outside = received.parent / "patients.csv"
    return [*inside, str(outside), outside.as_uri(), "https://example.org/x.csv", "s3://bucket/x.csv"]


def shapes(name):
    """What a name could stand in."""
    table = {"from": ["pid"], "table": name}
    return [name, [name], {"path": name}, table, [table]]


# Keys that take the name of a file, or hold what does: their other words are walked below.
TAKING = {"derived", "fields", "covey", "constraints"}
# Keys that take none. Whoever adds one says here which it is.
PLAIN = {"missingValues", "dialect", "encoding", "name", "type", "format", "decimalChar", "groupChar", "trueValues"}
PLAIN |= {"falseValues", "draft", "rules", "important", "target", "triples", "relations", "minimum", "maximum", "enum"}
PLAIN |= {"required", "bins", "other", "default", "decimals", "constant", "expected", "levels", "ordered", "special"}
PLAIN |= {"learn", "learned", "from_table", "after", "difference_from", "difference", "warning", "confirmed"}
DERIVED = {"from", "map", "table", "edges", "labels", "expression"}


def put_in(place, key, what):
    """A schema with something under a key at one of the places where keys are known."""
    if place == document.OF_SCHEMA:
        return {"fields": [PID, WARD], key: what}
    if place == document.OWN_OF_SCHEMA:
        return {"fields": [PID, WARD], "covey": {key: what}}
    inside = {document.OF_FIELD: {key: what}, document.LIMITS_OF_FIELD: {"constraints": {key: what}}}
    own = inside.get(place, {"covey": {key: what}})
    return {"fields": [PID, {"name": "mark", "type": "string", **own}]}


def test_every_key_of_a_schema_is_known_to_take_a_path_or_none():
    places = {**document.PROPERTIES, **document.SECTIONS}
    assert {key for keys in places.values() for key in keys} == TAKING | PLAIN
    assert set(WORDS) == DERIVED
    assert {own.name for own in dataclasses.fields(Resource)} == RESOURCE
    assert {own.name for own in dataclasses.fields(Parent)} == PARENT


RESOURCE = {"name", "schema", "key", "parent", "path", "table", "key_type"}
PARENT = {"table", "column", "at_most", "order", "numbered", "positions", "gaps"}


@pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")
def test_no_key_of_a_schema_opens_a_file_elsewhere(reader):
    places = {**document.PROPERTIES, **document.SECTIONS}
    keys = [(place, key) for place, keys in places.items() for key in keys]
    keys += [(document.OF_FIELD, "path"), (document.OF_SCHEMA, "path"), (document.OF_SCHEMA, "schema")]
    file, few = reader / "schema.json", hostile(reader)[:2] + hostile(reader)[5:6]
    walked = [(put_in(*at, shape), name) for at, name in product(keys, few) for shape in shapes(name)]
    for word, name, own in product(DERIVED, hostile(reader), ("derived", "expected")):
        for derived in (
            {"from": ["pid"], word: name},
            {"from": ["pid"], "map": {"1": "a"}, word: [name]},
            {word: name},
        ):
            mark = {"name": "mark", "type": "string", "covey": {own: derived}}
            walked.append(({"fields": [PID, mark]}, name))
    for kind, name in product(KINDS, few):
        walked += [({"fields": [PID, WARD], "covey": {"rules": [{kind: shape}]}}, name) for shape in shapes(name)]
    for described, name in walked:
        put(file, described)
        with opened_below(reader.parent, [file, reader / "*.csv"]):
            try:
                found = json.dumps(covey.Description.load(file).to_dict())
            except CoveyError as error:
                found = str(error)
        assert SECRET not in found, (described, name)


def leaves(part, at=()):
    """The places of all values of a document."""
    inner = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    found = [place for key, value in inner for place in leaves(value, (*at, key))]
    return found or [at]


def with_leaf(whole, at, value):
    """The document with another value there."""
    changed = copy.deepcopy(whole)
    part = changed
    for key in at[:-1]:
        part = part[key]
    part[at[-1]] = value
    return changed


def test_no_key_of_a_package_leads_to_a_file_elsewhere(reader):
    """Neither while it is loaded, nor as a place of its tables."""
    file = reader / "package.json"
    database = {"path": "clinic.db", "table": "visits"}
    whole = clinic.changed(lambda patients, visits: visits.update(database))
    whole["resources"][1]["covey"] |= {"numbered": False, "positions": True, "gaps": True}
    whole["resources"][0]["schema"]["fields"][1].setdefault("covey", {})["derived"] = {"from": ["x"], "table": "x.csv"}
    for at, name in product(leaves(whole), hostile(reader)):
        changed = with_leaf(whole, at, name)
        if at[-1] != "table" or "derived" not in at:
            del changed["resources"][0]["schema"]["fields"][1]["covey"]
        put(file, changed)
        with opened_below(reader.parent, [file, reader / "*.csv"]):
            try:
                found = covey.Description.load(file).places(file)
            except CoveyError:
                continue
        for table in found.values():
            place = table.path if isinstance(table, covey.Database) else table
            assert place.resolve().parent == reader, (at, name)


CATALOGUE = ("croissant.json", "dcat.json")  # for others to read: covey looks whether they are JSON, and no more


def reachable(bundle):
    """What somebody may have written into a bundle: for each value of each document one that leads out of it."""
    for place in sorted(set(bundle.glob("*.json")) - {bundle / name for name in CATALOGUE}):
        whole = json.loads(place.read_text(encoding="utf-8"))
        seen = set()
        for at in leaves(whole):
            if (key := tuple("" if isinstance(word, int) else word for word in at)) in seen:
                continue  # as another one of its list
            seen.add(key)
            yield place.name, whole, at


@pytest.fixture
def bundle(reader, few_steps, quick_persons, request):
    """A bundle that a reader received, of one table or of two."""
    if getattr(request, "param", "one table") == "two tables":
        synthesizer = covey.PrivateSynthesizer(1.0, schema=clinic.PACKAGE, seed=1).fit(clinic.clinic(40))
    else:
        schema = covey.Schema.from_dict(marked({"map": {"0": "a", "1": "b"}}))
        rows = {"pid": list(range(300)), "ward": ["A", "B"] * 150, "mark": ["a"] * 300}
        synthesizer = covey.PrivateSynthesizer(1.0, schema=schema, seed=1).fit(rows)
    return covey.write_bundle(synthesizer.release(20), reader / "bundle")


@pytest.mark.filterwarnings("ignore:40 persons are too few:covey.errors.CoveyWarning")
@pytest.mark.parametrize("bundle", ["one table", "two tables"], indirect=True)
def test_no_value_in_a_bundle_opens_a_file_outside_its_folder(reader, bundle):
    before = {path.name: path.read_bytes() for path in bundle.iterdir()}
    names = hostile(reader)
    for k, (file, whole, at) in enumerate(list(reachable(bundle))):
        described = file in ("schema.json", "datapackage.json") and at[-1] in ("path", "table", "from")
        for name in names if described else [names[k % len(names)]]:
            put(bundle / file, with_leaf(whole, at, name))
            seal(bundle)
            with opened_below(reader.parent, [bundle]):
                try:
                    found = json.dumps(load(bundle).described.to_dict())
                except CoveyError as error:
                    found = str(error)
            assert SECRET not in found, (file, at, name)
            for changed in (file, "SHA256SUMS", "SHA256SUMS.report"):
                (bundle / changed).write_bytes(before[changed])
    for file, name in product(CATALOGUE, names):
        whole = json.loads(before[file])
        put(bundle / file, functools.reduce(lambda left, at: with_leaf(left, at, name), leaves(whole), whole))
        seal(bundle)
        with opened_below(reader.parent, [bundle]):
            verify_bundle(bundle)
    for name in names:  # in the lists themselves
        (bundle / "SHA256SUMS").write_bytes(before["SHA256SUMS"] + f"{'0' * 64}  {name}\n".encode())
        with opened_below(reader.parent, [bundle]), pytest.raises(CoveyError):
            verify_bundle(bundle)


@pytest.mark.parametrize("make", [os.mkfifo, lambda place: place.symlink_to("../../patients.csv"), Path.mkdir])
def test_what_lies_in_a_bundle_and_is_no_plain_file_is_refused(reader, bundle, make):
    for place in list(bundle.iterdir()):
        place.rename(reader / "away")
        make(place)
        with opened_below(reader.parent, [bundle]):
            for step in (load, verify_bundle):
                with pytest.raises(CoveyError):
                    step(bundle)
        place.rename(reader / f"{place.name} was none")
        (reader / "away").rename(place)
    verify_bundle(bundle)

"""Which places on this machine are read and written: nothing that a document names reaches a file of its reader.

A schema, a package or a bundle may come from somebody else, so what it names must lie beside it. Outputs are local.
"""

import hashlib
import json
import os

import pytest

import covey
from covey.errors import CoveyError, CoveyWarning, ParameterError
from covey.release.answers.load import load
from covey.release.verify import verify_bundle
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
    place = bundle / name
    document = json.loads(place.read_text(encoding="utf-8"))
    change(document)
    place.write_text(json.dumps(document), encoding="utf-8")
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
    sealed(bundle, "schema.json", lambda document: document["fields"][2]["covey"].update(derived=listed))
    for opened in (load, verify_bundle, lambda folder: told("evaluate", "patients.csv", folder)):
        with pytest.raises((CoveyError, AssertionError), match="here none is read"):
            opened(bundle)

"""Messy files go from file to release, with at most one edit; and what identifies somebody stays where it is."""

import json
import re

import pytest

from tests.commands import run
from tests.desk.cli.messy import FILES, N

pytestmark = [pytest.mark.usefixtures("few_steps"), pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")]


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    path = tmp_path_factory.mktemp("books") / "ledger.sqlite"
    done = run("ledger", "open", "people", "--budget", 1000, "--delta-budget", 0.001, COVEY_LEDGER=str(path))
    assert done.exit_code == 0, done.output
    return path


UNCLEAR = {"dates that are both d/m and m/d": ("--date-format", "%d/%m/%Y")}


class Steward:
    """Somebody with a file in a folder; everything they are told is remembered."""

    def __init__(self, folder, ledger, messy):
        self.folder, self.ledger, self.messy = folder, ledger, messy
        self.table = folder / f"table{messy.suffix}"
        self.table.write_bytes(messy.data())
        self.told = ""

    def run(self, *words):
        done = run(*words, COVEY_LEDGER=str(self.ledger))
        self.told += done.output
        return done

    def ok(self, *words):
        done = self.run(*words)
        assert done.exit_code == 0, (words, done.output, done.exception)
        return done

    def written(self):
        """Whatever covey has written: what it said, and every file but the table."""
        files = [path for path in [*self.folder.rglob("*"), self.ledger] if path.is_file() and path != self.table]
        return [self.told.encode(), *(path.read_bytes() for path in files)]

    def leaks(self):
        """True values of identifying columns in anything that was written."""
        found = self.written()
        secrets = [(name, cell) for name, cells in self.messy.secrets.items() for cell in cells]
        return [(name, cell) for name, cell in secrets if any(cell.encode() in data for data in found)]


@pytest.mark.parametrize("name", FILES)
def test_from_a_messy_file_to_a_release(tmp_path, ledger, name):
    messy = FILES[name]
    steward, schema = Steward(tmp_path, ledger, messy), tmp_path / "schema.json"
    assert not (messy.options and messy.mend)
    first = steward.run("init", steward.table, "-o", schema, *messy.options)
    if messy.mend is not None:
        assert first.exit_code == 3, first.output  # it says what to do, and nothing is drafted
        assert not schema.exists()
        steward.table.write_bytes(messy.mend(messy.data()))
        steward.ok("init", steward.table, "-o", schema)
    drafted = {entry["name"]: entry["type"] for entry in json.loads(schema.read_text(encoding="utf-8"))["fields"]}
    assert messy.types.items() <= drafted.items()
    assert not set(messy.secrets) & set(drafted)
    steward.ok("confirm", schema, "--all")
    assert steward.leaks() == []  # nothing was confirmed by its name so far
    fields = json.loads(schema.read_text(encoding="utf-8"))["fields"]
    warned = [field["name"] for field in fields if "warning" in field.get("covey", {})]
    if warned:
        steward.ok("confirm", schema, *warned)
    seen = json.loads(steward.ok("check", steward.table, "--schema", schema, "--json").stdout)["columns"].values()
    assert not any(column["unparseable"] or column["clipped"] for column in seen)  # as drafted, so read
    budget = ("--epsilon", 3, "--dataset", "people")
    steward.ok("release", steward.table, "--schema", schema, *budget, "--out", tmp_path / "out")
    facts = json.loads(steward.ok("verify", tmp_path / "out", "--json").stdout)
    assert facts["rows"] == N
    assert steward.leaks() == []


@pytest.mark.parametrize("name", [name for name, messy in FILES.items() if messy.mend is None])
def test_from_a_messy_file_to_a_release_that_learns(tmp_path, ledger, name):
    """No schema, no edit; an encoding, a sheet, and dates that can be read in two ways must be said."""
    messy = FILES[name]
    steward = Steward(tmp_path, ledger, messy)
    budget = ("--epsilon", 9, "--delta", "1e-6", "--dataset", "people")
    line = ("release", steward.table, "--learn", *budget, "--out", tmp_path / "out")
    if name in UNCLEAR:
        refused = steward.run(*line)
        assert refused.exit_code == 3, refused.output
        assert UNCLEAR[name][0] in refused.output
    done = steward.ok(*line, *UNCLEAR.get(name, messy.options))
    released = json.loads((tmp_path / "out/schema.json").read_text(encoding="utf-8"))["fields"]
    types = {entry["name"]: entry["type"] for entry in released}
    learned = {name: type_ for name, type_ in messy.types.items() if name in types and type_ != "string"}
    assert learned.items() <= types.items()
    assert re.search(r"left out, because the cells look like identifiers.*'name'.*in a schema", done.output)
    assert json.loads(steward.ok("verify", tmp_path / "out", "--json").stdout)["rows"] == N
    assert steward.leaks() == []


def test_the_search_for_leaks_finds_one(tmp_path, ledger):
    steward = Steward(tmp_path, ledger, FILES["as pandas writes it"])
    (tmp_path / "draft.json").write_text(json.dumps({"enum": [FILES["as pandas writes it"].secrets["name"][3]]}))
    assert len(steward.leaks()) == 1

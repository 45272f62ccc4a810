"""The command line as a person uses it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from covey.desk.cli import main
from covey.desk.demo import demonstrate, example_visits
from covey.errors import ArgumentError
from covey.release.verify import verify_bundle
from covey.tables.schema import Schema
from tests.commands import run, spent, told
from tests.entries import entry
from tests.synthesizers.test_proposals import WORDS
from tests.synthesizers.test_proposals import related as with_relations

pytestmark = pytest.mark.usefixtures("few_steps")
ROOT = Path(__file__).parents[3]
COMMANDS = [name for name in main.commands if name != "ledger"]
COMMANDS += [f"ledger {name}" for name in main.commands["ledger"].commands]


@pytest.fixture
def desk(at_home):
    """A folder with an example table, a confirmed schema and a ledger."""
    example_visits(Path("visits.csv"), 400)
    for line in (
        "init visits.csv -o schema.json",
        "confirm schema.json --all",
        "confirm schema.json age cost admitted",
    ):
        told(line)
    told("ledger open visits --budget 2")
    return at_home


# Refused before any data is opened or any budget is spent, in words that name the option and the way out.
RELEASE = "release visits.csv --schema schema.json --dataset visits --out out --epsilon"
REFUSED = [
    (f"{RELEASE} 0", 2, "--epsilon must be positive, got"),
    (f"{RELEASE} 1,0", 2, "'1,0'. Write 1.0."),
    (f"{RELEASE} one", 2, "got 'one'.\n"),
    (f"{RELEASE} 11", 2, "--confirm-large-epsilon"),
    (f"{RELEASE} 1 --delta 0.01".replace("visits.csv", "no.csv"), 4, "does not cover this"),
    (f"{RELEASE} 1 --log out", 2, "would lie in the bundle"),
    (f"{RELEASE} 1 --log visits.csv", 2, "exists"),
    ("release visits.csv --schema none.json --epsilon 1 --dataset visits --out out", 2, "none.json"),
    ("release nope.csv --schema schema.json --epsilon 1 --dataset visits --out out", 3, "nope.csv"),
    ("release no.csv --schema schema.json --epsilon 1 --dataset wisits --out out", 4, "covey ledger open wisits"),
    ("release visits.csv --epsilon 1 --dataset visits --out out", 2, "--schema"),
    ("release visits.csv --schema draft.json --epsilon 1 --dataset visits --out out", 2, "covey confirm"),
    ("anonymize visits.csv --schema draft.json --group-size 10 --out out", 2, "confirm"),
    ("anonymize visits.csv --schema schema.json --group-size 1 --out out", 2, "--group-size"),
    ("release no.csv --schema schema.json --dataset visits --out out", 2, "epsilon"),
    ("release no.csv --schema schema.json --epsilon 1 --out out", 2, "--dataset"),
    *((f"anonymize no.csv --schema schema.json --out out --group-size {size}", 2, "group") for size in (0, -3)),
    *((f"anonymize no.csv --schema schema.json --out out --group-size 5 --rows {rows}", 2, "rows") for rows in (0, -5)),
    *(
        (f"anonymize visits.csv --schema schema.json --out out --group-size 5 --rows {rows}", 2, str(rows))
        for rows in (10**15, 10**30)
    ),
    ("anonymize visits.csv --schema schema.json --out out --group-size 401", 2, "--group-size must not exceed"),
    ("release visits.csv --learn --epsilon 1 --dataset visits --out out", 2, "Give a small --delta, such as 1e-9"),
    ("plan schema.json --rows 400", 2, "--target-error"),
    ("plan schema.json --rows 400 --target-error 0.9", 2, "target-error must lie"),
    ("confirm schema.json agee", 2, "agee"),
    ("confirm schema.json", 2, "--all"),
    ("check visits.csv --schema nowhere.json", 2, "nowhere.json"),
    ("check nowhere.csv --schema schema.json", 3, "nowhere.csv"),
    ("relations visits.csv", 2, "--schema"),
    ("relations nowhere.csv --schema schema.json", 3, "nowhere.csv"),
    ("relations visits.csv --schema schema.json --add nonsense", 2, "no relation was seen that says 'nonsense'"),
    ("verify nowhere", 3, "there is no folder nowhere"),
    ("ledger history nobody", 4, "nobody"),
    *((f"demo --rows {m} --out demo", 2, f"--rows must be a whole number, 100 or more, got {m}") for m in (-1, 0, 99)),
    ("demo --rows 200 --out visits.csv/demo", 1, "visits.csv"),  # a failure of the system, with its path
]
WRITERS = [
    "init no.csv -o {}",
    "release no.csv --schema schema.json --epsilon 1 --dataset visits --out out --log {}",
    "anonymize no.csv --schema schema.json --group-size 9 --out out --log {}",
    "evaluate no.csv bundle -o {}",
    "evaluate no.csv bundle --report {}",
]
UNWRITABLE = {"nope/x.json": "there is no folder nope", ".": "is a folder", "x" * 300: "cannot be written"}
# A table that is not there would be 3.
REFUSED += [(line.format(place), 2, words) for line in WRITERS for place, words in UNWRITABLE.items()]


def test_what_is_refused_says_why_and_costs_nothing(desk):
    assert run("init visits.csv -o draft.json").exit_code == 0
    for line, code, words in REFUSED:
        result = run(line)
        assert (result.exit_code, isinstance(result.exception, SystemExit)) == (code, True), line
        assert result.stderr.startswith("covey:"), line
        assert words in result.stderr, line
    assert spent() == 0
    assert not {"out", "demo"} & {path.name for path in desk.iterdir()}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example_and_json(command):
    said = run(f"{command} --help").stdout
    assert f"covey {command}" in said
    assert "Example" in said
    assert "--json" in said


def test_plan_opens_no_data_and_solves_for_epsilon(desk):
    (desk / "visits.csv").unlink()
    small, large = (json.loads(run(f"plan schema.json --rows 400 --epsilon {e} --json").stdout) for e in (0.1, 5))
    assert small["predicted_error"] > large["predicted_error"]
    solved = json.loads(run("plan schema.json --rows 100000 --target-error 0.03 --json").stdout)
    assert solved["average_total_variation"] <= 0.03
    assert "warning" in run("plan schema.json --rows 5 --epsilon 0.01").stdout


def test_the_private_log_counts_what_was_mended_and_stays_private(desk):
    with (desk / "visits.csv").open("a") as file:
        file.write("900,martian ward,public,-5,maybe\n")
    assert run(f"{RELEASE} 0.5 --log log.json").exit_code == 0
    log = json.loads((desk / "log.json").read_text())
    assert log["short_rows"] == 1
    assert log["columns"]["age"]["clipped"] == 1
    assert log["columns"]["ward"]["unknown"] == 1
    assert (desk / "log.json").stat().st_mode & 0o777 == 0o600
    assert not (desk / "out" / "log.json").exists()
    refused = run(f"{RELEASE} 0.5 --out other --log out/log2.json")  # a bundle of before, to be handed out as well
    assert refused.exit_code == 2
    assert "inside a bundle" in refused.stderr
    result = run("anonymize visits.csv --schema schema.json --group-size 5 --out a --sensitive ward")
    assert result.exit_code == 0
    assert "NOT differentially private" in result.stdout
    assert run("verify a").exit_code == 0


def test_check_counts_what_does_not_fit_and_charges_nothing(desk):
    fine = run("check visits.csv --schema schema.json")
    assert fine.exit_code == 0
    assert fine.stdout.startswith("confidential: computed on real data\n")
    assert "every cell fits the schema or is missing" in fine.stdout
    with (desk / "visits.csv").open("a") as file:
        file.write("2OO,martian ward,public,-5,maybe\n" * 3)
    rows = len((desk / "visits.csv").read_text().splitlines()) - 1
    found = " ".join(run("check visits.csv --schema schema.json").stdout.split())
    assert f"age 3 of {rows:,} cells are no integer" in found
    assert f"ward 3 of {rows:,} cells are in no category of the schema" in found
    assert f"cost 3 of {rows:,} cells are beyond a limit" in found
    assert "insurance" not in found
    told = json.loads(run("check visits.csv --schema schema.json --json").stdout)
    assert (told["rows"], told["columns"]["age"]["unparseable"]) == (rows, 3)
    history = run("ledger history visits").stdout
    assert history.count("charge") == history.count("no charges yet")
    assert "A schema is named with --schema." in run("check visits.csv schema.json").output


@pytest.mark.parametrize(
    ("said", "again"),
    [
        ("--rows 400", ""),
        ("--persons 40 --person name", " --person name"),
        ("--persons 40", " --person COLUMN"),
        ("--rows 400 --rows-per-person 3 --delta 1e-9", " --rows-per-person 3"),
        ("--rows 400 --neighbours add-or-remove-one", " --neighbours add-or-remove-one"),
        ("--rows 9 --target ward --triples 1 --important ward,age", " --target ward --triples 1 --important ward,age"),
    ],
)
def test_the_command_after_a_plan_protects_whom_the_plan_was_for(desk, said, again):
    """A release without these words would protect single rows, replaced, and measure other things."""
    last = run(f"plan schema.json {said} --epsilon 1").stdout.splitlines()[-1]
    options = f"--epsilon 1{' --delta 1e-9' if '--delta' in said else ''}{again}"
    assert last == f"Next: covey release TABLE --schema schema.json {options} --dataset NAME --out release"


def test_a_plan_says_what_learning_loses(desk):
    """tests/desk/cli/test_messy.py releases such tables."""
    drafted = json.loads(Path("schema.json").read_text())
    drafted["fields"] = [{"name": f["name"], "type": f["type"], "covey": {"learn": True}} for f in drafted["fields"]]
    Path("learn.json").write_text(json.dumps(drafted))
    planned = run("plan learn.json --rows 20000 --epsilon 1 --delta 1e-9")
    said = r"columns are learned: about \d+ rows at each end may be clipped, .* spread widely, labels below about 0.0"
    assert re.search(said, planned.stdout)


def test_of_a_wide_table_the_columns_that_are_named_are_kept(desk):
    """Before the charge a release says how many columns the budget carries; of a plan it is a line."""
    example_visits(Path("visits.csv"), 2000)
    line = "release visits.csv --learn --epsilon 1 --delta 1e-9 --seed 1 --out out --force"
    wide = run(f"{line} --important ward")
    assert re.search(r"this budget carries about (none|1)\. .* such as ward", wide.stderr)
    assert run(f"{line} --columns age,ward").exit_code == 0
    names = [field["name"] for field in json.loads(Path("out/schema.json").read_text())["fields"]]
    assert names == [name for name in ("age", "ward") if name in names] != []
    assert "has no field 'height'" in run(f"{line} --columns height").stderr
    visits, budget = Path("visits.csv").read_text(), spent()
    Path("visits.csv").write_text(visits.partition("\n")[2])  # the first record would be published as names
    assert "looks like a record" in run(line).stderr
    assert spent() == budget
    Path("visits.csv").write_text(re.sub(r"\bage\b", "4711", visits, count=1))
    assert "warning: the first line may be a record" in run(line).stderr


def test_help_imports_nothing_heavy():
    code = "import sys, covey.desk.cli; print([m for m in ('numpy', 'scipy', 'polars', 'pyarrow') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_init_points_at_doubtful_columns_and_confirm_says_what_becomes_public(desk):
    rows = "".join(f"p{j},{j % 5},{'fm'[j % 2]}\n" for j in range(40))
    Path("people.csv").write_text("name,ward,sex\n" + rows)
    said = run("init people.csv -o people.json")
    heads, columns = ("READY", "LOOK AT THESE", "LEFT OUT"), ("ward", "sex", "name")
    lines = [line.split()[0] for line in said.stdout.splitlines() if line.strip()]
    assert [line for line in lines if line in columns] == list(columns)
    assert [head in said.stdout for head in heads] == [True, False, True]
    assert "reason" not in said.stdout.partition("LEFT OUT")[0]
    assert "reason" in run("init people.csv -o people.json --force --explain").stdout.partition("LEFT OUT")[0]
    assert "p17" not in Path("people.json").read_text() + said.output
    facts = json.loads(run("init people.csv -o people.json --force --json").stdout)
    assert (facts["fields"], facts["ready"], facts["left_out"]) == (["ward", "sex"], ["ward", "sex"], ["name"])
    assert [note["field"] for note in facts["notes"]] == ["name", "ward", "sex"]
    assert run("confirm people.json sex").stdout.splitlines()[0] == "now public: sex (2 labels)"
    said = run("confirm people.json --all").stdout
    assert (
        said
        == "now public: ward (5 labels)\nevery column is confirmed\nNext: covey plan people.json --rows N --epsilon 1\n"
    )
    facts = json.loads(run("confirm people.json --all --json").stdout)
    assert facts["confirmed"] == []
    assert facts["unconfirmed"] == []


def test_changing_one_limit_does_not_confirm_the_other(desk):
    assert run("init visits.csv -o draft.json").exit_code == 0
    draft = json.loads(Path("draft.json").read_text())
    [age] = [field for field in draft["fields"] if field["name"] == "age"]
    age["constraints"]["maximum"] = 120
    age["covey"] = {**age.get("covey", {}), "special": ["HIVpos"]}
    Path("draft.json").write_text(json.dumps(draft))
    assert "age" in json.loads(run("confirm draft.json --all --json").stdout)["unconfirmed"]
    # By name it becomes public, and the limit that nobody has changed is told as well, and the word.
    low = age["constraints"]["minimum"]
    assert run("confirm draft.json age").stdout.startswith(f"now public: age (from {low} to 120, or HIVpos)")


def test_options_are_spelled_in_the_command_line_and_nowhere_below_it():
    """What the app and scripts call as well names its arguments, and the command line makes options of them."""
    source = ROOT / "src" / "covey"
    below = [path for room in ("engine", "ledger", "release", "workflow") for path in (source / room).rglob("*.py")]
    spelled = re.compile(r"--[a-z]|covey (init|confirm|check|plan|ledger open)\b")
    below = [path for path in below if path.parent.name != "answers" and path.stem != "preparing"]
    found = {path.name: spelled.findall(path.read_text()) for path in below if spelled.search(path.read_text())}
    assert found == {}
    assert spelled.search("Say --confirm-large-epsilon to go on.")
    assert spelled.search("covey ledger open x")
    assert spelled.search((source / "desk" / "cli" / "group.py").read_text())


def test_a_schema_that_does_not_fit_stops_a_release_before_its_charge(desk):
    """A limit in the wrong unit would move most cells to it: the release would be whole, certified and wrong."""
    schema = json.loads((desk / "schema.json").read_text())
    next(field for field in schema["fields"] if field["name"] == "age")["constraints"]["maximum"] = 5
    (desk / "wrong.json").write_text(json.dumps(schema))
    line = "release visits.csv --schema wrong.json --epsilon 1 --dataset visits --out out"
    refused = run(line)
    assert refused.exit_code == 3
    assert "'age'" in refused.stderr
    assert "Nothing was charged" in refused.stderr
    assert spent() == 0
    assert run(f"{line} --accept-misfits 1").exit_code == 0
    assert spent() == 1


@pytest.fixture
def related(at_home):
    """A folder with a table in which c4 follows from c1 and c2."""
    codes = np.random.default_rng(0).integers(0, 2, (600, 6))
    codes[:, 4] = codes[:, 1] ^ codes[:, 2]
    pl.DataFrame({f"c{j}": np.array(["a", "b"])[codes[:, j]] for j in range(6)}).write_csv("table.csv")
    fields = [entry(f"c{j}", "string", enum=["a", "b"], required=j < 5) for j in range(6)]
    Path("schema.json").write_text(json.dumps({"fields": fields}))


def test_a_plan_says_how_many_triples_would_be_looked_for(related):
    plan = "plan schema.json --epsilon 1 --delta 1e-9 --rows"
    assert "triples" not in run(f"{plan} 20000").output
    assert "the 3 strongest of 20 triples" in run(f"{plan} 20000 --triples 3").output
    assert "the 5 strongest of 10 triples" in run(f"{plan} 20000 --target c4").output
    assert "because noise would hide them" in run(f"{plan} 60 --triples 3").output
    assert json.loads(run(f"{plan} 20000 --triples 3 --json").output)["triples"]["count"] == 3
    refused = run(f"{plan} 20000 --target c9")
    assert (refused.exit_code, "no field 'c9'" in refused.stderr) == (2, True)


@pytest.mark.usefixtures("related")
def test_a_release_takes_triples_and_an_earlier_release():
    made = "release table.csv --schema schema.json --seed 1 --epsilon 9"
    assert run(f"{made} --target c4 --triples 1 --out first").exit_code == 0
    purposes = {charge["purpose"] for charge in json.loads(Path("first/privacy.json").read_text())["charges"]}
    assert {"choosing triples", "triples"} <= purposes
    assert "seeded" in run(f"{made} --prior first --out second").output
    assert "prior" in json.loads(Path("second/privacy.json").read_text())
    Path("first/README.md").write_text("changed")
    refused = run(f"{made} --prior first --out third")
    assert (refused.exit_code, "changed after the bundle" in refused.stderr) == (3, True)
    assert not Path("third").exists()


SUMMED = [*(entry(name, "integer", 0, 50, required=True) for name in "ab")]
SUMMED.append(entry("w", "string", enum=["x", "y"], required=True))
SUM = {"linear": {"coefficients": {"a": 1, "b": 1}, "maximum": 60}}  # what the fit does not keep by itself
ZERO = {"forbid": {"a": {"minimum": 40}, "w": ["x"]}}


@pytest.fixture
def sums(tmp_path):
    g = np.random.default_rng(0)
    a = g.integers(0, 51, 400)
    b = np.minimum(g.integers(0, 51, 400), 60 - a)
    w = np.where(a >= 40, "y", g.choice(["x", "y"], 400))
    a[:3], b[:3], w[:5] = 50, 50, "x"  # three rows break the sum; these and others that are 40 or more the zero
    pl.DataFrame({"a": a, "b": b, "w": w}).write_csv(tmp_path / "table.csv")
    Schema.from_dict({"fields": SUMMED, "covey": {"rules": [SUM, ZERO]}}).save(tmp_path / "schema.json")
    return tmp_path, int(((a >= 40) & (w == "x")).sum())


def test_check_counts_the_rows_that_break_a_rule(sums):
    home, zero = sums
    words = told("check", home / "table.csv", "--schema", home / "schema.json")
    assert "3 of 400  rows break the rule" in words
    assert f"{zero} of 400  rows break the rule" in words
    facts = json.loads(told("check", home / "table.csv", "--schema", home / "schema.json", "--json"))
    assert [one["rows"] for one in facts["broken_rules"]] == [3, zero]


def test_a_release_says_how_many_rows_were_altered(sums):
    home, _ = sums
    made = ("release", home / "table.csv", "--schema", home / "schema.json", "--epsilon", "2", "--seed", "1")
    words = told(*made, "--out", home / "bundle")
    count = json.loads((home / "bundle" / "privacy.json").read_text())["rows_altered_by_rules"]
    assert 0 < count < 400
    assert f"rules: {count} of 400 rows were altered after drawing" in words
    assert f"{count} were altered after drawing" in (home / "bundle" / "README.md").read_text()
    rows = pl.read_csv(home / "bundle" / "synthetic.csv")
    assert (rows["a"] + rows["b"]).max() <= 60


def test_the_demo_takes_patients_the_whole_way_and_ends_with_a_report(tmp_path, capsys):
    demonstrate(tmp_path, 400, force=False)
    said = capsys.readouterr().out
    report = tmp_path / "release" / "report.html"
    assert said.splitlines()[-1] == f"Open this report: {report}"
    assert "with 95% confidence" in said
    table = pl.read_csv(tmp_path / "patients.csv", infer_schema=False)
    assert table.height == 400
    assert table["weight"].null_count() > 5  # holes, as in any real table
    written = b"".join(path.read_bytes() for path in (tmp_path / "release").iterdir())
    assert not any(cell.encode() in written for name in ("record", "name") for cell in table[name])
    assert verify_bundle(tmp_path / "release").rows == 400
    with pytest.raises(ArgumentError, match="exists"):
        demonstrate(tmp_path, 400, force=False)
    with pytest.raises(ArgumentError, match="100 or more"):
        demonstrate(tmp_path / "few", 9, force=False)


def test_relations_are_shown_to_the_owner_added_one_by_one_and_told_nowhere_else(desk):
    with_relations(1000).write_csv("t.csv")
    drafted = run("init t.csv -o t.json").stdout
    assert "RELATIONS SEEN IN YOUR TABLE: 5 (confirm what is public knowledge)" in drafted
    assert all(words in drafted for words in WORDS)
    drafted = json.dumps(Schema.draft("t.csv").to_dict(), indent=2, ensure_ascii=False)
    assert Path("t.json").read_text() == drafted + "\n"
    order = "release t.csv --schema t.json --epsilon 1 --seed 1 --out bundle"
    add = f"relations t.csv --schema t.json --add '{WORDS[0]}'"
    before = Path("t.json").read_text()
    assert "covey confirm" in run(order).stderr
    assert "not confirmed as public" in run(add).stderr
    assert Path("t.json").read_text() == before
    run(f"confirm t.json {' '.join(with_relations(1).columns)}")
    assert f"added to t.json: {WORDS[0]}" in run(add).stdout
    left = json.loads(run("relations t.csv --schema t.json --json").stdout)
    assert {one["words"] for one in left["relations"]} == set(WORDS[1:])
    assert run(order).exit_code == 0
    rows = pl.read_csv("bundle/synthetic.csv")
    assert (rows["copy"] == rows["net"]).all()
    public = "".join(path.read_text(errors="replace") for path in Path("bundle").rglob("*") if path.is_file())
    assert "rules" not in json.loads(Path("bundle/schema.json").read_text()).get("covey", {})
    assert not any(words in public for words in (*WORDS, "missing together", "never above", "rows break it"))

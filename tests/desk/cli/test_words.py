"""Any words on the command line end in an answer: an exit code of ours, never a traceback. COVEY_EXAMPLES asks for more."""

import json
import os
import shutil

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from covey.desk.cli import main
from tests.entries import entry

EXAMPLES = int(os.environ.get("COVEY_EXAMPLES", 60))
TABLE = "age,sex,cost\n" + "".join(f"{20 + i % 50},{'fm'[i % 2]},{i / 7:.2f}\n" for i in range(60))
FIELDS = [entry("age", "integer", 0, 99), entry("sex", "string", enum=["f", "m"]), entry("cost", "number", 0, 10)]
FILES = {
    "table.csv": TABLE,
    "broken.csv": 'age,sex\n1,"f\n2,m\n',
    "ragged.csv": "age,sex,cost\n1\n2,m,3,4,5\n,,\n",
    "empty.csv": "",
    "header.csv": "age,sex,cost\n",
    "no-table.db": "this is no database",
    "schema.json": json.dumps({"fields": FIELDS}),
    "draft.json": json.dumps({"fields": FIELDS, "covey": {"draft": "draft: describes private data"}}),
    "half.json": json.dumps({"fields": FIELDS[:1]}),
    "wrong.json": '{"fields": [{"name": 3}]}',
    "bare.json": "[]",
    "schema.yaml": "fields: [{name: age, type: integer, constraints: {minimum: 0, maximum: 99}}]",
    "broken.yaml": "a: !!bool perhaps",
}
FLAGS = ["--json", "--force", "--parquet", "--all", "--confirm-large-epsilon", "--help", "--version", "--no-such-thing"]
# Words without a slash stay in the folder of the test; control characters and surrogates are part of what may come.
text = st.text(st.characters(blacklist_characters="/\0\\"), max_size=8)
name = st.sampled_from([*FILES, "out", "out/deep", "ledger.sqlite", "visits", "postgresql://nobody@127.0.0.1:9/x"])
odd = ["0", "1", "-1", "0.5", "20", "1e-9", "1e400", "nan", "inf", "1e-400", "0x10", "٣", "1_0", " 1", ""]
number = st.one_of(st.sampled_from(odd), st.integers(-3, 70).map(str), st.floats().map(str))
options = {
    "init": {"-o": name, "--out": name, "--import": name, "--encoding": text, "--table": text, "--query": text},
    "confirm": {},
    "relations": {"--schema": name, "--add": text, "--encoding": text},
    "plan": {"--rows": number, "--epsilon": number, "--delta": number, "--target-error": number},
    "release": {
        **dict.fromkeys(("--epsilon", "--delta", "--rows", "--rows-per-person", "--seed"), number),
        **dict.fromkeys(("--schema", "--log", "--ledger", "--out"), name),
        **dict.fromkeys(("--encoding", "--table", "--query"), text),
        "--dataset": text | st.just("d"),
    },
    "anonymize": {
        **dict.fromkeys(("--group-size", "--rows", "--seed"), number),
        **dict.fromkeys(("--schema", "--log", "--out"), name),
        "--method": st.sampled_from(["tree", "paper", "mdav", "x"]),
        "--sensitive": text | st.just("sex"),
    },
    "verify": {},
    "evaluate": {"--out": name, "--report": name, "--target": text | st.just("sex"), "--encoding": text},
    "ledger": {"--budget": number, "--delta-budget": number, "--ledger": name},
}
# Most lines start from one that works, so that what lies behind the first checks is reached too.
GOOD = {
    "init": ["table.csv", "-o", "new.json"],
    "confirm": ["draft.json", "--all"],
    "relations": ["table.csv", "--schema", "schema.json"],
    "plan": ["schema.json", "--rows", "100", "--epsilon", "1"],
    "release": ["table.csv", "--schema", "schema.json", "--epsilon", "1", "--seed", "1", "--out", "out"],
    "anonymize": ["table.csv", "--schema", "schema.json", "--group-size", "10", "--out", "out"],
    "verify": ["out"],
    "evaluate": ["table.csv", "out"],
    "ledger": ["open", "d", "--budget", "1", "--ledger", "books.sqlite"],
}


@st.composite
def lines(draw):
    """A command line."""
    command = draw(st.sampled_from(list(options)))
    words = list(GOOD[command]) if draw(st.integers(0, 3)) else draw(st.lists(name | text, max_size=3))
    for option in draw(st.lists(st.sampled_from(sorted(options[command]) or FLAGS), max_size=2)):
        words.append(option)
        if option in options[command]:
            words.append(draw(options[command][option]))
    words += draw(st.sampled_from([[]] * 4 + [[flag] for flag in FLAGS]))
    if draw(st.integers(0, 9)) == 0:
        words = draw(st.permutations(words))
    if command == "ledger" and draw(st.integers(0, 3)) == 0:
        words[:1] = [draw(st.sampled_from(["open", "show", "history", "x"]))]
    return [command, *words]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("words")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    """A bundle to verify and to evaluate."""
    place = tmp_path_factory.mktemp("made")
    for file in ("table.csv", "schema.json"):
        (place / file).write_text(FILES[file])
    words = ["anonymize", "table.csv", "--schema", "schema.json", "--group-size", "10", "--out", "out"]
    words = [str(place / word) if word in ("table.csv", "schema.json", "out") else word for word in words]
    assert CliRunner().invoke(main, words).exit_code == 0
    return place / "out"


@pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")
@settings(
    max_examples=EXAMPLES, derandomize="COVEY_EXAMPLES" not in os.environ, suppress_health_check=list(HealthCheck)
)
@given(words=lines())
def test_every_command_line_ends_in_an_answer(folder, bundle, words):
    place = folder / "here"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    for file, content in FILES.items():
        (place / file).write_text(content)
    if words[0] in ("verify", "evaluate"):
        shutil.copytree(bundle, place / "out")
    before = os.getcwd()
    os.chdir(place)
    try:
        done = CliRunner().invoke(main, words, env={"COVEY_LEDGER": str(place / "home.sqlite")})
    finally:
        os.chdir(before)
    event(f"{words[0]}: {done.exit_code}")
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise AssertionError(f"covey {words} ended in {done.exception!r}") from done.exception
    assert done.exit_code in (0, 1, 2, 3, 4)
    assert "Traceback" not in done.output
    assert (place / "table.csv").read_text() == TABLE  # whatever was asked for, the input is not touched

"""What a bundle says of itself is true: of its seed, of the number of rows, and of what nobody asked its owner."""

import inspect
import json
import re
from functools import cache

import pytest

import covey
from audits.odometer import cheap_fits
from covey.engine.unit import ADD_REMOVE, REPLACE
from covey.release.answers.answer import QUESTIONS, AnswerTable
from covey.release.answers.release import Release
from covey.release.bundle import write_bundle
from covey.release.report import two_releases
from covey.tables.schema import Field, Schema
from tests.commands import told

pytestmark = pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")
ROWS, MARK = 700, "seeded: not private"
SCHEMA = Schema((Field("a", "integer", 0, 9), Field("b", "string", enum=("x", "y", "z"))))
TABLE = {
    "who": [f"p{i // 2}" for i in range(ROWS)],
    "a": [str(i % 10) for i in range(ROWS)],
    "b": ["xyz"[i % 3] for i in range(ROWS)],
}
UNITS = {"row": {}, "three rows": {"rows_per_person": 3}, "person": {"person": "who"}}
PUBLIC = re.compile(r"number of (rows|persons)[^.:;]{0,90}\b(public|published)", re.I)


@cache
def made(folder, unit, neighbours, seed):
    """A bundle, and the number of units that it states."""
    table = dict(TABLE) if unit == "person" else {name: TABLE[name] for name in ("a", "b")}
    synth = covey.PrivateSynthesizer(2.0, 1e-9, schema=SCHEMA, neighbours=neighbours, seed=seed, **UNITS[unit])
    with cheap_fits():
        release = synth.fit(table).release(50)
    place = folder / f"{unit}, {neighbours}, {seed}"
    return write_bundle(release, place), release.privacy.n


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("bundles")


def texts(place):
    """The files that people and catalogues read, in one line each, without tags."""
    names = [path for path in sorted(place.iterdir()) if path.suffix in (".md", ".html", ".json", ".yaml")]
    return {
        path.name: " ".join(re.sub(r"<style.*?</style>|<[^>]+>", " ", path.read_text(), flags=re.S).split())
        for path in names
    }


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("neighbours", [REPLACE, ADD_REMOVE])
def test_no_file_calls_a_secret_number_of_rows_public_and_none_a_noisy_one_exact(folder, unit, neighbours):
    place, n = made(folder, unit, neighbours, None)
    counted = "persons" if unit == "person" else "rows"
    for name, text in texts(place).items():
        stated = [text[max(0, m.start() - 25) : m.end() + 30] for m in re.finditer(rf"\b{n} (real )?{counted}\b", text)]
        if neighbours == ADD_REMOVE:
            assert not PUBLIC.search(text), name
            assert all("about" in words or "noisy" in words for words in stated), (name, stated)
    said = json.loads((place / "privacy.json").read_text())
    assert said["n_is"] == ("public" if neighbours == REPLACE else "noisy: the real number is secret")
    spoken = texts(place)
    for name in ("README.md", "report.html", "deployment.yaml"):
        public = bool(PUBLIC.search(spoken[name]))
        assert public == (neighbours == REPLACE), name
        assert ("is a noisy number of them" in spoken[name]) == (neighbours == ADD_REMOVE), name
    assert ("about " in told("cite", place)) == (neighbours == ADD_REMOVE)


def test_every_file_that_is_read_alone_says_of_a_seed(folder):
    place, _ = made(folder, "row", REPLACE, 1)
    spoken = texts(place)
    for name in ("README.md", "report.html", "privacy.json", "croissant.json", "dcat.json", "measurements.json"):
        assert "seed" in spoken[name], name
        assert "not private" in spoken[name].lower(), name
    assert "deployment.yaml" not in spoken  # a trial is no deployment of differential privacy
    assert "deployment.yaml" not in spoken["README.md"]
    assert "deployment.yaml" in texts(made(folder, "row", REPLACE, None)[0])
    assert "from a private model" not in spoken["dcat.json"] + spoken["report.html"]
    assert MARK in json.loads((place / "privacy.json").read_text())["nist_sp_800_226"]["variant"]
    assert told("verify", place).count(MARK) == 1
    assert MARK in told("cite", place)


@pytest.mark.parametrize("seed", [1, None])
def test_commands_on_a_seeded_bundle_say_so_in_words_and_in_json(folder, tmp_path, seed):
    place, _ = made(folder, "row", REPLACE, seed)
    commands = {
        "sample": ("sample", place, "--rows", "5", "--force", "-o", tmp_path / "s.csv"),
        "ask": ("ask", place, "share b=x"),
        "ask by": ("ask", place, "share b=x by b"),
        "ask mean": ("ask", place, "mean a"),
        "ask top": ("ask", place, "top 2 b"),
        "tables": ("tables", place, "-o", tmp_path / "tables"),
    }
    for name, command in commands.items():
        if name == "tables":
            assert (MARK in told(*command)) == (seed is not None)
            command = (*command[:-1], tmp_path / "again")
        else:
            assert told(*command).count(MARK) == (seed is not None), name
        said = json.loads(told(*command, "--json"))
        rows = said.get("rows", 1) if name.startswith("ask") else [said]
        for one in rows if isinstance(rows, list) else [said]:
            assert one["seeded"] is (seed is not None), name


def test_answers_of_a_seeded_release_say_so_in_python(folder):
    """Each question by itself: one that is added must carry the mark, too."""
    for seed in (1, None):
        release = covey.load(made(folder, "row", REPLACE, seed)[0])
        found = [
            release.share({"b": "x"}),
            release.share({"b": "x"}, by="b"),
            release.count({"b": "x"}),
            release.mean("a"),
            release.quantile("a", 0.5),
            release.regress("a ~ b"),
            release.ask("difference mean a b=x b=y"),
            release.ask("top 2 b"),
        ]
        for answer in found:
            assert (MARK in repr(answer)) == (seed is not None), answer
            assert (MARK in answer._repr_html_()) == (seed is not None) or not isinstance(answer, AnswerTable)
            rows = answer if isinstance(answer, AnswerTable) else [answer]
            assert all(one.seeded is (seed is not None) for one in rows)
        assert (MARK in repr(release)) == (seed is not None)
        assert (MARK in release._repr_html_()) == (seed is not None)


def test_every_method_of_a_release_that_answers_is_a_question():
    """One that is added must be named, or its answers would be silent."""
    methods = {name: inspect.signature(method) for name, method in vars(Release).items() if inspect.isfunction(method)}
    answering = {name for name, call in methods.items() if "confidence" in call.parameters and name[0] != "_"}
    assert answering - {"ask", "logistic", "wish"} == set(QUESTIONS)  # the first two ask one of the others


def test_two_releases_side_by_side_say_which_one_is_seeded(folder):
    places = [made(folder, "row", REPLACE, seed)[0] for seed in (1, None)]
    page = str(two_releases(["trial", "release"], [covey.load(place) for place in places]))
    assert page.count(MARK) == 1


@pytest.mark.parametrize("unit", UNITS)
def test_no_statement_puts_words_into_the_mouth_of_an_owner_who_was_not_asked(folder, unit):
    """That a person has one row is what nobody asks; a column of persons and a number of rows are what an owner says."""
    place, _ = made(folder, unit, REPLACE, None)
    for name, text in texts(place).items():
        assert "vouches for that" not in text, name
        assert "is what one person has" not in text, name
        assert not re.search("vouches", text), name
    asked = {
        "row": "nobody was asked whether a person has several",
        "three rows": "nobody has more is the owner",
        "person": "column of persons",
    }
    for name in ("privacy.json", "deployment.yaml", "report.html"):
        assert asked[unit] in texts(place)[name], name
    assert ("nobody was asked" in texts(place)["README.md"]) == (unit == "row")
    covered = json.loads((place / "privacy.json").read_text())["rows_per_person"]
    assert covered == {"row": 1, "three rows": 3, "person": "all"}[unit]

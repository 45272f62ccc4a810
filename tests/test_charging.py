"""After the charge nothing is lost: whatever fails beside the data leaves a valid bundle, which can be finished."""

import csv
import json
import os
import random
import shutil
import sys
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path

import pytest

import covey
from covey.errors import CoveyWarning, InputError, InternalError, LedgerError, ParameterError
from covey.ledger import Ledger
from covey.release import bundle as bundles
from covey.release import pictures, report
from covey.release.contents import About
from covey.release.places import REPORT, SUMS, WORDS, WORDS_SUMS, listed
from covey.release.verify import bundle_digest, file_digest, verify_bundle
from covey.tables.description import Description
from covey.tables.schema import Schema
from covey.workflow import Account, PrivateOrder, release, resume
from tests.clinic import clinic, described
from tests.clinic import write as write_linked
from tests.commands import run
from tests.entries import entry

pytestmark = [pytest.mark.usefixtures("few_steps"), pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")]
# Whose functions make words: what they call fails through them. The claim is let go when all is done.
ABOVE_THE_DATA = tuple(str(Path(covey.__file__).parent / name) for name in ("release", "answers"))

SEX = entry("sex", "string", enum=["f", "m"], required=True)
LOWER = {"less_equal": {"left": "ap_lo", "right": "ap_hi"}}


def order_for(folder, fields, cells, rules=(), **more):
    """An order that is charged to a ledger of its own."""
    with (folder / "table.csv").open("w", newline="") as file:
        csv.writer(file).writerows([[field["name"] for field in fields], *cells])
    (folder / "schema.json").write_text(json.dumps({"fields": fields, "covey": {"rules": list(rules)}}))
    ledger = folder / "ledger.sqlite"
    Ledger(ledger).open_dataset("people", Fraction(3), Fraction(1, 1000))
    place = {"table": folder / "table.csv", "schema": folder / "schema.json", "out": folder / "out"}
    return PrivateOrder(**place, epsilon=1, dataset="people", ledger=ledger, accept_misfits=1, **more)


def rows_of(kind, stream, count=150):
    seen = [date(2013, 1, 1) + timedelta(stream.randrange(700)) for _ in range(count)]
    later = [one + timedelta(stream.randrange(20)) if stream.random() < 0.7 else "" for one in seen]
    low = [stream.randrange(50, 110) for _ in range(count)]
    high = [one + stream.randrange(70) for one in low]
    sex = [stream.choice("fm") for _ in range(count)]
    return list(zip(*{"after": (seen, later, sex), "pressure": (low, high, sex)}[kind], strict=True))


OFFENSE = entry("offense", "date", "2013-01-01", "2016-12-31")
ORDERS = {
    "after": ([OFFENSE, entry("jail", "date", "2013-01-01", "2016-12-31", after="offense"), SEX], []),
    "pressure": ([entry("ap_lo", "integer", 0, 200), entry("ap_hi", "integer", 0, 250), SEX], [LOWER]),
}


@pytest.mark.parametrize("kind", ORDERS)
def test_an_order_between_two_columns_is_released_and_its_report_says_why_there_is_no_band(kind, tmp_path):
    fields, rules = ORDERS[kind]
    order = order_for(tmp_path, fields, rows_of(kind, random.Random(1)), rules, rows=150)
    done = release(order)
    assert verify_bundle(done.bundle).finished
    page = (done.bundle / "report.html").read_text()
    assert page.count("No error bands: &#x27;") == 1
    assert f"{fields[1]['name']}&#x27; was measured by its distance from" in page
    assert f"another one ({fields[1]['name']}). The map shows their association in the synthetic rows" in page
    assert "could not be made" not in page


def test_rules_of_learned_schemas_that_contradict_each_other_are_refused_before_the_charge(tmp_path):
    fields = [{"name": "x", "type": "integer", "covey": {"learn": True}}, SEX, entry("y", "integer", 0, 9)]
    rules = [{"forbid": {"sex": "f"}}, {"forbid": {"sex": "m"}}]
    order = order_for(tmp_path, fields, [[1, "f", 2]] * 50, rules)
    with pytest.raises(ParameterError, match="contradict each other"):
        release(order)
    assert [event.kind for event in Ledger(order.ledger).history("people")] == ["open"]


@pytest.fixture(scope="module")
def kinds(visits, quick_persons, tmp_path_factory):
    """A release of each kind, to be written again and again."""
    schema = Schema.load(visits / "schema.json")
    folder = tmp_path_factory.mktemp("linked")
    write_linked(folder, clinic())
    order = ORDERS["pressure"]
    fields = Schema.from_dict({"fields": order[0], "covey": {"rules": order[1]}})
    columns = map(list, zip(*rows_of("pressure", random.Random(2)), strict=True))
    table = dict(zip(("ap_lo", "ap_hi", "sex"), columns, strict=True))
    package = Description.load(folder / "package.json")
    tables = {part.name: folder / part.path for part in package.tables}
    return {
        "private": covey.PrivateSynthesizer(1.0, 1e-6, schema=schema, seed=1).fit(visits / "visits.csv").release(60),
        "ordered": covey.PrivateSynthesizer(1.0, schema=fields, seed=1).fit(table).release(60),
        "linked": covey.PrivateSynthesizer(1.0, 1e-6, schema=package, seed=1).fit(tables).release(40),
        "anonymous": covey.AnonymousSynthesizer(10, schema=schema, seed=1).fit(visits / "visits.csv").release(60),
    }


def no(*_):
    raise ZeroDivisionError("a value")


class Failing:
    """Raises at the first call of one of covey's functions once the data are safe; without one it notes them all."""

    def __init__(self, chosen=None):
        self.chosen, self.seen = chosen, {}

    def start(self, _):
        sys.setprofile(self)

    def __call__(self, frame, event, _):
        code = frame.f_code
        if code.co_name == "_verify_written":  # a refusal of a bundle is no failure of its words
            sys.setprofile(None)
            return
        lock = code.co_filename.endswith("places.py") or code.co_name == "claim_target"  # no part of the words
        if event != "call" or not code.co_filename.startswith(ABOVE_THE_DATA) or lock:
            return
        key = (code.co_filename, code.co_name, code.co_firstlineno)
        self.seen.setdefault(key)
        if key == self.chosen:
            self.chosen = None
            sys.setprofile(None)
            raise MemoryError

    def write(self, made, folder):
        try:
            with bundles.claim_target(folder, False) as claim:
                bundles.publish(made, folder, claim, written=self.start)
            return folder
        finally:
            sys.setprofile(None)


@pytest.mark.parametrize("kind", ["private", "linked", "anonymous"])
def test_a_failure_in_any_function_after_the_data_leaves_a_valid_bundle_that_can_be_finished(kind, kinds, tmp_path):
    """Of some hundred functions some twenty are tried, evenly chosen; COVEY_EVERY_FAILURE=1 tries them all."""
    noted = Failing()
    noted.write(kinds[kind], tmp_path / "whole")
    assert len(noted.seen) > 30
    whole, ways = verify_bundle(tmp_path / "whole").rows, {True: 0, False: 0}
    every = int(os.environ.get("COVEY_EVERY_FAILURE", "0")) or 1 + len(noted.seen) // 25
    for place, key in enumerate(list(noted.seen)[::every]):
        folder = Failing(key).write(kinds[kind], tmp_path / str(place))
        assert {path.name for path in folder.iterdir()} >= {SUMS, "privacy.json"}
        named = listed(folder)
        assert all(file_digest(folder / name) == digest for name, digest in named.items())
        ways[REPORT in named] += 1
        if REPORT not in named and ways[False] < 4:  # all of them are in one state: that of the data
            assert not verify_bundle(folder).finished
            assert "covey resume" in (folder / "README.md").read_text()
            assert resume(folder).rows == whole
            assert verify_bundle(folder).finished
        shutil.rmtree(folder)
    assert min(ways.values()) > 2


@pytest.mark.parametrize("kind", ["private", "ordered", "linked", "anonymous"])
def test_words_that_are_made_again_are_the_words_that_were_made(kind, kinds, tmp_path):
    about = About("A title", "Ada", "teaching", Fraction(1), Fraction(3))
    folder = bundles.write_bundle(kinds[kind], tmp_path / "bundle", about=about)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    name = bundle_digest(folder)
    for gone in (*WORDS, WORDS_SUMS):
        (folder / gone).unlink(missing_ok=True)
    assert not verify_bundle(folder).finished
    resume(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert bundle_digest(folder) == name
    assert resume(folder).rows == kinds[kind].parts.m  # nothing is missing, and nothing changes
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]


def test_a_bundle_that_nobody_could_verify_for_want_of_memory_is_not_called_broken(kinds, tmp_path, monkeypatch):
    def full(_):
        raise MemoryError

    monkeypatch.setattr(bundles, "verify_bundle", full)
    with pytest.warns(CoveyWarning, match=r"could not be verified \(MemoryError\).*covey verify"):
        folder = bundles.write_bundle(kinds["private"], tmp_path / "bundle")
    assert verify_bundle(folder).finished


def test_damaged_words_are_made_again_and_damaged_data_are_refused(kinds, tmp_path):
    folder = bundles.write_bundle(kinds["private"], tmp_path / "bundle")
    page = (folder / "report.html").read_bytes()
    (folder / "report.html").write_text("something else")
    with pytest.raises(InputError, match=r"report\.html was changed"):
        verify_bundle(folder)
    resume(folder)
    assert (folder / "report.html").read_bytes() == page
    with (folder / "synthetic.csv").open("ab") as file:
        file.write(b" ")
    with pytest.raises(InputError, match=r"synthetic\.csv was changed"):
        resume(folder)
    for wrong in (tmp_path / "nothing", tmp_path / "nowhere" / "bundle"):
        with pytest.raises(InputError, match="there is no folder"):
            resume(wrong)
    assert not (tmp_path / "nowhere").exists()


def test_a_part_that_cannot_be_drawn_says_so_in_its_place(kinds, tmp_path, monkeypatch):
    monkeypatch.setattr(pictures, "_inhabited", no)
    monkeypatch.setattr(report, "accuracy", no)
    folder = bundles.write_bundle(kinds["private"], tmp_path / "bundle")
    assert verify_bundle(folder).finished
    page = (folder / "report.html").read_text()
    assert page.count("This could not be made (ZeroDivisionError). The data are not affected.") > 2
    assert "a value" not in page
    assert "What goes together" in page


def test_a_sentence_about_these_very_rows_that_cannot_be_made_is_that_of_the_model(kinds, tmp_path, monkeypatch):
    monkeypatch.setattr(bundles, "rows_bounds", no)
    for kind in ("private", "linked"):
        folder = bundles.write_bundle(kinds[kind], tmp_path / kind)
        assert verify_bundle(folder).finished
        said = json.loads((folder / "certificate.json").read_text())
        assert said.get("this_table", said)["sentence"] == kinds[kind].certificate.sentence


def charged(order):
    book = Ledger(order.ledger)
    book.verify()
    return [event.kind for event in book.history("people")]


@pytest.fixture
def order(tmp_path):
    return order_for(tmp_path, ORDERS["pressure"][0], rows_of("pressure", random.Random(3)), rows=50)


def test_a_release_without_its_report_is_charged_marked_and_finished_from_the_command_line(order, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(bundles, "report_html", no)
        with pytest.warns(CoveyWarning, match=r"could not be made \(ZeroDivisionError\)\. To try again: covey resume"):
            done = release(order)
        with pytest.raises(InternalError, match="Its data are complete"):
            resume(done.bundle)
        assert done.certificate
    assert charged(order) == ["open", "charge", "release"]
    place = done.bundle
    said = run("verify", place)
    assert said.exit_code == 0
    assert f"Its report is missing. This makes it from the data: covey resume {place}" in said.output
    assert not json.loads(run("verify", place, "--json").output)["finished"]
    said = run("resume", place)
    assert said.exit_code == 0, said.output
    said = run("verify", place)
    assert "missing" not in said.output
    assert "of a cap of" in (done.bundle / "report.html").read_text()  # what the ledger said is in the bundle
    assert Ledger(order.ledger).history("people")[-1].digest == bundle_digest(done.bundle)


def test_a_ledger_that_fails_after_the_charge_loses_nothing(order, monkeypatch):
    def full(*_):
        raise LedgerError("the disk is full.")

    monkeypatch.setattr(Ledger, "mark_released", full)
    monkeypatch.setattr(Ledger, "dataset", full)
    with pytest.warns(CoveyWarning, match="could not note which bundle it paid for: the disk is full"):
        done = release(order)
    assert verify_bundle(done.bundle).finished
    assert charged(order) == ["open", "charge"]
    assert "of a cap of" not in (done.bundle / "report.html").read_text()


def test_the_charge_is_marked_before_the_first_word_is_made(order, monkeypatch):
    seen, mark, tell = [], Account.mark, bundles.add_words
    monkeypatch.setattr(Account, "mark", lambda *given: seen.append("mark") or mark(*given))
    monkeypatch.setattr(bundles, "add_words", lambda *given: seen.append("words") or tell(*given))
    release(order)
    assert seen == ["mark", "words"]


def one_ward(learned):
    """Visits that are counted, of which nothing else varies: one ward, or a number that noise hides."""

    def change(_, visits):
        visits["covey"] = {"at_most": 9, "order": "day", "positions": not learned, "numbered": True}
        ward = {"name": "ward", "type": "integer", "covey": {"learn": True}}
        visits["schema"]["fields"][2] = ward if learned else entry("ward", "string", enum=["a"], required=True)

    return described(change)


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.usefixtures("quick_persons")
def test_events_of_which_only_their_place_varies_are_released(learned, tmp_path):
    """Both failed after the charge: every field of what is written is constant."""
    tables = clinic()
    tables["visits"]["ward"] = [str(k) if learned else "a" for k in range(len(tables["visits"]["ward"]))]
    made = covey.PrivateSynthesizer(0.05, 1e-6, schema=one_ward(learned), seed=1).fit(tables).release(40)
    assert verify_bundle(bundles.write_bundle(made, tmp_path / "bundle")).finished

"""What goes wrong around covey: kills, full disks, closed folders, clocks, races, ledgers from a backup."""

import json
import re
import subprocess
import sys
import warnings
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import pytest

from covey.errors import CoveyWarning, InputError, InternalError, LedgerError, LostReleaseError, ParameterError
from covey.ledger import Ledger
from covey.ledger import file as ledger_module
from covey.release import bundle
from covey.release.verify import verify_bundle
from covey.synthesizers import PrivateSynthesizer
from covey.workflow import CHARGE_STAYS, PrivateOrder, release

ROOT = Path(__file__).parents[1]
pytestmark = [
    pytest.mark.usefixtures("few_steps"),
    pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning"),
    pytest.mark.skipif(sys.platform != "linux", reason="signals, limits and /proc as Linux has them"),
]


@pytest.fixture
def order(visits, tmp_path):
    ledger = tmp_path / "books" / "ledger.sqlite"
    Ledger(ledger).open_dataset("visits", Fraction(1))
    place = {"table": visits / "visits.csv", "schema": visits / "schema.json", "out": tmp_path / "out" / "bundle"}
    return PrivateOrder(**place, ledger=ledger, dataset="visits", epsilon=Fraction(6, 10))


# What fails here is the writing: the fit takes a few steps.
FEW_STEPS = "from tests.few import few_steps; few_steps()"


def charges(order):
    book = Ledger(order.ledger)
    book.verify()
    return sum(event.kind == "charge" for event in book.history("visits"))


def command(order, *more, limit=None):
    """`covey release` in a process of its own; no file of it may grow past the limit."""
    words = ["release", str(order.table), "--schema", str(order.schema), "--out", str(order.out), "--epsilon", "0.6"]
    words += ["--dataset", "visits", "--ledger", str(order.ledger), *more]
    limits = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))" if limit else ""
    script = f"{FEW_STEPS}\nfrom covey.desk.cli import main; {limits}\nmain({words!r})"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, text=True, **pipes)


# What is planted, by name, and what the search for broken promises says of it.
PLANTED = {
    "nothing": ("", "8 kills, 0 broken promises"),
    "written in place": (
        "import covey.workflow as w; w.publish = lambda release, folder, claim, written, **options: (folder.mkdir("
        "exist_ok=True), b._fill(release, folder, False, b.NOTHING_SAID), b._write_sums(folder), written(folder))[1]",
        "InputError",
    ),
    "charged afterwards": (
        "import covey.ledger as l, covey.workflow as w; charge = l.Ledger.charge; held = []\n"
        "l.Ledger.charge = lambda *words: held.append(words)\n"
        "l.Ledger.mark_released = lambda book, *_: charge(*held[-1])",
        "a release without its charge",
    ),
    "rows in a temporary file": (
        "import covey.workflow as w, shutil, tempfile; real = w._check_places\n"
        "w._check_places = lambda order, tables: (shutil.copy(order.table, tempfile.mkstemp()[1]), real(order, tables))[1]",
        "true rows in",
    ),
}
EVERYTHING = ["--kills", "8", "--victims", "release", "anonymize", "worker"]
FIRST = ["--kills", "20", "--victims", "release", "--after", "0.8", "--until-broken"]
# Each search in a child of one process, which has imported everything.
SEARCHES = """
import json, os, sys
from trust.faults import finished, forked, main
def search(plant, words, place):
    for stream in (1, 2):
        os.dup2(os.open(place, os.O_CREAT | os.O_APPEND | os.O_WRONLY), stream)
    exec(f"import covey.release.bundle as b\\n{plant}", {})
    sys.exit(main(words))
print(json.dumps([finished(forked(search, *each, quiet=False)) for each in json.load(sys.stdin)]))
"""


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """How each search ended, and what it said."""
    folder = tmp_path_factory.mktemp("searches")
    given = [(plant, FIRST if plant else EVERYTHING, str(folder / name)) for name, (plant, _) in PLANTED.items()]
    command = {"args": [sys.executable, "-c", f"{FEW_STEPS}\n{SEARCHES}"], "input": json.dumps(given), "cwd": ROOT}
    done = subprocess.run(**command, stdout=subprocess.PIPE, text=True, timeout=600)
    return {
        name: (end, (folder / name).read_text()) for name, end in zip(PLANTED, json.loads(done.stdout), strict=True)
    }


@pytest.mark.parametrize("name", PLANTED)
def test_kills_at_random_points_leave_nothing_broken_and_broken_promises_are_found(searched, name):
    ended, said = searched[name]
    assert (ended == "done") == (name == "nothing"), said
    assert PLANTED[name][1] in said


class Panic(BaseException):
    """As libraries in Rust raise it."""


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (InputError("the database went away."), "the database went away."),
        (Panic("7"), "Panic, which covey did not expect."),
    ],
)
def test_what_fails_after_the_charge_says_that_the_charge_stays(order, monkeypatch, error, words):
    """A connection that is lost at the second reading, say: elsewhere an InputError means that nothing was charged."""

    def lost(*_):
        raise error

    monkeypatch.setattr(PrivateSynthesizer, "fit", lost)
    with pytest.raises(LostReleaseError, match=f"^{words} {re.escape(CHARGE_STAYS)}$") as failure:
        release(order)
    assert failure.value.exit_code == 5
    assert list(order.out.parent.iterdir()) == []
    assert charges(order) == 1
    with pytest.raises(type(error)):  # a seeded run has no charge to speak of
        release(replace(order, dataset=None, seed=1))


@pytest.mark.parametrize("charged", [True, False])
def test_a_bundle_that_its_own_verification_refuses_is_kept_and_is_no_success(order, monkeypatch, charged):
    """It must not happen. If it does, the charge is not lost in silence, and nobody hands out rows that break a rule."""
    written = bundle._fill

    def one_row_too_many(release, folder, *more):
        told = written(release, folder, *more)
        with (folder / "synthetic.csv").open("a") as file:
            file.write((folder / "synthetic.csv").read_text().splitlines()[1] + "\n")
        return told

    monkeypatch.setattr(bundle, "_fill", one_row_too_many)
    kind, words = (LostReleaseError, re.escape(CHARGE_STAYS)) if charged else (InternalError, "report this")
    with pytest.raises(kind, match=f"does not pass its own verification: .*are kept there.*{words}"):
        release(order if charged else replace(order, dataset=None, seed=1))
    assert (order.out / "synthetic.csv").is_file()
    assert charges(order) == charged
    with pytest.raises(InputError, match="another number of synthetic rows"):
        verify_bundle(order.out)


@pytest.mark.usefixtures("few_steps")
def test_who_makes_errors_of_warnings_loses_no_release(order):
    """That the result is mostly noise was said, and so raised, after the charge."""
    with (
        warnings.catch_warnings(action="error", category=CoveyWarning),
        pytest.raises(CoveyWarning, match="mostly noise"),
    ):
        release(replace(order, epsilon=0.001))
    assert charges(order) == 1
    verify_bundle(order.out)


def test_a_disk_that_is_full_for_the_ledger_lets_nothing_out(order):
    process = command(order, limit=2000)
    _, said = process.communicate(timeout=600)
    assert process.returncode == 4, said
    assert "Traceback" not in said
    assert not order.out.exists()
    assert charges(order) == 0


def test_a_clock_that_jumps_moves_no_charge(order, monkeypatch):
    times = iter([datetime(2040, 1, 1, tzinfo=UTC), datetime(1970, 1, 2, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)])

    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            return next(times)

    monkeypatch.setattr(ledger_module, "datetime", Clock)
    book = Ledger(order.ledger)
    book.charge("visits", Fraction(1, 4), Fraction(0), "in the future")
    book.charge("visits", Fraction(1, 4), Fraction(0), "in the past")
    assert [event.purpose for event in book.history("visits")] == [None, "in the future", "in the past"]
    assert book.datasets()[0].spent.epsilon == Fraction(1, 2)
    with pytest.raises(LedgerError, match="does not cover"):
        release(order)
    book.charge("visits", Fraction(1, 2), Fraction(0), "now")
    book.verify()


def test_a_second_release_to_the_same_output_is_refused_before_its_charge(order):
    """The second comes while the first is about to be charged."""
    met = []

    def second():
        with pytest.raises(ParameterError, match="another release is writing"):
            release(order)
        met.append(charges(order))

    done = release(order, before_charge=second)
    assert met == [0]
    assert charges(order) == 1
    verify_bundle(done.bundle)
    assert list(order.out.parent.iterdir()) == [order.out]


def test_a_release_that_comes_too_late_for_its_output_is_refused_before_its_charge(order):
    """Both have found the output free; the first one finishes while the second one reads its table."""
    quick = release

    def listen(stage):
        if stage == "reading":
            quick(order)

    with pytest.raises(ParameterError, match="exists"):
        release(order, listen=listen)
    assert charges(order) == 1
    verify_bundle(order.out)
